"""Environments of the `gymnasium` engine: in this process, or in worker processes.

Takes orders for a group and says which groups are done; actions and results are rows of arrays,
one row per environment, in shared memory where there are workers. Gives and takes snapshots.
Knows no stack and no reward clip, and imports no torch: a worker process must start quickly.

It wraps `gymnasium.Env`, not a vector environment, so that the true last frame, the three reset
modes and the frame limit are in one place and the same with any number of processes.
Every worker serves a part of every group, so that a group's step uses all workers, and groups
smaller than the number of workers go round: group 1 begins where group 0 left off.
"""

from __future__ import annotations

import pickle
import re
import time
import traceback
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Protocol, runtime_checkable

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import wrappers

from .. import games
from ..processes import Fields, ParentLink, SharedArrays, WorkerLost, start_workers
from . import snapshots
from .interface import EngineError, EngineSettings, EnvMaker

Env = gymnasium.Env[Any, Any]
Arrays = Mapping[str, npt.NDArray[Any]]
Parts = Sequence[Sequence[int]]
"""Rows that a worker serves, per group."""

STEP, RESET, SNAPSHOT, RESTORE, READY = range(5)
"""Codes of orders; STEP and RESET come with a group, RESTORE with snapshots by row."""


@runtime_checkable
class SnapshotEnv(Protocol):
    """What `env.unwrapped` may offer: its whole state as bytes, random generator included."""

    def snapshot(self) -> bytes: ...

    def restore(self, snapshot: bytes) -> None: ...


def array_fields(num_envs: int, frame_shape: tuple[int, ...], frame_dtype: str) -> Fields:
    """The arrays of all environments of an engine; frames in their own shape."""
    frames = ((num_envs, *frame_shape), frame_dtype)
    column = (num_envs,)
    return {
        "action": (column, "int64"),
        "seed": (column, "int64"),  # -1 where the random stream goes on
        "mask": (column, "bool"),  # where a reset is wanted
        "frame": frames,
        "final_frame": frames,
        "raw_reward": (column, "float32"),
        "terminated": (column, "bool"),
        "truncated": (column, "bool"),
        "lives": (column, "int32"),
    }


def make_env(maker: EnvMaker) -> Env:
    """One environment from a Gymnasium id, the name of an Atari game, or a callable."""
    if not isinstance(maker, str):
        env: Env = maker()
        return env
    try:
        return gymnasium.make(_gymnasium_id(maker), disable_env_checker=True)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"{maker!r} needs a package that is missing ({error.name}); Atari games come with "
            "pip install 'scanline[atari]'."
        ) from error
    except gymnasium.error.UnregisteredEnv as error:
        raise ValueError(f"There is no environment {maker!r}. {error}") from error


def _gymnasium_id(name: str) -> str:
    if name in gymnasium.registry or ":" in name:
        return name
    try:
        found = games.find(name)
    except ValueError:
        return name
    # "module:id" lets Gymnasium import the package that registers the id.
    is_legacy = re.search(r"-v[04]$", name) is not None
    return f"ale_py:{name if is_legacy else found.gymnasium_id}"


def can_snapshot(env: Env) -> bool:
    """Whether a snapshot of the innermost environment is a snapshot of the whole."""
    stateless = (wrappers.OrderEnforcing, wrappers.PassiveEnvChecker, wrappers.TimeLimit)
    plain = all(isinstance(wrapper, stateless) for wrapper in _wrappers(env))
    return plain and isinstance(env.unwrapped, SnapshotEnv)


def _wrappers(env: Env) -> Iterator[Env]:
    while isinstance(env, gymnasium.Wrapper):
        yield env
        env = env.env


