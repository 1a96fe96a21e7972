"""Several synchronous learners: started here, or by torchrun, and joined.

Takes a plan; gives the `Learners` of this process. With `--learners N` this process leads and
starts the others; under torchrun all exist already.
Knows how processes find each other, not what they exchange.
"""

from __future__ import annotations

import fcntl
import os
import pickle
import socket
import struct
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from typing import Any

import torch
from torch._C._distributed_c10d import TCPStore

from .. import networks, processes, recipes, settings
from ..errors import RefusedError, refusals
from ..parameters import Learners, join
from ..processes import ParentLink, WorkerLost, WorkerPool
from ..runners.alternate import Alternate
from ..stores import ReplaySettings
from .plan import Plan, plan_from

READY = 1
GLOO_INTERFACE = "GLOO_SOCKET_IFNAME"
_SIOCGIFADDR = 0x8915
"""Linux: the IPv4 address of an interface."""
_START_SECONDS = 120.0
_LONGEST_WAIT_SECONDS = 1_800.0
"""Longest silence of a learner that lives: the leading one may evaluate, or save gigabytes."""

Follow = Callable[[Plan, Learners], None]


def under_torchrun() -> bool:
    """Whether torchrun started this process."""
    return "TORCHELASTIC_RUN_ID" in os.environ


@refusals()
def placed(plan: Plan) -> Plan:
    """The plan with the number of learners that torchrun started; refused if it cannot be."""
    if under_torchrun():
        count = int(os.environ["WORLD_SIZE"])
        if plan.run.learners not in (1, count):
            raise ValueError(
                f"learners={plan.run.learners}, but torchrun started {count}; leave it out."
            )
        plan = settings.override(plan, {"learners": count})
    _refuse_uneven(plan)
    return plan


def _refuse_uneven(plan: Plan) -> None:
    count, recipe = plan.run.learners, plan.recipe
    if count > 1 and not isinstance(recipe.pace, Alternate):
        raise ValueError(
            f"learners={count}: {recipe.name} learns while it plays, in one process; use "
            "learners=1, or accelerated-dqn."
        )
    least = count * recipe.sampling.num_groups
    if recipe.sampling.num_envs % least:
        raise ValueError(
            f"num_envs={recipe.sampling.num_envs} do not divide among {count} learners with "
            f"num_groups={recipe.sampling.num_groups} each; use a multiple of {least}."
        )
    if isinstance(recipe.store, ReplaySettings):
        recipe.store.shared(count)


