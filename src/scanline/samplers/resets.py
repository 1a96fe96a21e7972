"""Deferred resets: an engine whose ended environments wait, or are replaced, until learning begins.

Takes an engine whose environments are groups of their own and are not reset by themselves; gives
one with the sampler's groups. Between `begin_rollout` and `end_rollout` an ended environment is
held, and its steps are not played, or a reserve that has just been reset takes its place;
`end_rollout` resets what has ended in a thread, while learning goes on. Outside, ends are reset at
once. Knows no policy and no store.

A game's start may take many frames, for which all environments of a lockstep would wait (Stooke and
Abbeel 2018, section 4.1). Which instance is reset when depends on the steps alone, never on the
clock, so equal seeds give equal data. Where no reserve is left, an environment is reset at once.
"""

from __future__ import annotations

import io
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import fields, replace
from typing import Literal
from zipfile import BadZipFile

import numpy as np

from ..devices import HOST
from ..engines.interface import Engine, EngineError, EngineSettings
from ..records import Array, Spaces, StepArrays

ResetMode = Literal["inline", "hold", "reserve"]

_ALL = np.ones(1, np.bool_)
"""Mask of a reset that goes on with the same game after a lost life."""
_NUMBERS = ("instance", "ready", "ended", "held")


class DeferredResetEngine:
    """B environments played by B + R instances of an inner engine."""

    def __init__(self, inner: Engine, settings: EngineSettings) -> None:
        """`settings`: those of the B environments; the inner engine has R instances more."""
        self._inner, self.settings = inner, settings
        self.name, self.can_snapshot = inner.name, inner.can_snapshot
        self.memory = HOST
        self.spaces: Spaces = inner.spaces
        num_envs, num_instances = settings.num_envs, inner.settings.num_envs
        assert inner.settings.group_size == 1
        assert inner.settings.autoreset == "disabled"
        self._swaps = num_instances > num_envs
        self._life_waits = settings.protocol.life_loss_presses
        self._instance = list(range(num_envs))  # that plays each environment
        self._ready = deque(range(num_envs, num_instances))  # reserves, reset and waiting
        self._ended: list[int] = []  # instances to be reset at the end of the rollout
        self._held: list[int] = []  # environments that are not played until then
        self.playing = np.ones(num_envs, np.bool_)
        """Which environments played the step that was received last."""
        self._starts = StepArrays.allocate(self.spaces, num_instances)
        self._plays = False
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="resets")
        self._resetting: Future[None] | None = None

    def begin_rollout(self) -> list[int]:
        """From now on ends wait for `end_rollout`; gives the environments that have new games."""
        self._wait()
        self._plays = True
        fresh, self._held = self._held, []
        if self._swaps:
            self._ready.extend(self._ended)
        self._ended = []
        return fresh

    def end_rollout(self) -> None:
        """Resets what has ended, in a thread, while the caller learns."""
        self._plays = False
        self._resetting = self._pool.submit(self._reset_all, list(self._ended))

    def start_of(self, env: int) -> StepArrays:
        """The first frame, and what belongs to it, of the game that an environment has begun."""
        return _row(self._starts, self._instance[env])

    def reset(
        self, group: int, out: StepArrays, mask: Array | None = None, seed: int | None = None
    ) -> None:
        self._wait()
        envs = self._envs_of(group)
        for row, env in enumerate(envs):
            if mask is None or mask[row]:
                self._inner.reset(self._instance[env], _row(out, row), seed=seed)
        if mask is None and envs[-1] == self.settings.num_envs - 1:
            self._held, self._ended = [], []
            for instance in self._ready:
                self._inner.reset(instance, _row(self._starts, instance), seed=seed)

    def send(self, group: int, actions: Array, out: StepArrays | None = None) -> None:
        for row, env in enumerate(self._envs_of(group)):
            self.playing[env] = env not in self._held
            if self.playing[env]:
                self._inner.send(self._instance[env], actions[row : row + 1])

    def recv(self, group: int, out: StepArrays) -> None:
        for row, env in enumerate(self._envs_of(group)):
            own = _row(out, row)
            if not self.playing[env]:
                self._repeat_last(env, own)
                continue
            self._inner.recv(self._instance[env], own)
            if own.terminated[0] or own.truncated[0]:
                np.copyto(own.final_frame, own.frame)
                self._end(env, own)
            elif own.life_lost[0] and self._life_waits:
                self._inner.reset(self._instance[env], self.start_of(env), _ALL)
                _copy_start(self.start_of(env), own)

    def _end(self, env: int, out: StepArrays) -> None:
        instance = self._instance[env]
        if self._plays and self._ready:
            self._ended.append(instance)
            self._instance[env] = self._ready.popleft()
        elif self._plays and not self._swaps:
            self._ended.append(instance)
            self._held.append(env)
            _copy_start(out, self.start_of(env))  # where it stands still until then
            return
        else:
            self._inner.reset(instance, _row(self._starts, instance))
        _copy_start(self.start_of(env), out)

    def _repeat_last(self, env: int, out: StepArrays) -> None:
        """The last frame again, and nothing gained; the stack grows as in any step."""
        for field in (out.reward, out.raw_reward, out.terminated, out.truncated, out.life_lost):
            field[...] = 0
        still = self.start_of(env)
        np.minimum(still.depth + np.uint8(1), self.spaces.stack, out=still.depth, casting="unsafe")
        _copy_start(still, out)

    def poll(self, timeout_seconds: float) -> list[int]:
        raise EngineError("Groups of an engine with reset_mode are waited for in their order.")

    def counters(self, group: int) -> Mapping[str, Array]:
        return {}

    def snapshot(self) -> list[bytes]:
        """The instances', and one of which instance plays which environment."""
        self._wait()
        numbers = {name: np.array(getattr(self, f"_{name}"), np.int64) for name in _NUMBERS}
        starts = {f.name: getattr(self._starts, f.name) for f in fields(StepArrays)}
        own = io.BytesIO()
        np.savez(own, allow_pickle=False, **{**numbers, **starts})
        return [*self._inner.snapshot(), own.getvalue()]

    def restore(self, snapshots: Sequence[bytes]) -> None:
        self._wait()
        own = _loaded(snapshots[-1])
        if not self._fits(own):
            raise ValueError(
                "This snapshot cannot be restored because what it says of reserves and held "
                "environments does not fit these settings."
            )
        self._inner.restore(snapshots[:-1])
        for name in _NUMBERS:
            kind = type(getattr(self, f"_{name}"))
            setattr(self, f"_{name}", kind(own[name].tolist()))
        for field in fields(StepArrays):
            getattr(self._starts, field.name)[...] = own[field.name]

    def _fits(self, own: Mapping[str, Array]) -> bool:
        """Every instance plays, waits or is to be reset, exactly once; the arrays are like ours."""
        starts = {f.name: getattr(self._starts, f.name) for f in fields(StepArrays)}
        if own.keys() != {*_NUMBERS, *starts}:
            return False
        if any((own[n].shape, own[n].dtype) != (a.shape, a.dtype) for n, a in starts.items()):
            return False
        if any(own[name].ndim != 1 or own[name].dtype != np.int64 for name in _NUMBERS):
            return False
        instance, ready, ended, held = (own[name].tolist() for name in _NUMBERS)
        instances = [*instance, *ready, *(ended if self._swaps else ())]
        return (
            sorted(instances) == list(range(self._inner.settings.num_envs))
            and len(instance) == self.settings.num_envs
            and set(ended) <= set(instances)
            and set(held) <= set(range(self.settings.num_envs))
            and bool(np.all((own["depth"] >= 1) & (own["depth"] <= self.spaces.stack)))
        )

    def close(self) -> None:
        self._pool.shutdown(wait=True)
        self._inner.close()

    def _envs_of(self, group: int) -> range:
        size = self.settings.group_size
        return range(group * size, (group + 1) * size)

    def _reset_all(self, instances: Sequence[int]) -> None:
        for instance in instances:
            self._inner.reset(instance, _row(self._starts, instance))

    def _wait(self) -> None:
        """Until the resets of the last rollout are done; each has the engine's own time limit."""
        if self._resetting is not None:
            self._resetting.result()
            self._resetting = None


def inner_settings(settings: EngineSettings, num_reserves: int, rank: int = 0) -> EngineSettings:
    """What the engine inside is built from: every instance a group, numbered over all learners."""
    num_instances = settings.num_envs + num_reserves
    return replace(
        settings,
        num_envs=num_instances,
        num_groups=num_instances,
        first_env_id=settings.first_env_id + rank * num_reserves,
        autoreset="disabled",
    )


def _loaded(snapshot: bytes) -> dict[str, Array]:
    try:
        with np.load(io.BytesIO(snapshot)) as own:
            return dict(own)
    except (ValueError, KeyError, OSError, EOFError, BadZipFile) as error:
        raise ValueError("This is no snapshot of an engine with reset_mode.") from error


def _row(arrays: StepArrays, row: int) -> StepArrays:
    """The same memory, one environment."""
    parts = {f.name: getattr(arrays, f.name)[row : row + 1] for f in fields(StepArrays)}
    return StepArrays(**parts)


def _copy_start(source: StepArrays, target: StepArrays) -> None:
    for name in ("frame", "depth", "lives", "start_frames"):
        np.copyto(getattr(target, name), getattr(source, name))