class RowEnv:
    """One environment, which writes its row of the arrays."""

    def __init__(self, maker: EnvMaker, row: int, first_action: int, how: EngineSettings) -> None:
        self._row, self._first_action = row, first_action
        self._protocol, self._autoreset = how.protocol, how.autoreset
        self._env = make_env(maker)
        limits = (layer for layer in _wrappers(self._env) if isinstance(layer, wrappers.TimeLimit))
        self._limit = next(limits, None)
        self._frames = 0
        self._waits_for_reset = False

    def reset(self, arrays: Arrays, seed: int | None = None) -> None:
        frame, info = self._env.reset(seed=seed)
        self._frames, self._waits_for_reset = 0, False
        arrays["frame"][self._row] = frame
        arrays["lives"][self._row] = info.get("lives", 0)

    def reset_where_masked(self, arrays: Arrays) -> None:
        if arrays["mask"][self._row]:
            seed = arrays["seed"].item(self._row)
            self.reset(arrays, None if seed < 0 else seed)

    def step(self, arrays: Arrays) -> None:
        row = self._row
        if self._waits_for_reset:
            arrays["raw_reward"][row] = 0.0
            arrays["terminated"][row] = arrays["truncated"][row] = False
            return self.reset(arrays)
        action = arrays["action"].item(row) + self._first_action
        frame, reward, terminated, truncated, lives = self._repeat(action)
        arrays["frame"][row] = frame
        arrays["raw_reward"][row] = reward
        arrays["terminated"][row] = terminated
        arrays["truncated"][row] = truncated
        arrays["lives"][row] = lives
        if terminated or truncated:
            arrays["final_frame"][row] = frame
            if self._autoreset == "same-step":
                self.reset(arrays)
            else:
                self._waits_for_reset = True
        return None

    def _repeat(self, action: int) -> tuple[Any, float, bool, bool, int]:
        total, limit = 0.0, self._protocol.episode_limit_frames
        for _ in range(self._protocol.frame_skip):
            frame, reward, terminated, truncated, info = self._env.step(action)
            total += float(reward)
            self._frames += 1
            truncated = truncated or (self._frames == limit and not terminated)
            if terminated or truncated:
                break
        return frame, total, terminated, truncated, info.get("lives", 0)

    def snapshot(self) -> bytes:
        elapsed = self._limit._elapsed_steps if self._limit else None
        header = {"frames": self._frames, "waits": self._waits_for_reset, "elapsed": elapsed}
        inner = self._env.unwrapped
        assert isinstance(inner, SnapshotEnv)
        return snapshots.pack(b"", header, inner.snapshot())

    def restore(self, snapshot: bytes) -> None:
        elapsed = snapshots.COUNT if self._limit else snapshots.NOTHING
        bounds = {"frames": snapshots.COUNT, "waits": snapshots.FLAG, "elapsed": elapsed}
        state, body = snapshots.unpack(b"", snapshot, bounds)
        self._env.reset()  # wrappers refuse to step before they saw one
        inner = self._env.unwrapped
        assert isinstance(inner, SnapshotEnv)
        inner.restore(body)
        self._frames, self._waits_for_reset = state["frames"], state["waits"]
        if self._limit:
            self._limit._elapsed_steps = state["elapsed"]

    def close(self) -> None:
        self._env.close()


@contextmanager
def _failing_env() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        raise EngineError(f"An environment failed:\n{traceback.format_exc()}") from error


@contextmanager
def _lost_worker() -> Iterator[None]:
    try:
        yield
    except WorkerLost as error:
        raise EngineError(str(error)) from error


class LocalEnvs:
    """The environments of one process, each addressed by its row.

    `first_action` is what action 0 is called in the environments' own space.
    """

    def __init__(
        self, settings: EngineSettings, rows: Sequence[int], first_action: int, arrays: Arrays
    ) -> None:
        self._arrays, self._first_env_id = arrays, settings.first_env_id
        makers = settings.games
        self._envs = {row: RowEnv(makers[row], row, first_action, settings) for row in rows}

    def run(self, kind: int, rows: Sequence[int]) -> None:
        """Steps or resets these rows; an exception leaves with the environment's number on it."""
        row = -1
        try:
            for row in rows:
                if kind == STEP:
                    self._envs[row].step(self._arrays)
                else:
                    self._envs[row].reset_where_masked(self._arrays)
        except Exception as error:
            error.add_note(f"This was environment {self._first_env_id + row}.")
            raise

    def snapshot(self) -> dict[int, bytes]:
        return {row: env.snapshot() for row, env in self._envs.items()}

    def restore(self, by_row: Mapping[int, bytes]) -> None:
        for row, env in self._envs.items():
            env.restore(by_row[row])

    def close(self) -> None:
        for env in self._envs.values():
            env.close()


class InProcess:
    """All environments here, stepped when their group is waited for: for debugging and tests."""

    def __init__(self, settings: EngineSettings, first_action: int, layout: Fields) -> None:
        self.arrays: Arrays = {
            name: np.zeros(shape, dtype) for name, (shape, dtype) in layout.items()
        }
        self._settings = settings
        self._orders: deque[tuple[int, int]] = deque()  # filled by any thread
        with _failing_env():
            self._envs = LocalEnvs(settings, range(settings.num_envs), first_action, self.arrays)

    def order(self, group: int, kind: int) -> None:
        self._orders.append((group, kind))

    @_failing_env()
    def done(self, timeout_seconds: float) -> list[int]:
        finished = []
        while self._orders:
            group, kind = self._orders.popleft()
            rows = self._settings.rows(group)
            self._envs.run(kind, range(rows.start, rows.stop))
            finished.append(group)
        return finished

    @_failing_env()
    def snapshot(self, timeout_seconds: float) -> dict[int, bytes]:
        return self._envs.snapshot()

    @_failing_env()
    def restore(self, by_row: Mapping[int, bytes], timeout_seconds: float) -> None:
        self._envs.restore(by_row)

    def close(self, grace_seconds: float) -> None:
        self._envs.close()