def cores_of_one(plan: Plan) -> int:
    """Cores for each learner on this machine."""
    if plan.run.pin_cores:
        return processes.granted_cores()  # it stays on its own
    return max(1, processes.granted_cores() // _learners_here(plan))


@contextmanager
def _own_cores(plan: Plan, rank: int) -> Iterator[None]:
    """Where cores are pinned, this thread and those that it starts stay on the learner's share."""
    granted = processes.granted_core_ids()
    if plan.run.pin_cores:
        place = int(os.environ["LOCAL_RANK"]) if under_torchrun() else rank
        size = max(1, len(granted) // _learners_here(plan))
        first = place * size % len(granted)
        processes.bind(0, granted[first : first + size])
    try:
        yield
    finally:
        if plan.run.pin_cores:
            processes.bind(0, granted)


def _learners_here(plan: Plan) -> int:
    return int(os.environ["LOCAL_WORLD_SIZE"]) if under_torchrun() else plan.run.learners


def device_of(plan: Plan, rank: int) -> str:
    """`cuda` is one GPU after the other; a device with a number is that one for all."""
    if plan.run.device != "cuda" or plan.run.learners == 1:
        return plan.run.device
    place = int(os.environ["LOCAL_RANK"]) if under_torchrun() else rank
    return f"cuda:{place % max(torch.cuda.device_count(), 1)}"


@contextmanager
def joined(plan: Plan, follow: Follow) -> Iterator[Learners]:
    """This process among the learners of the plan; `follow` is what the others are told to do."""
    if plan.run.learners == 1:
        yield Learners()
    elif under_torchrun():
        rank = int(os.environ["RANK"])
        with closing(_join(plan, rank, None)) as learners, _own_cores(plan, rank):
            yield learners
    else:
        with _leading_own(plan, follow) as learners:
            yield learners


def _join(plan: Plan, rank: int, store: TCPStore | None) -> Learners:
    return join(
        rank,
        plan.run.learners,
        backend=_backend(plan),
        store=store,
        timeout_seconds=_LONGEST_WAIT_SECONDS,
    )


def _backend(plan: Plan) -> str:
    """NCCL where every learner has a GPU of its own: it cannot share one."""
    own_gpus = torch.cuda.device_count() >= plan.run.learners or under_torchrun()
    return "cpu:gloo,cuda:nccl" if plan.run.device == "cuda" and own_gpus else "gloo"


@contextmanager
def _leading_own(plan: Plan, follow: Follow) -> Iterator[Learners]:
    count, sent = plan.run.learners, _sent(plan)
    store = listening_store(plan.run.learner_address, count)
    pool = processes.start_workers(
        _followed, [(sent, follow, rank, store.port) for rank in range(1, count)]
    )
    try:
        _await_all(pool, count - 1)
        with closing(_join_here(plan, 0, store)) as learners:
            learners.reason = lambda: _last_words(pool)
            with _own_cores(plan, 0):
                yield learners
    finally:
        pool.close()


def _await_all(pool: WorkerPool, num_workers: int) -> None:
    """Until every process has started: one that cannot is told now, not after a time limit."""
    ready = 0
    while ready < num_workers:
        answers = pool.answers(_START_SECONDS)
        if not answers:
            raise WorkerLost(f"A learner did not start within {_START_SECONDS:.0f} seconds.")
        ready += len(answers)


def _last_words(pool: WorkerPool) -> str:
    """What a lost learner left behind: a traceback, or how it ended."""
    try:
        pool.answers(2.0)
    except WorkerLost as error:
        return str(error)
    return ""


def _followed(link: ParentLink, sent: Any, follow: Follow, rank: int, port: int) -> None:
    """The whole life of a learner that another one started."""
    plan = sent if isinstance(sent, Plan) else _found_again(sent)
    networks.own_process()
    link.answer(READY)
    store = TCPStore(plan.run.learner_address, port, plan.run.learners, is_master=False)
    with closing(_join_here(plan, rank, store)) as learners, _own_cores(plan, rank):
        follow(plan, learners)
    os._exit(0)  # all is closed, and taking an interpreter with torch apart may take seconds


def _found_again(sent: Mapping[str, Any]) -> Plan:
    recipe = sent["recipe"]
    return plan_from(sent, recipes.find(recipe["source"], recipe["source_sha256"]))


def _sent(plan: Plan) -> Any:
    """A recipe from a user's file is found again by its path: it cannot be imported by name."""
    if plan.recipe.source:
        return settings.to_dict(plan)
    try:
        pickle.dumps(plan)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise RefusedError(
            f"This recipe cannot be handed to other processes ({error}); put it into a file of "
            "its own and give the file's path, or start the learners with torchrun."
        ) from error
    return plan


def listening_store(address: str, count: int) -> TCPStore:
    """The store by which learners find each other, listening on this address alone.

    Left to itself a TCPStore listens on all interfaces, whatever host it is given.
    """
    try:
        listener = socket.create_server((address, 0), backlog=count)
    except OSError as error:
        raise RefusedError(
            f"learner_address={address!r} is no IPv4 address of this machine "
            f"({error.strerror}); leave it out."
        ) from error
    port = listener.getsockname()[1]
    return TCPStore(
        address,
        port,
        count,
        is_master=True,
        wait_for_workers=False,
        master_listen_fd=listener.detach(),
    )


def _join_here(plan: Plan, rank: int, store: TCPStore) -> Learners:
    """Joins with Gloo on the interface that has the learners' address.

    It looks up the machine's own name otherwise, which may lead anywhere. It reads the variable
    while it joins and takes no argument instead.
    """
    interface = _interface_of(plan.run.learner_address)
    if interface is None or GLOO_INTERFACE in os.environ:
        return _join(plan, rank, store)
    os.environ[GLOO_INTERFACE] = interface
    try:
        return _join(plan, rank, store)
    finally:
        del os.environ[GLOO_INTERFACE]


def _interface_of(address: str) -> str | None:
    """The network interface that has an IPv4 address; None where the system does not tell."""
    names = [name for _, name in socket.if_nameindex()]
    if address.startswith("127."):
        return next((name for name in ("lo", "lo0") if name in names), None)
    wanted = socket.inet_aton(socket.gethostbyname(address))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        for name in names if sys.platform == "linux" else ():
            request = struct.pack("256s", name.encode())
            with suppress(OSError):  # an interface without an address
                if fcntl.ioctl(any_socket, _SIOCGIFADDR, request)[20:24] == wanted:
                    return name
    return None
