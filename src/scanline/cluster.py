"""Ray: this process joined to a cluster, and numbered actors on its nodes.

Takes a class and the arguments of each of its actors; gives answers of their calls as they come.
An actor that is lost is replaced, on any node with free cores. Knows nothing of what actors do.

Ray carries out what a peer sends, so a cluster is a trusted network. Without an address the cluster
is this process's own: it listens on loopback alone, with a token that only its processes have. A
cluster that a user named was started by the user; token authentication is asked for there too.
"""

from __future__ import annotations

import functools
import importlib
import os
import secrets
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from .errors import MissingPackageError, RefusedError, UserError
from .settings import at_least

_OWN_STORE_BYTES = 268_435_456
"""Shared memory of an own cluster: for a few rollouts of every actor and versions of weights."""
_LOOK_SECONDS = 1.0
"""Longest wait for an answer before silent actors are looked for."""
_MOST_LOSSES = 3
"""Losses per actor, without any answer between them, that end a run."""
_EXTRA = (
    "Actors on other machines need Ray; install the extra `cluster`: pip install scanline[cluster]"
)


class ActorsLostError(UserError, RuntimeError):
    """No actor plays any more."""


@dataclass(frozen=True, kw_only=True)
class ClusterSettings:
    """Which cluster, and how many actors of it."""

    remote_actors: int = 0
    """Ray actors that play the environments, an equal share each; 0 plays them in this process."""
    cluster_address: str | None = None
    """HOST:PORT of a Ray cluster that `ray start` began, a network that you trust; when not given,
    a cluster of the run's own on 127.0.0.1."""
    actor_cores: int = 1
    """Cores that each remote actor takes of its node."""
    actor_wait_seconds: float = 120.0
    """Longest silence of a remote actor before it is replaced, and of all before the run ends."""

    def __post_init__(self) -> None:
        at_least(0, self, "remote_actors")
        at_least(1, self, "actor_cores", "actor_wait_seconds")


class RayActors:
    """Actors 0 to N - 1 of one class, each with calls in the order in which they were asked."""

    def __init__(
        self,
        work: type,
        arguments: Callable[[int, int], tuple[Any, ...]],
        settings: ClusterSettings,
        say: Callable[[str], None],
    ) -> None:
        """`arguments(number, generation)`: of an actor, and how often it was begun before."""
        num_actors = settings.remote_actors
        self._arguments, self._say = arguments, say
        self._wait_seconds = settings.actor_wait_seconds
        self._actors: list[Any] = [None] * num_actors
        self._joined = ExitStack()
        self._ray = self._joined.enter_context(_joined(settings))
        self._actor_class = self._ray.remote(work).options(
            num_cpus=settings.actor_cores, scheduling_strategy="SPREAD", max_restarts=0
        )
        self._check_cores(settings)
        self._heard = [0.0] * num_actors
        self._asked: dict[Any, int] = {}
        self.generations = [0] * num_actors
        """How often each was begun before."""
        self.num_lost = 0
        self._losses_in_a_row = 0

    def _check_cores(self, settings: ClusterSettings) -> None:
        wanted = settings.remote_actors * settings.actor_cores
        cores = int(self._ray.cluster_resources().get("CPU", 0))
        if cores < wanted:
            self.close()
            raise RefusedError(
                f"remote_actors={settings.remote_actors} take {wanted} cores, but the Ray cluster "
                f"has {cores}; add nodes, or use fewer remote_actors or actor_cores."
            )

    def __len__(self) -> int:
        return len(self._actors)

    def begin(self, number: int) -> None:
        """Begins an actor; the cluster finds a node for it."""
        arguments = self._arguments(number, self.generations[number])
        self._actors[number] = self._actor_class.remote(*arguments)
        self._heard[number] = time.monotonic()

    def wait(self) -> None:
        """Until all are ready to be asked, or the longest silence has passed: those that lack a
        node come later."""
        ready = [actor.__ray_ready__.remote() for actor in self._actors]
        self._ray.wait(ready, num_returns=len(ready), timeout=self._wait_seconds)

    def share(self, value: Any) -> Any:
        """One copy for all actors: give what is returned to `ask` in place of the value."""
        return self._ray.put(value)

    def ask(self, number: int, method: str, *args: Any) -> None:
        """Sends a call; its answer comes from `answer`."""
        if number not in self._asked.values():
            self._heard[number] = time.monotonic()
        self._asked[getattr(self._actors[number], method).remote(*args)] = number

    def answer(self) -> tuple[int, Any | None]:
        """The next actor's answer, oldest call first; None where the actor was lost and another
        one has begun in its place, which knows nothing of earlier calls."""
        deadline = time.monotonic() + self._wait_seconds
        while time.monotonic() < deadline:
            ready, _ = self._ray.wait(list(self._asked), num_returns=1, timeout=_LOOK_SECONDS)
            if ready:
                return self._taken(ready[0])
            for number, heard in enumerate(self._heard):
                if number in self._asked.values() and time.monotonic() - heard > self._wait_seconds:
                    return self._replaced(number, f"silent for {self._wait_seconds:g} seconds")
        raise ActorsLostError(
            f"None of the {len(self)} remote actors has answered for {self._wait_seconds:g} "
            "seconds; look at `ray status`, and resume the run when the nodes are back."
        )

    def _taken(self, reference: Any) -> tuple[int, Any | None]:
        number, errors = self._asked.pop(reference), self._ray.exceptions
        try:
            value = self._ray.get(reference, timeout=self._wait_seconds)
        except errors.RayTaskError as error:
            raise ActorsLostError(f"Remote actor {number} failed: {error}") from error
        except errors.RayError as error:
            return self._replaced(number, _first_line(error), error)
        self._heard[number], self._losses_in_a_row = time.monotonic(), 0
        return number, value

    def _replaced(self, number: int, why: str, error: Exception | None = None) -> tuple[int, None]:
        self.num_lost += 1
        self._losses_in_a_row += 1
        if self._losses_in_a_row > _MOST_LOSSES * len(self):
            raise ActorsLostError(f"Remote actors end as soon as they begin: {error or why}")
        self._asked = {r: each for r, each in self._asked.items() if each != number}
        with suppress(Exception):  # it may be gone already
            self._ray.kill(self._actors[number])
        self.generations[number] += 1
        self._say(
            f"Remote actor {number} was lost ({why}); another one takes its place and begins new "
            "games."
        )
        self.begin(number)
        return number, None

    def nodes(self) -> int:
        """Nodes of the cluster that are alive."""
        return sum(1 for node in self._ray.nodes() if node["Alive"])

    def close(self) -> None:
        """Ends the actors, and an own cluster with them; may be called twice."""
        self._asked = {}
        for actor in [each for each in self._actors if each is not None]:
            with suppress(Exception):  # nothing is lost with them
                self._ray.kill(actor)
        self._actors = []
        self._joined.close()


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0].rstrip(".")


