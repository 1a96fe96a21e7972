"""What an environment gives: the spaces of its observations and actions, the arrays of one step.

Takes and gives nothing: shapes and what follows from them. `b` counts environments, `S` is the
depth of the frame stack. Knows no engine, slot or network; `records` gives these names too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from . import stacks
from .stacks import Array as Array


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


@dataclass(frozen=True, eq=False)
class StepArrays:
    """Where an engine writes one step of `b` environments: views into the caller's arrays.

    Each is equal to itself alone, so that an engine can remember what it knows of one.
    """

    frame: Array  # [b, *frame] the newest frame; after an end, the first of the next episode
    depth: Array  # [b] uint8, valid frames of the stack, 1 right after a reset, at most S
    reward: Array  # [b] float32, clipped as the protocol says
    raw_reward: Array  # [b] float32
    terminated: Array  # [b] bool, the game ended
    truncated: Array  # [b] bool, a limit ended the episode
    life_lost: Array  # [b] bool, a life was lost and the game goes on
    lives: Array  # [b] int32
    final_frame: Array  # [b, *frame] last frame of the episode, where terminated or truncated
    start_frames: Array  # [b, num_start_frames, *frame] before `frame`, where depth is 1

    @classmethod
    def allocate(cls, spaces: Spaces, num_envs: int) -> StepArrays:
        """Arrays of their own, of environments that have just begun."""
        frame, dtype = spaces.frame_shape, spaces.frame_dtype
        return cls(
            frame=np.zeros((num_envs, *frame), dtype),
            depth=np.ones(num_envs, np.uint8),
            reward=np.zeros(num_envs, np.float32),
            raw_reward=np.zeros(num_envs, np.float32),
            terminated=np.zeros(num_envs, np.bool_),
            truncated=np.zeros(num_envs, np.bool_),
            life_lost=np.zeros(num_envs, np.bool_),
            lives=np.zeros(num_envs, np.int32),
            final_frame=np.zeros((num_envs, *frame), dtype),
            start_frames=np.zeros((num_envs, spaces.num_start_frames, *frame), dtype),
        )
