"""Lanes: environments in the memory of a device, and the launches that step them.

Takes a launcher, games as the bytes of buffers, and where frames go; gives events after which the
numbers of a group's step are in host memory. Knows the arguments of every kernel, and nothing of
the order of an engine's calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import _native
from ..records import Array, Frames
from .interface import EngineSettings
from .launcher import Launcher

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
LANE_BYTES: int = _native.DeviceGame.LANE_BYTES


@dataclass(frozen=True, eq=False)
class GameBuffers:
    """What the kernels read of one game."""

    cartridge: str
    record: Any
    rom: Any
    starts: Any
    start_frames: Any
    firsts: Any
    weights: Any


@dataclass(frozen=True, eq=False)
class LanePart:
    """Environments of one game within a group: what one launch is for."""

    game: int
    envs: Array
    """Numbers within the engine, uint32."""
    buffer: Any
    """The same on the device."""


@dataclass(frozen=True, eq=False)
class FrameTarget:
    """Buffers that kernels write frames into: a group's, or those of all groups."""

    newest: Any
    final: Any


class Lanes:
    """Buffers of all environments, and a stream for each group."""

    def __init__(
        self,
        settings: EngineSettings,
        launcher: Launcher,
        games: Sequence[_native.DeviceGame],
        game_of: Sequence[int],
    ) -> None:
        """`game_of`: the game of each environment, by its number."""
        self._settings, self._launcher = settings, launcher
        for cartridge in sorted({game.cartridge for game in games}):
            launcher.compile(cartridge)
        groups, num = range(settings.num_groups), settings.num_envs
        self._streams = [launcher.stream() for _ in groups]
        self._height = games[0].frame_shape[0]
        self._frame_bytes = int(np.prod(games[0].frame_shape))
        self._lanes = launcher.allocate(num * LANE_BYTES)
        self._actions = launcher.allocate(num * 4)
        self._numbers = launcher.allocate(num * NUMBERS.itemsize)
        self.own = FrameTarget(*(launcher.allocate(num * self._frame_bytes) for _ in range(2)))
        """Frames of all groups, for a caller whose memory kernels cannot write."""
        self._games = [self._game_buffers(game) for game in games]
        self._parts = [self._parts_of(group, np.asarray(game_of)) for group in groups]
        num_bytes = settings.group_size * NUMBERS.itemsize
        self.numbers = [launcher.staging(num_bytes).view(NUMBERS) for _ in groups]
        """[b] of each group's last step."""

    def _game_buffers(self, game: _native.DeviceGame) -> GameBuffers:
        parts = (game.record, game.rom, game.starts, game.start_frames, game.firsts, game.weights)
        data = (np.frombuffer(part, np.uint8) for part in parts)
        return GameBuffers(game.cartridge, *(self._uploaded(0, each) for each in data))

    def _uploaded(self, group: int, data: Array) -> Any:
        buffer = self._launcher.allocate(data.nbytes)
        self._launcher.write(self._streams[group], buffer, data)
        return buffer

    def _parts_of(self, group: int, game_of: Array) -> list[LanePart]:
        rows = self._settings.rows(group)
        chosen, parts = game_of[rows], []
        for game in sorted(set(chosen.tolist())):
            envs = (np.flatnonzero(chosen == game) + rows.start).astype(np.uint32)
            parts.append(LanePart(game, envs, self._uploaded(group, envs)))
        return parts

    def write(self, env: int, lane: Array) -> None:
        stream = self._streams[env // self._settings.group_size]
        self._launcher.write(stream, self._lanes, lane, env * LANE_BYTES)

    def read(self, env: int, lane: Array) -> None:
        """Waits for it."""
        stream = self._streams[env // self._settings.group_size]
        self._launcher.read(stream, self._lanes, lane, env * LANE_BYTES)
        self._launcher.wait(self._launcher.event(stream))

    def read_frames(self, group: int, ended: Array, frame: Frames, final_frame: Frames) -> None:
        """Copies our own newest frames [b, ...], and the last ones where episodes ended [b]."""
        stream, size = self._streams[group], self._frame_bytes
        first = self._settings.rows(group).start
        self._launcher.read(stream, self.own.newest, frame, first * size)
        for row in np.flatnonzero(ended).tolist():
            self._launcher.read(stream, self.own.final, final_frame[row], (first + row) * size)
        self._launcher.wait(self._launcher.event(stream))

    def step(self, group: int, actions: Array, target: FrameTarget) -> Any:
        """Launches one step by actions [b], uint32; the event that ends it."""
        stream = self._streams[group]
        self._launcher.write(stream, self._actions, actions, self._settings.rows(group).start * 4)
        for part in self._parts[group]:
            game, num = self._games[part.game], len(part.envs)
            scalars = [self._frame_bytes, num, self._first_env(group, target)]
            self._launcher.launch(
                stream,
                (game.cartridge, "scanline_play"),
                num,
                [
                    *(self._lanes, game.record, game.rom, game.starts, game.start_frames),
                    *(part.buffer, self._actions, self._numbers, target.newest),
                ],
                scalars,
            )
            self._launcher.launch(
                stream,
                (game.cartridge, "scanline_observe"),
                num * self._height,
                [
                    *(self._lanes, game.record, part.buffer, game.firsts, game.weights),
                    *(self._numbers, target.newest, target.final),
                ],
                scalars,
            )
            if self._settings.autoreset == "same-step":
                self._restart(group, part, target, is_reset=False)
        return self._end(group)

    def reset(self, group: int, where: Array, target: FrameTarget) -> Any:
        """Launches new episodes where a mask [b] says; the event that ends them."""
        first, kept = self._settings.rows(group).start, []
        for part in self._parts[group]:
            envs = part.envs[where[part.envs - first]]
            if envs.size:
                kept.append(LanePart(part.game, envs, self._uploaded(group, envs)))
                self._restart(group, kept[-1], target, is_reset=True)
        event = self._end(group)
        self._launcher.wait(event)  # until then its lists of environments are in use
        return event

    def _restart(self, group: int, part: LanePart, target: FrameTarget, *, is_reset: bool) -> None:
        game, num = self._games[part.game], len(part.envs)
        self._launcher.launch(
            self._streams[group],
            (game.cartridge, "scanline_restart"),
            num,
            [
                *(self._lanes, game.record, game.rom, game.starts, game.start_frames),
                *(part.buffer, self._numbers, target.newest),
            ],
            [self._frame_bytes, num, self._first_env(group, target), int(is_reset)],
        )

    def _first_env(self, group: int, target: FrameTarget) -> int:
        """The environment whose frames come first there."""
        return 0 if target is self.own else self._settings.rows(group).start

    def _end(self, group: int) -> Any:
        stream, first = self._streams[group], self._settings.rows(group).start
        offset = first * NUMBERS.itemsize
        self._launcher.read(stream, self._numbers, self.numbers[group], offset)
        return self._launcher.event(stream)
