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
from .interface import EngineError, EngineSettings, EnvMaker
from .snapshots import COUNT, FLAG, NOTHING, pack, unpack

Env = gymnasium.Env[Any, Any]
Arrays = Mapping[str, npt.NDArray[Any]]
Parts = Sequence[Sequence[int]]
"""Rows that a worker serves, per group."""

STEP, RESET, SNAPSHOT, RESTORE, READY, RENDER = range(6)
"""Codes of orders; STEP and RESET come with a group, RESTORE with snapshots by row."""
_START_SECONDS = 120.0
"""Longest wait for the workers to import and build their environments."""


@runtime_checkable
class SnapshotEnv(Protocol):
    """What `env.unwrapped` may offer: its whole state as bytes, random generator included."""

    def snapshot(self) -> bytes: ...

    def restore(self, snapshot: bytes) -> None: ...


def array_fields(num_envs: int, frame_shape: tuple[int, ...], frame_dtype: str) -> Fields:
    """The arrays of all environments of an engine, one row each."""
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


def make_env(maker: EnvMaker, renders: bool = False) -> Env:
    """One environment from a Gymnasium id, the name of an Atari game, or a callable."""
    if not isinstance(maker, str):
        env: Env = maker()
        return env
    try:
        mode = "rgb_array" if renders else None
        return gymnasium.make(_gymnasium_id(maker), disable_env_checker=True, render_mode=mode)
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

    def __init__(self, maker: EnvMaker, row: int, arrays: Arrays, settings: EngineSettings) -> None:
        self._row, self._arrays = row, arrays
        self._protocol, self._autoreset = settings.protocol, settings.autoreset
        self._env = make_env(maker, settings.renders)
        actions, shape = self._env.action_space, self._env.observation_space.shape
        assert isinstance(actions, gymnasium.spaces.Discrete) and shape is not None
        self._first_action = int(actions.start)
        self._frame, self._final_frame = (
            arrays[name][row].reshape(shape) for name in ("frame", "final_frame")
        )  # the row's memory in the environment's own shape
        limits = (layer for layer in _wrappers(self._env) if isinstance(layer, wrappers.TimeLimit))
        self._limit = next(limits, None)
        self._num_frames = 0
        self._waits_for_reset = False

    def reset_where_masked(self) -> None:
        if self._arrays["mask"][self._row]:
            seed = self._arrays["seed"].item(self._row)
            self._reset(None if seed < 0 else seed)

    def step(self) -> None:
        if self._waits_for_reset:
            self._write(0.0, False, False)
            return self._reset()
        total, limit = 0.0, self._protocol.episode_limit_frames
        action = self._arrays["action"].item(self._row) + self._first_action
        for _ in range(self._protocol.frame_skip):
            frame, reward, terminated, truncated, info = self._env.step(action)
            total += float(reward)
            self._num_frames += 1
            truncated = truncated or (self._num_frames == limit and not terminated)
            if terminated or truncated:
                break
        self._frame[...] = frame
        self._arrays["lives"][self._row] = info.get("lives", 0)
        self._write(total, terminated, truncated)
        if terminated or truncated:
            self._final_frame[...] = frame
            self._waits_for_reset = True
            if self._autoreset == "same-step":
                self._reset()
        return None

    def snapshot(self) -> bytes:
        elapsed = self._limit._elapsed_steps if self._limit else None
        header = {"frames": self._num_frames, "waits": self._waits_for_reset, "elapsed": elapsed}
        return pack(b"", header, self._inner().snapshot())

    def restore(self, snapshot: bytes) -> None:
        bounds = {"frames": COUNT, "waits": FLAG, "elapsed": COUNT if self._limit else NOTHING}
        state, body = unpack(b"", snapshot, bounds)
        self._env.reset()  # wrappers refuse to step before they saw one
        self._inner().restore(body)
        self._num_frames, self._waits_for_reset = state["frames"], state["waits"]
        if self._limit:
            self._limit._elapsed_steps = state["elapsed"]

    def render(self) -> npt.NDArray[Any]:
        return np.asarray(self._env.render())

    def close(self) -> None:
        self._env.close()

    def _reset(self, seed: int | None = None) -> None:
        self._frame[...], info = self._env.reset(seed=seed)
        self._arrays["lives"][self._row] = info.get("lives", 0)
        self._num_frames, self._waits_for_reset = 0, False

    def _write(self, raw_reward: float, terminated: bool, truncated: bool) -> None:
        self._arrays["raw_reward"][self._row] = raw_reward
        self._arrays["terminated"][self._row] = terminated
        self._arrays["truncated"][self._row] = truncated

    def _inner(self) -> SnapshotEnv:
        inner = self._env.unwrapped
        assert isinstance(inner, SnapshotEnv)
        return inner


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
    """The environments of one process, each addressed by its row."""

    def __init__(self, settings: EngineSettings, rows: Sequence[int], arrays: Arrays) -> None:
        self._first_env_id, makers = settings.first_env_id, settings.games
        self._envs = {row: RowEnv(makers[row], row, arrays, settings) for row in rows}

    def run(self, kind: int, rows: Sequence[int]) -> None:
        """Steps or resets these rows; an exception leaves with the environment's number on it."""
        row = -1
        try:
            for row in rows:
                if kind == STEP:
                    self._envs[row].step()
                else:
                    self._envs[row].reset_where_masked()
        except Exception as error:
            error.add_note(f"This was environment {self._first_env_id + row}.")
            raise

    def snapshot(self) -> dict[int, bytes]:
        return {row: env.snapshot() for row, env in self._envs.items()}

    def render(self) -> dict[int, npt.NDArray[Any]]:
        return {row: env.render() for row, env in self._envs.items()}

    def restore(self, by_row: Mapping[int, bytes]) -> None:
        for row, env in self._envs.items():
            env.restore(by_row[row])

    def close(self, grace_seconds: float = 0.0) -> None:
        for env in self._envs.values():
            env.close()


