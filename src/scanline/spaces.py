"""Spaces: what algorithms and networks must know of an environment.

Takes and gives nothing: one record of shapes and rules. Knows no engine and no protocol.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from . import stacks


@dataclass(frozen=True, kw_only=True)
class Spaces:
    """What an algorithm and a network must know of the environment."""

    frame_shape: tuple[int, ...]
    """One frame: (H, W) grey, (H, W, 3) colour, (D,) vector."""
    frame_dtype: str
    """'uint8' for images and RAM, 'float32' for vectors."""
    stack: int
    """Frames per observation, S."""
    num_actions: int
    life_loss_ends_return: bool = False
    """Whether a lost life cuts the return as the game's end does."""
    stack_padding: str = "zeros"
    """What fills the stack right after a reset, in the words of `Protocol`."""

    @property
    def frame_bytes(self) -> int:
        return math.prod(self.frame_shape) * np.dtype(self.frame_dtype).itemsize

    @property
    def is_image(self) -> bool:
        return len(self.frame_shape) >= 2

    @property
    def num_start_frames(self) -> int:
        """Frames of a new stack that are of no step, which the environment gives: S - 1, or 0."""
        return stacks.num_start_frames(self.stack_padding, self.stack)

    @property
    def observation_shape(self) -> tuple[int, ...]:
        """Shape of one stacked observation, [S, ...frame]."""
        return (self.stack, *self.frame_shape)
