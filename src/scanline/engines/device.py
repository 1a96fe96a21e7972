"""Engines that play whole agent steps on a device, whatever launches their kernels.

Takes a launcher (launcher.py) and the settings of every engine; steps are the kernels `play`,
`observe` and `restart` of native/gpu, by the same rules as engine `native`, byte for byte. Results
are copied into the caller's arrays. Knows neither OpenCL nor CUDA.

Honoured are cached resets, autoreset in the same or the next step, and protocols whose observation
is grey by area resize without frames of a stack's own; others are refused by name.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import _native, random
from ..records import Array, Spaces, StepArrays
from .interface import EngineSettings
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
NUMBERS = np.dtype(
    [
        ("reward", np.float32),
        ("raw_reward", np.float32),
        ("episode_return", np.float32),
        ("lives", np.int32),
        ("episode_agent_steps", np.int32),
        ("frame_number", np.int32),
        ("episode_frame_number", np.int32),
        ("terminated", np.bool_),
        ("truncated", np.bool_),
        ("life_lost", np.bool_),
        ("depth", np.uint8),
    ]
)
"""`StepNumbers` of native/gpu/lane.h."""
_RESULTS = ("reward", "raw_reward", "terminated", "truncated", "life_lost", "lives", "depth")
_POLL_SECONDS = 1e-4


@dataclass(frozen=True, eq=False)
class _GameBuffers:
    """What the kernels read of one game."""

    record: Any
    rom: Any
    starts: Any
    start_frames: Any
    firsts: Any
    weights: Any


@dataclass(frozen=True, eq=False)
class _Part:
    """Environments of one game within a group: what one launch is for."""

    game: int
    envs: Array
    """Numbers within the engine, uint32."""
    buffer: Any
    """The same on the device; as large as all of them."""


class DeviceEngine:
    """Environments in a device's memory."""

    can_snapshot = True

    def __init__(self, settings: EngineSettings, launcher: Launcher) -> None:
        self.name = launcher.name
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
        for cartridge in sorted({game.cartridge for game in self._games}):
            launcher.compile(cartridge)
        self._streams = [launcher.stream() for _ in range(settings.num_groups)]
        self._allocate()
        self._lane = np.zeros(_native.DeviceGame.LANE_BYTES // 8, np.uint64).view(np.uint8)
        self._is_loaded = [False] * settings.num_groups
        self._counters = np.zeros((settings.num_groups, 2, settings.group_size), np.int32)

    def _allocate(self) -> None:
        new, num = self._launcher.allocate, self.settings.num_envs
        self._frame_bytes = int(np.prod(self.spaces.frame_shape))
        self._lanes = new(num * _native.DeviceGame.LANE_BYTES)
        self._actions, self._numbers = new(num * 4), new(num * NUMBERS.itemsize)
        self._frames, self._final_frames = (
            new(num * self._frame_bytes),
            new(num * self._frame_bytes),
        )
        self._buffers = [
            _GameBuffers(*map(self._uploaded, _parts_of(game))) for game in self._games
        ]
        self._parts = [self._parts_of_group(group) for group in range(self.settings.num_groups)]

    def _uploaded(self, data: bytes) -> Any:
        buffer = self._launcher.allocate(len(data))
        self._launcher.write(self._streams[0], buffer, np.frombuffer(data, np.uint8))
        return buffer

    def _parts_of_group(self, group: int) -> list[_Part]:
        rows = self.settings.rows(group)
        chosen = np.asarray(self._game_of)[rows]
        parts = []
        for game in sorted(set(chosen.tolist())):
            envs = (np.flatnonzero(chosen == game) + rows.start).astype(np.uint32)
            buffer = self._launcher.allocate(envs.nbytes)
            self._launcher.write(self._streams[group], buffer, envs)
            parts.append(_Part(game, envs, buffer))
        return parts

    # ---- the interface ----

    def reset(
        self, group: int, out: StepArrays, mask: Array | None = None, seed: int | None = None
    ) -> None:
        seeds = self._calls.reset(group, mask, seed)
        where = np.ones(self.settings.group_size, np.bool_) if mask is None else mask
        if seeds is not None:
            self._load(group, where, seeds, self.settings.seed if seed is None else seed)
        self._is_loaded[group] = True
        first = self.settings.rows(group).start
        stream = self._streams[group]
        for part in self._parts[group]:
            chosen = part.envs[where[part.envs - first]]
            if not chosen.size:
                continue
            envs = self._launcher.allocate(chosen.nbytes)
            self._launcher.write(stream, envs, chosen)
            self._restart(group, part.game, envs, chosen.size, is_reset=True)
        numbers = self._read_numbers(group)
        for name in _RESULTS:
            getattr(out, name)[where] = numbers[name][where]
        frames = np.empty(out.frame.shape, np.uint8)
        self._launcher.read(stream, self._frames, frames, first * self._frame_bytes)
        out.frame[where] = frames[where]

    def send(self, group: int, actions: Array, out: StepArrays | None = None) -> None:
        self._calls.send(group)
        try:
            self._launch_step(group, self._checked(group, actions))
        except BaseException:
            self._calls.send_failed(group)
            raise

    def recv(self, group: int, out: StepArrays) -> None:
        self._calls.receive(group)
        stream, first = self._streams[group], self.settings.rows(group).start
        numbers = self._read_numbers(group)
        for name in _RESULTS:
            getattr(out, name)[...] = numbers[name]
        self._launcher.read(stream, self._frames, out.frame, first * self._frame_bytes)
        for row in np.flatnonzero(numbers["terminated"] | numbers["truncated"]).tolist():
            offset = (first + row) * self._frame_bytes
            self._launcher.read(stream, self._final_frames, out.final_frame[row], offset)

    def poll(self, timeout_seconds: float) -> list[int]:
        self._calls.refuse_closed()
        deadline = time.monotonic() + timeout_seconds
        while True:
            in_flight = self._calls.in_flight()
            ready = [group for group in in_flight if self._launcher.is_idle(self._streams[group])]
            if ready or not in_flight or time.monotonic() >= deadline:
                return ready
            time.sleep(_POLL_SECONDS)

    def counters(self, group: int) -> Mapping[str, Array]:
        total, of_episode = self._counters[group]
        return {"frame_number": total.copy(), "episode_frame_number": of_episode.copy()}

    def snapshot(self) -> list[bytes]:
        self._calls.refuse_in_flight(None, "a snapshot")
        if not all(self._is_loaded):
            raise RuntimeError("Reset before taking a snapshot.")
        snapshots = []
        for env, game in enumerate(self._game_of):
            self._launcher.read(self._stream_of(env), self._lanes, self._lane, self._place(env))
            snapshots.append(bytes(self._games[game].snapshot(self._lane)))
        return snapshots

    def restore(self, snapshots: Sequence[bytes]) -> None:
        self._calls.restore(snapshots)
        lanes = np.zeros((len(snapshots), _native.DeviceGame.LANE_BYTES // 8), np.uint64).view(
            np.uint8
        )
        for env, snapshot in enumerate(snapshots):  # all or none
            self._games[self._game_of[env]].restore(lanes[env], snapshot)
        for env, lane in enumerate(lanes):
            self._launcher.write(self._stream_of(env), self._lanes, lane, self._place(env))
            group, row = divmod(env, self.settings.group_size)
            self._counters[group, :, row] = self._games[self._game_of[env]].frame_numbers(lane)
        self._is_loaded = [True] * self.settings.num_groups
        self._calls.restored()

    def close(self) -> None:
        if self._calls.close():
            self._buffers, self._parts = [], []
            self._lanes = self._frames = self._final_frames = self._numbers = None

    # ---- launches ----

    def _load(self, group: int, where: Array, seeds: Array, seed: int) -> None:
        """Writes lanes whose random draws start anew."""
        key = random.key_of(seed, "environment")
        first = self.settings.rows(group).start
        for row in np.flatnonzero(where).tolist():
            env = first + row
            env_id = self.settings.first_env_id + env
            self._games[self._game_of[env]].load(self._lane, int(seeds[row]), (*key, env_id))
            self._launcher.write(self._streams[group], self._lanes, self._lane, self._place(env))

    def _launch_step(self, group: int, actions: Array) -> None:
        stream, first = self._streams[group], self.settings.rows(group).start
        self._launcher.write(stream, self._actions, actions, first * 4)
        for part in self._parts[group]:
            game, num = self._buffers[part.game], len(part.envs)
            self._launcher.launch(
                stream,
                (self._games[part.game].cartridge, "scanline_play"),
                num,
                [
                    *(self._lanes, game.record, game.rom, game.starts, game.start_frames),
                    *(part.buffer, self._actions, self._numbers, self._frames),
                ],
                [self._frame_bytes, num],
            )
            self._launcher.launch(
                stream,
                (self._games[part.game].cartridge, "scanline_observe"),
                num * self.spaces.frame_shape[0],
                [
                    *(self._lanes, game.record, part.buffer, game.firsts, game.weights),
                    *(self._numbers, self._frames, self._final_frames),
                ],
                [self._frame_bytes, num],
            )
            if self.settings.autoreset == "same-step":
                self._restart(group, part.game, part.buffer, num, is_reset=False)

    def _restart(self, group: int, number: int, envs: Any, num: int, *, is_reset: bool) -> None:
        game = self._buffers[number]
        self._launcher.launch(
            self._streams[group],
            (self._games[number].cartridge, "scanline_restart"),
            num,
            [
                *(self._lanes, game.record, game.rom, game.starts, game.start_frames),
                *(envs, self._numbers, self._frames),
            ],
            [self._frame_bytes, num, int(is_reset)],
        )

    def _read_numbers(self, group: int) -> Array:
        numbers = np.empty(self.settings.group_size, NUMBERS)
        offset = self.settings.rows(group).start * NUMBERS.itemsize
        self._launcher.read(self._streams[group], self._numbers, numbers, offset)
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

    def _place(self, env: int) -> int:
        return int(env * _native.DeviceGame.LANE_BYTES)

    def _stream_of(self, env: int) -> Any:
        return self._streams[env // self.settings.group_size]

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


def _parts_of(game: _native.DeviceGame) -> list[bytes]:
    return [game.record, game.rom, game.starts, game.start_frames, game.firsts, game.weights]
