"""Batches, consoles of ale-py and EnvPool side by side, for the tests of this folder."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from scanline import games, protocols, stacks
from scanline._native import Batch

Array = npt.NDArray[Any]
KEY = (1, 2, 0)


@dataclass
class Arrays:
    """One step of `size` environments, poisoned where nothing was written."""

    size: int
    shape: tuple[int, ...]
    num_start_frames: int = 0
    columns: tuple[Array, ...] = field(init=False)

    def __post_init__(self) -> None:
        kinds = (np.uint8, np.float32, np.float32, np.bool_, np.bool_, np.bool_, np.int32)
        scalars = [np.full(self.size, 0x55, kind) for kind in kinds]
        frames = [np.full((self.size, *self.shape), 0x55, np.uint8) for _ in range(2)]
        starts = np.full((self.size, self.num_start_frames, *self.shape), 0x55, np.uint8)
        self.columns = (frames[0], *scalars, frames[1], starts)

    def __getattr__(self, name: str) -> Array:
        names = ("frame", "depth", "reward", "raw_reward", "terminated", "truncated", "life_lost")
        return self.columns[(*names, "lives", "final_frame", "start_frames").index(name)]

    def copy(self) -> list[Array]:
        return [column.copy() for column in self.columns]


class Player:
    """A batch of one game, reset and stepped by plain calls."""

    def __init__(
        self,
        game: str,
        num_envs: int,
        *,
        preset: str = "ale-vector",
        num_threads: int = 2,
        num_groups: int = 1,
        engine: dict[str, Any] | None = None,
        **rules: Any,
    ) -> None:
        known = games.find(game)
        settings = protocols.get(preset).replace(**rules).to_dict()
        del settings["name"]
        settings |= {"reset": "ale", "random_stream": "ale", "autoreset": "next-step"}
        settings |= engine or {}
        rom = games.rom_path(known).read_bytes()
        self.num_envs = num_envs
        self.batch = Batch(
            [(rom, known.index, -1, -1)], [0] * num_envs, settings, num_groups, num_threads
        )
        self.num_actions = len(self.batch.actions(0))
        num_starts = stacks.num_start_frames(settings["stack_padding"], settings["stack"])
        self.out = Arrays(num_envs // num_groups, tuple(self.batch.frame_shape), num_starts)

    def reset(self, first_seed: int = 0, group: int = 0) -> Arrays:
        size = self.out.size
        seeds = np.arange(size, dtype=np.int64) + first_seed + group * size
        self.batch.reset(group, self.out.columns, None, seeds, (*KEY[:2], group * size))
        return self.out

    def step(self, actions: Array, group: int = 0, *, direct: bool = True) -> Arrays:
        where = self.out.columns if direct else None
        self.batch.send(group, np.asarray(actions, np.int64), where)
        self.batch.recv(group, None if direct else self.out.columns)
        return self.out

    def counters(self) -> tuple[Array, Array]:
        total, of_episode = np.zeros((2, self.num_envs), np.int32)
        self.batch.counters(0, total, of_episode)
        return total, of_episode


def random_actions(num_steps: int, num_envs: int, num_actions: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).integers(0, num_actions, (num_steps, num_envs))
