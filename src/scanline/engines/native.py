"""Engine `native`: our own emulator, stepped by threads without Python in between.

Takes names of Atari games, one for all environments or one each; writes steps into the caller's
arrays as every engine does. Honours every protocol but `as-is`. Knows no ale-py: only ROM files.

With `reset="ale"` the random numbers are those that ale-py's vector environment draws from the same
seeds, so the two engines give the same data; with `reset="cached"` they come from counters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from .. import random
from .._native import Batch, StackTarget, StepTarget
from ..devices import HOST
from ..processes import granted_cores
from ..records import Array, Spaces, StepArrays
from .interface import Engine, EngineError, EngineSettings, StackArrays
from .rules import (
    GroupCalls,
    Supported,
    atari_games,
    check_protocol,
    native_choice,
    native_options,
    spaces_of,
)

NEAREST = "baselines"
_SUPPORTED: Supported = {"colour": ("grey", "luma", "rgb", "ram")}
_START_SECONDS = 600.0
"""Longest wait for a reset: it may load a console for every environment of a large group."""


class NativeEngine:
    """A `_native.Batch` behind the engine's interface."""

    name = "native"
    can_snapshot = True
    memory = HOST

    def __init__(self, settings: EngineSettings) -> None:
        check_protocol(settings.protocol, _SUPPORTED, self.name, NEAREST)
        self.settings = settings
        played = atari_games(settings, self.name)
        distinct = sorted(set(played), key=lambda game: game.index)
        self._batch = Batch(
            [native_choice(game, settings) for game in distinct],
            [distinct.index(game) for game in played],
            native_options(settings),
            settings.num_groups,
            min(settings.num_threads or granted_cores(), settings.num_envs),
        )
        self.spaces = self._spaces()
        self._calls = GroupCalls(settings)
        self._targets: WeakKeyDictionary[StepArrays, StepTarget] = WeakKeyDictionary()
        self._in_flight: dict[int, StepTarget] = {}
        """Arrays that threads write to, kept alive meanwhile."""
        self._counters = np.zeros((settings.num_groups, 2, settings.group_size), np.int32)

    @property
    def bytes_per_env(self) -> int:
        """Memory of one environment, what the games share aside."""
        return int(self._batch.bytes_per_env)

    def reset(
        self, group: int, out: StepArrays, mask: Array | None = None, seed: int | None = None
    ) -> None:
        seeds = self._calls.reset(group, mask, seed)  # of ALE's generators
        key = random.key_of(self.settings.seed if seed is None else seed, "environment")
        first = self.settings.first_env_id + self.settings.rows(group).start
        # After a lost life, and only there, a masked reset goes on with the same game.
        resume = mask is not None and seeds is None and self.settings.autoreset == "disabled"
        target, keys = self._target(out), (*key, first)
        try:
            self._batch.reset(group, target, mask, seeds, keys, resume, _START_SECONDS)
        except TimeoutError as error:
            raise EngineError(str(error)) from error

    def send(self, group: int, actions: Array, out: StepArrays | None = None) -> None:
        self._send(group, actions, None if out is None else self._target(out))

    def send_stacked(
        self,
        group: int,
        actions: Array,
        strengths: Array | None,
        out: StepArrays,
        stacks: StackArrays,
    ) -> None:
        self._send(group, actions, self._target(out), StackTarget(*stacks), strengths)

    def recv(self, group: int, out: StepArrays) -> None:
        target = self._target(out)
        if self._in_flight.get(group, target) is not target:
            raise ValueError(f"Group {group} was sent with other arrays; receive it with the same.")
        self._calls.receive(group)
        try:
            self._batch.recv(group, target, self.settings.wait_seconds)
        except TimeoutError as error:
            raise EngineError(str(error)) from error
        self._in_flight.pop(group, None)

    def poll(self, timeout_seconds: float) -> list[int]:
        self._calls.refuse_closed()
        return list(self._batch.poll(timeout_seconds))

    def counters(self, group: int) -> Mapping[str, Array]:
        total, of_episode = self._counters[group]
        self._batch.counters(group, total, of_episode)
        return {"frame_number": total.copy(), "episode_frame_number": of_episode.copy()}

    def start_recording(self, env: int) -> None:
        """Keeps the picture of every raw frame from now on, until the game starts anew."""
        self._calls.refuse_in_flight(None, "a recording")
        self._batch.start_recording(env)

    def take_recorded(self, env: int) -> Array:
        """Pictures in colour since the last call, uint8 [frames, H, 160, 3]."""
        self._calls.refuse_in_flight(None, "a recording")
        pictures: Array = self._batch.take_recorded(env)
        return pictures

    def screens(self) -> list[Array]:
        """The consoles' screens in colour, their newest frames, uint8 [H, 160, 3] each."""
        self._calls.refuse_in_flight(None, "the screens")
        return [self._batch.screen(env) for env in range(self.settings.num_envs)]

    def snapshot(self) -> list[bytes]:
        self._calls.refuse_in_flight(None, "a snapshot")
        return [self._batch.snapshot(env) for env in range(self.settings.num_envs)]

    def restore(self, snapshots: Sequence[bytes]) -> None:
        self._calls.restore(snapshots)
        for env, snapshot in enumerate(snapshots):  # all or none
            self._batch.check_snapshot(env, snapshot)
        for env, snapshot in enumerate(snapshots):
            self._batch.restore(env, snapshot)
        self._calls.restored()

    def close(self) -> None:
        if self._calls.close():
            del self._batch

    def _send(
        self,
        group: int,
        actions: Array,
        target: StepTarget | None,
        *further: Any,
    ) -> None:
        self._calls.send(group)
        try:
            self._batch.send(group, np.ascontiguousarray(actions, np.int64), target, *further)
        except BaseException:
            self._calls.send_failed(group)
            raise
        if target is not None:
            self._in_flight[group] = target

    def _target(self, out: StepArrays) -> StepTarget:
        """The arrays as threads take them, in the order of their fields; made once for each."""
        found = self._targets.get(out)
        if found is None:
            arrays = tuple(getattr(out, field.name) for field in fields(out))
            found = self._targets[out] = StepTarget(arrays)
        return found

    def _spaces(self) -> Spaces:
        counts = {len(self._batch.actions(env)) for env in range(self.settings.num_envs)}
        if len(counts) != 1:
            raise ValueError(
                f"These games have {min(counts)} to {max(counts)} actions; several games in one "
                "engine need the same number: use full_action_space=True."
            )
        shape = tuple(self._batch.frame_shape)
        return spaces_of(self.settings.protocol, shape, "uint8", counts.pop())


build: Callable[[EngineSettings], Engine] = NativeEngine
