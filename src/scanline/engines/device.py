"""Engines that play whole agent steps on a device, whatever launches their kernels.

Takes a launcher (launcher.py) and the settings of every engine; steps are the kernels `play`,
`observe` and `restart` of native/gpu, by the same rules as engine `native`, byte for byte. Kernels
write frames where the caller wants them if that is memory of their device, else frames are copied
from there; numbers are always copied. A group is a stream, and a step ends with an event of it.
Knows neither OpenCL nor CUDA.

Honoured are cached resets, autoreset in the same or the next step, and protocols whose observation
is grey by area resize without frames of a stack's own; others are refused by name.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from .. import _native, random
from ..records import Array, Spaces, StepArrays
from .interface import EngineSettings
from .lanes import LANE_BYTES, FrameTarget, Lanes
from .launcher import Launcher
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
SUPPORTED: Supported = {
    "colour": ("grey",),
    "pooling": ("grey", "none"),
    "resize": ("area",),
    "stack_padding": ("zeros", "repeat"),
    "terminal_frame": ("real",),
}
_RESULTS = ("reward", "raw_reward", "terminated", "truncated", "life_lost", "lives", "depth")
_POLL_SECONDS = 1e-4


class _Sent(NamedTuple):
    """A step under way."""

    target: FrameTarget
    event: Any


class DeviceEngine:
    """Environments in a device's memory."""

    can_snapshot = True

    def __init__(self, settings: EngineSettings, launcher: Launcher) -> None:
        self.name, self.memory = launcher.name, launcher.memory
        self.settings = settings
        check_settings(settings, self.name)
        self._launcher = launcher
        played = atari_games(settings, self.name)
        distinct = sorted(set(played), key=lambda game: game.index)
        self._game_of = [distinct.index(game) for game in played]
        self._games = [
            _native.DeviceGame(native_choice(game, settings), native_options(settings))
            for game in distinct
        ]
        self.spaces = self._spaces()
        self._calls = GroupCalls(settings)
        self._lanes = Lanes(settings, launcher, self._games, self._game_of)
        self._targets: WeakKeyDictionary[StepArrays, FrameTarget] = WeakKeyDictionary()
        self._lane = np.zeros(LANE_BYTES // 8, np.uint64).view(np.uint8)
        self._is_loaded = [False] * settings.num_groups
        self._counters = np.zeros((settings.num_groups, 2, settings.group_size), np.int32)
        self._sent: list[_Sent | None] = [None] * settings.num_groups

    def reset(
        self, group: int, out: StepArrays, mask: Array | None = None, seed: int | None = None
    ) -> None:
        seeds = self._calls.reset(group, mask, seed)
        where = np.ones(self.settings.group_size, np.bool_) if mask is None else mask
        if seeds is not None:
            self._load(group, where, seeds, self.settings.seed if seed is None else seed)
        self._is_loaded[group] = True
        target = self._target(out)
        numbers = self._numbers(group, self._lanes.reset(group, where, target))
        for name in _RESULTS:
            getattr(out, name)[where] = numbers[name][where]
        if target is self._lanes.own:
            frames = np.empty(out.frame.shape, np.uint8)
            self._lanes.read_frames(group, np.array([]), frames, frames)
            out.frame[where] = frames[where]

    def send(self, group: int, actions: Array, out: StepArrays | None = None) -> None:
        self._calls.send(group)
        try:
            target = self._lanes.own if out is None else self._target(out)
            event = self._lanes.step(group, self._checked(group, actions), target)
            self._sent[group] = _Sent(target, event)
        except BaseException:
            self._calls.send_failed(group)
            raise

    def recv(self, group: int, out: StepArrays) -> None:
        self._calls.receive(group)
        sent, self._sent[group] = self._sent[group], None
        assert sent is not None
        numbers = self._numbers(group, sent.event)
        for name in _RESULTS:
            getattr(out, name)[...] = numbers[name]
        if sent.target is self._lanes.own:
            ended = numbers["terminated"] | numbers["truncated"]
            self._lanes.read_frames(group, ended, out.frame, out.final_frame)
        elif sent.target is not self._target(out):
            raise ValueError("recv was given other arrays than send, where frames are by now.")

    def _target(self, out: StepArrays) -> FrameTarget:
        """The caller's memory where kernels can write it, else the lanes' own."""
        found = self._targets.get(out)
        if found is None:
            shape = (self.settings.group_size, *self.spaces.frame_shape)
            if not shape == tuple(out.frame.shape) == tuple(out.final_frame.shape):
                raise ValueError(f"frame and final_frame must be of shape {shape}.")
            views = [self._launcher.view(each) for each in (out.frame, out.final_frame)]
            is_here = all(view is not None for view in views)
            found = self._targets[out] = FrameTarget(*views) if is_here else self._lanes.own
        return found

    def poll(self, timeout_seconds: float) -> list[int]:
        self._calls.refuse_closed()
        deadline = time.monotonic() + timeout_seconds
        while True:
            in_flight = self._calls.in_flight()
            ready = [group for group in in_flight if self._is_ready(group)]
            if ready or not in_flight or time.monotonic() >= deadline:
                return ready
            time.sleep(_POLL_SECONDS)

    def _is_ready(self, group: int) -> bool:
        sent = self._sent[group]  # None while another thread still launches the step
        return sent is not None and self._launcher.is_done(sent.event)

    def counters(self, group: int) -> Mapping[str, Array]:
        total, of_episode = self._counters[group]
        return {"frame_number": total.copy(), "episode_frame_number": of_episode.copy()}

    def snapshot(self) -> list[bytes]:
        self._calls.refuse_in_flight(None, "a snapshot")
        if not all(self._is_loaded):
            raise RuntimeError("Reset before taking a snapshot.")
        snapshots = []
        for env, game in enumerate(self._game_of):
            self._lanes.read(env, self._lane)
            snapshots.append(bytes(self._games[game].snapshot(self._lane)))
        return snapshots

    def restore(self, snapshots: Sequence[bytes]) -> None:
        self._calls.restore(snapshots)
        lanes = np.zeros((len(snapshots), LANE_BYTES // 8), np.uint64).view(np.uint8)
        for env, snapshot in enumerate(snapshots):  # all or none
            self._games[self._game_of[env]].restore(lanes[env], snapshot)
        for env, lane in enumerate(lanes):
            self._lanes.write(env, lane)
            group, row = divmod(env, self.settings.group_size)
            self._counters[group, :, row] = self._games[self._game_of[env]].frame_numbers(lane)
        self._is_loaded = [True] * self.settings.num_groups
        self._calls.restored()

    def close(self) -> None:
        if self._calls.close():
            self._targets.clear()
            del self._lanes

    def _load(self, group: int, where: Array, seeds: Array, seed: int) -> None:
        """Writes lanes whose random draws start anew."""
        key = random.key_of(seed, "environment")
        first = self.settings.rows(group).start
        for row in np.flatnonzero(where).tolist():
            env = first + row
            env_id = self.settings.first_env_id + env
            self._games[self._game_of[env]].load(self._lane, int(seeds[row]), (*key, env_id))
            self._lanes.write(env, self._lane)

    def _numbers(self, group: int, event: Any) -> Array:
        """What the step came to, once it has ended."""
        self._launcher.wait(event)
        numbers = self._lanes.numbers[group]
        total, of_episode = self._counters[group]
        total[:], of_episode[:] = numbers["frame_number"], numbers["episode_frame_number"]
        return numbers

    def _checked(self, group: int, actions: Array) -> Array:
        given = np.asarray(actions)
        if given.shape != (self.settings.group_size,):
            raise ValueError(
                f"actions must be an array of {self.settings.group_size}, not of {given.shape}."
            )
        wrong = np.flatnonzero((given < 0) | (given >= self.spaces.num_actions))
        if wrong.size:
            env = self.settings.rows(group).start + int(wrong[0])
            raise ValueError(f"Environment {env} was given an action outside of its set.")
        return given.astype(np.uint32)

    def _spaces(self) -> Spaces:
        counts = {game.num_actions for game in self._games}
        if len(counts) != 1:
            raise ValueError(
                f"These games have {min(counts)} to {max(counts)} actions; several games in one "
                "engine need the same number: use full_action_space=True."
            )
        shape = tuple(self._games[0].frame_shape)
        return spaces_of(self.settings.protocol, shape, "uint8", counts.pop())


def check_settings(settings: EngineSettings, engine: str) -> None:
    """Refuses what kernels cannot do, before anything is built."""
    check_protocol(settings.protocol, SUPPORTED, engine, NEAREST)
    if settings.reset != "cached":
        raise ValueError(
            f"Engine {engine!r} resets from cached starts only, not by reset={settings.reset!r}; "
            "use reset='cached' or engine='native'."
        )
    if settings.autoreset == "disabled":
        raise ValueError(
            f"Engine {engine!r} starts ended episodes by itself; "
            "use autoreset='same-step' or 'next-step', or engine='native'."
        )
