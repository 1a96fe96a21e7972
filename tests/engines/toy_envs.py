"""Toy environments of the engine tests; worker processes import this module, so it has no torch."""

from __future__ import annotations

import functools
import os
import signal
import time
from typing import Any

import gymnasium
import numpy as np

from scanline.envs.catch import Catch

catch_with_lives = functools.partial(gymnasium.make, "scanline/Catch-v0", size=10, balls=4, lives=2)


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


def wrapped_catch() -> gymnasium.Env:
    """Catch inside a wrapper that has a state of its own."""
    return gymnasium.wrappers.FrameStackObservation(gymnasium.make("scanline/Catch-v0"), 2)