@contextmanager
def _joined(settings: ClusterSettings) -> Iterator[Any]:
    """Ray, inside with this process joined to the cluster that a user named, or to one of its own;
    it is left again unless the process was joined before."""
    address = settings.cluster_address
    with _variables(is_own=address is None):
        try:
            ray: Any = importlib.import_module("ray")
        except ImportError as error:
            raise MissingPackageError(f"{_EXTRA} ({error}).") from error
        if ray.is_initialized():
            yield ray
            return
        quiet = {"log_to_driver": False, "logging_level": "error", "configure_logging": False}
        own = {
            "address": "local",
            "num_cpus": settings.remote_actors * settings.actor_cores,
            "include_dashboard": False,
            "object_store_memory": _OWN_STORE_BYTES,
            "_node_ip_address": "127.0.0.1",
        }
        try:
            with _signals_kept():
                ray.init(**({"address": address} if address else own), **quiet)
        except (ConnectionError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
            raise RefusedError(
                f"cluster_address={address!r}: Ray could not be reached ({_first_line(error)}); "
                "begin it with `ray start` on this machine, with the cluster's token in "
                "~/.ray/auth_token."
            ) from error
        try:
            yield ray
        finally:
            ray.shutdown()


@contextmanager
def _variables(is_own: bool) -> Iterator[None]:
    """Ray's settings inside; the environment is afterwards what it was before."""
    wanted = {"RAY_AUTH_MODE": "token", "RAY_USAGE_STATS_ENABLED": "0"}
    wanted |= {"RAY_worker_niceness": "0"}  # Ray's 15 leaves actors what others leave
    if is_own and not {"RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"} & os.environ.keys():
        wanted |= {"RAY_AUTH_TOKEN": _own_token()}
    before = dict(os.environ)
    os.environ.update({**wanted, **before})
    if is_own:
        # Read at import: nodes call themselves 127.0.0.1, and Ray then listens there alone.
        os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
    try:
        yield
    finally:
        for name in ("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", *wanted):
            os.environ.pop(name, None)
            if name in before:
                os.environ[name] = before[name]


@functools.cache
def _own_token() -> str:
    """Of all own clusters of this process: Ray reads it once."""
    return secrets.token_hex(32)


@contextmanager
def _signals_kept() -> Iterator[None]:
    """Ray puts a handler of its own in place of the run's, which saves."""
    is_main = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGTERM) if is_main else None
    try:
        yield
    finally:
        if before is not None:
            signal.signal(signal.SIGTERM, before)