class EnvWorkers:
    """Worker processes with environments each; arrays in shared memory, orders through pipes.

    One order per group may be under way.
    """

    def __init__(
        self, settings: EngineSettings, first_action: int, layout: Fields, num_workers: int
    ) -> None:
        _refuse_unimportable(settings.games)
        shared = SharedArrays(layout)
        self.arrays: Arrays = shared.arrays
        self._parts = _parts(settings, num_workers)
        own = replace(settings, is_paused=None)  # which need not be importable
        args = [(own, rows, first_action, dict(layout), shared.fd) for rows in self._parts]
        self._pool = start_workers(serve, args, fds=(shared.fd,))
        shared.close_fd()
        self._pending: dict[int, set[int]] = {}

    def ready(self, timeout_seconds: float) -> None:
        """Waits until every worker has built its environments."""
        self._call_all(READY, timeout_seconds)

    @_lost_worker()
    def order(self, group: int, kind: int) -> None:
        workers = [worker for worker, rows in enumerate(self._parts) if rows[group]]
        self._pending[group] = set(workers)  # which shrinks as answers come, in another thread
        for worker in workers:
            self._pool.workers[worker].order(kind, group)

    @_lost_worker()
    def done(self, timeout_seconds: float) -> list[int]:
        """Groups that finished since the last call; waits for the first up to the timeout."""
        deadline, finished = time.monotonic() + timeout_seconds, list[int]()
        while not finished and self._pending:
            answers = self._pool.answers(max(0.0, deadline - time.monotonic()))
            for worker, group, _ in answers:
                self._pending[group].discard(worker)
                if not self._pending[group]:
                    del self._pending[group]
                    finished.append(group)
            if not answers and time.monotonic() >= deadline:
                break
        return finished

    def snapshot(self, timeout_seconds: float) -> dict[int, bytes]:
        answers = self._call_all(SNAPSHOT, timeout_seconds)
        return {row: state for answer in answers for row, state in answer.items()}

    def restore(self, by_row: Mapping[int, bytes], timeout_seconds: float) -> None:
        self._call_all(RESTORE, timeout_seconds, by_row)

    def close(self, grace_seconds: float) -> None:
        self._pool.close(grace_seconds)
        self.arrays = {}  # with the last view the memory goes

    @_lost_worker()
    def _call_all(self, kind: int, timeout_seconds: float, item: object = None) -> list[Any]:
        for worker in self._pool.workers:
            worker.order(kind, item)
        deadline, found = time.monotonic() + timeout_seconds, list[Any]()
        while len(found) < len(self._pool.workers):
            left = deadline - time.monotonic()
            if left <= 0:
                raise EngineError(f"Workers did not answer within {timeout_seconds:g} seconds.")
            found += [reply for _, _, reply in self._pool.answers(left)]
        return found


def serve(
    link: ParentLink,
    settings: EngineSettings,
    parts: Parts,
    first_action: int,
    layout: Fields,
    fd: int,
) -> None:
    """What a worker process does until its parent closes the pipe."""
    rows = [row for part in parts for row in part]
    envs = LocalEnvs(settings, rows, first_action, SharedArrays(layout, fd).arrays)
    for kind, item in link.orders():
        if kind in (STEP, RESET):
            envs.run(kind, parts[item])
            link.answer(item)
            continue
        if kind == RESTORE:
            envs.restore(item)
        link.answer(0, envs.snapshot() if kind == SNAPSHOT else None)
    envs.close()


def _parts(settings: EngineSettings, num_workers: int) -> list[Parts]:
    """Rows per worker and group: contiguous, as even as can be, going round."""
    found: list[list[list[int]]] = [
        [[] for _ in range(settings.num_groups)] for _ in range(num_workers)
    ]
    worker = 0
    for group in range(settings.num_groups):
        rows = settings.rows(group)
        parts = min(num_workers, settings.group_size)
        for part in np.array_split(np.arange(rows.start, rows.stop), parts):
            found[worker % num_workers][group] = part.tolist()
            worker += 1
    return list(found)


def _refuse_unimportable(makers: Sequence[EnvMaker]) -> None:
    for maker in dict.fromkeys(makers):
        try:
            importable = b"__main__" not in pickle.dumps(maker)
        except Exception:
            importable = False
        if not importable:
            raise ValueError(
                f"Worker processes cannot import {maker!r}: put the callable into a module, as a "
                "function of its own, or use num_workers=0 to stay in this process."
            )