class InProcess(LocalEnvs):
    """All environments here, stepped when their group is waited for: for debugging and tests."""

    def __init__(self, settings: EngineSettings, layout: Fields) -> None:
        self.arrays = {name: np.zeros(shape, dtype) for name, (shape, dtype) in layout.items()}
        self._settings = settings
        self._orders: deque[tuple[int, int]] = deque()  # filled by any thread
        with _failing_env():
            super().__init__(settings, range(settings.num_envs), self.arrays)

    def order(self, group: int, kind: int) -> None:
        self._orders.append((group, kind))

    @_failing_env()
    def done(self, timeout_seconds: float) -> list[int]:
        finished = []
        while self._orders:
            group, kind = self._orders.popleft()
            rows = self._settings.rows(group)
            self.run(kind, range(rows.start, rows.stop))
            finished.append(group)
        return finished


class EnvWorkers:
    """Worker processes with environments each; arrays in shared memory, orders through pipes.

    One order per group may be under way.
    """

    def __init__(self, settings: EngineSettings, layout: Fields, num_workers: int) -> None:
        _refuse_unimportable(settings.games)
        shared = SharedArrays(layout)
        self.arrays: Arrays = shared.arrays
        self._wait_seconds = settings.wait_seconds
        self._parts = _parts(settings, num_workers)
        own = replace(settings, is_paused=None)  # which need not be importable
        args = [(own, rows, dict(layout), shared.fd) for rows in self._parts]
        self._pool = start_workers(serve, args, fds=(shared.fd,))
        shared.close_fd()
        self._pending: dict[int, set[int]] = {}
        try:
            self._call_all(READY, max(_START_SECONDS, settings.wait_seconds))
        except BaseException:
            self.close(0.0)
            raise

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

    def snapshot(self) -> dict[int, bytes]:
        return self._gathered(SNAPSHOT)

    def render(self) -> dict[int, npt.NDArray[Any]]:
        return self._gathered(RENDER)

    def _gathered(self, kind: int) -> dict[int, Any]:
        answers = self._call_all(kind, self._wait_seconds)
        return {row: found for answer in answers for row, found in answer.items()}

    def restore(self, by_row: Mapping[int, bytes]) -> None:
        self._call_all(RESTORE, self._wait_seconds, by_row)

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
    link: ParentLink, settings: EngineSettings, parts: Parts, layout: Fields, fd: int
) -> None:
    """What a worker process does until its parent closes the pipe."""
    rows = [row for part in parts for row in part]
    envs = LocalEnvs(settings, rows, SharedArrays(layout, fd).arrays)
    for kind, item in link.orders():
        if kind in (STEP, RESET):
            envs.run(kind, parts[item])
            link.answer(item)
            continue
        if kind == RESTORE:
            envs.restore(item)
        asked = {SNAPSHOT: envs.snapshot, RENDER: envs.render}
        link.answer(0, asked[kind]() if kind in asked else None)
    envs.close()


def _parts(settings: EngineSettings, num_workers: int) -> list[Parts]:
    """Rows per worker and group: contiguous, as even as can be, going round."""
    rows = np.arange(settings.num_envs).reshape(settings.num_groups, -1)
    split = [np.array_split(own, num_workers) for own in rows]
    shift = min(num_workers, settings.group_size)
    return [
        [
            parts[(worker - group * shift) % num_workers].tolist()
            for group, parts in enumerate(split)
        ]
        for worker in range(num_workers)
    ]


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
