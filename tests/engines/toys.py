"""Environments and recordings that the engine tests share; worker processes import it too."""

from __future__ import annotations

import dataclasses
import functools
import os
import signal
import time
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np

from scanline import engines, protocols
from scanline.engines import Engine, EngineSettings
from scanline.engines.catch import Catch
from scanline.records import Spaces, StepArrays

POISON = 77

catch_with_lives = functools.partial(gymnasium.make, "scanline/Catch-v0", balls=4, lives=2)


class Blocks(gymnasium.Env):
    """Says what it was given: the frame is (seed's hash, step, action), in a shape of choice."""

    def __init__(self, shape: tuple[int, ...] = (4, 4, 1), dtype: str = "uint8") -> None:
        self.observation_space = gymnasium.spaces.Box(0, 255, shape, np.dtype(dtype).type)
        self.action_space = gymnasium.spaces.Discrete(5, start=3)
        self._step = 0

    def _frame(self, action: int) -> np.ndarray:
        frame = np.zeros(self.observation_space.shape, self.observation_space.dtype)
        frame.flat[:3] = self._key, self._step, action
        return frame

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._key, self._step = int(self.np_random.integers(256)), 0
        return self._frame(0), {}

    def step(self, action):
        self._step += 1
        return self._frame(action), 2.5 * self._step, self._step == 9, False, {}


class Troubled(Catch):
    """Catch that raises, dies or hangs at its third step."""

    def __init__(self, trouble: str) -> None:
        super().__init__()
        self._trouble, self._count = trouble, 0

    def step(self, action):
        self._count += 1
        if self._count == 3:
            if self._trouble == "raise":
                raise KeyError("the ball is gone")
            if self._trouble == "die":
                os.kill(os.getpid(), signal.SIGKILL)
            if self._trouble == "hang":
                time.sleep(3600)
        return super().step(action)


def rgb_blocks() -> Blocks:
    return Blocks((4, 4, 3))


def vector_blocks() -> Blocks:
    return Blocks((5,), "float64")


def raising() -> Troubled:
    return Troubled("raise")


def dying() -> Troubled:
    return Troubled("die")


def hanging() -> Troubled:
    return Troubled("hang")


def broken_at_birth() -> Any:
    raise OSError("no such cartridge")


def step_arrays(num: int, spaces: Spaces) -> StepArrays:
    """Arrays of one group, full of poison."""
    frames = (num, *spaces.frame_shape)
    shapes = {
        "frame": (frames, spaces.frame_dtype),
        "final_frame": (frames, spaces.frame_dtype),
        "depth": (num, "uint8"),
        "reward": (num, "float32"),
        "raw_reward": (num, "float32"),
        "terminated": (num, "bool"),
        "truncated": (num, "bool"),
        "life_lost": (num, "bool"),
        "lives": (num, "int32"),
    }
    return StepArrays(**{name: np.full(s, POISON, dtype) for name, (s, dtype) in shapes.items()})


def columns(arrays: StepArrays) -> dict[str, np.ndarray]:
    return {field.name: getattr(arrays, field.name) for field in dataclasses.fields(arrays)}


def build(kind: str, game: Any, *, protocol: Any = None, **options: Any) -> Engine:
    rules = protocols.get(engines.kind(kind).protocol) if protocol is None else protocol
    return engines.build(kind, EngineSettings(game=game, protocol=rules, **options))


def random_actions(num_steps: int, num_envs: int, num_actions: int) -> np.ndarray:
    return np.random.default_rng(5).integers(0, num_actions, (num_steps, num_envs))


def record(engine: Engine, actions: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
    """Plays the actions with all groups in flight at once; gives [T + 1, N, ...] per column."""
    size, num_groups = engine.settings.group_size, engine.settings.num_groups
    rows = [slice(g * size, (g + 1) * size) for g in range(num_groups)]
    history = []

    def gather(outs: list[StepArrays]) -> None:
        parts = [columns(out) for out in outs]
        history.append({name: np.concatenate([p[name] for p in parts]) for name in parts[0]})

    outs = [step_arrays(size, engine.spaces) for _ in rows]
    for group, out in enumerate(outs):
        engine.reset(group, out)
    gather(outs)
    for step in actions:
        outs = [step_arrays(size, engine.spaces) for _ in rows]
        for group in range(num_groups):
            engine.send(group, step[rows[group]])
        for group in reversed(range(num_groups)):
            engine.recv(group, outs[group])
        gather(outs)
    return {name: np.stack([row[name] for row in history]) for name in history[0]}
