"""Where an engine writes, and what a truncated episode leaves: shared by all samplers.

Takes a slot and a range of its environments; gives the views that an engine fills.
Knows no engine, schedule or policy.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from .. import stacks
from ..records import Array, Slot, Spaces, StepArrays, to_array


@dataclass(frozen=True)
class Scratch:
    """What an engine tells of a step and no slot keeps: [B] lives, [B, *frame] last frames."""

    lives: Array
    final_frame: Array

    @classmethod
    def allocate(cls, spaces: Spaces, num_envs: int) -> Scratch:
        frames = np.zeros((num_envs, *spaces.frame_shape), spaces.frame_dtype)
        return cls(np.zeros(num_envs, np.int32), frames)

    def step_arrays(self, slot: Slot, t: int, envs: slice) -> StepArrays:
        """Where the engine writes step t of these environments."""

        def view(tensor: Tensor) -> Array:
            return to_array(tensor[envs])

        return StepArrays(
            frame=view(slot.frames[slot.stack + t]),
            depth=view(slot.depth[t + 1]),
            reward=view(slot.reward[t]),
            raw_reward=view(slot.raw_reward[t]),
            terminated=view(slot.terminated[t]),
            truncated=view(slot.truncated[t]),
            life_lost=view(slot.life_lost[t]),
            lives=self.lives[envs],
            final_frame=self.final_frame[envs],
        )

    def keep_finals(self, slot: Slot, t: int, envs: slice, truncated: Array) -> None:
        """Builds the true last observations of truncated episodes."""
        for row in np.flatnonzero(truncated):
            env = int(row) + envs.start
            last = torch.from_numpy(self.final_frame[env].copy())
            older = slot.frames[t + 1 : t + slot.stack, env]
            frames = torch.cat([older, last[None]])[:, None]
            depth = (slot.depth[t, env : env + 1] + 1).clamp(max=slot.stack)
            slot.finals.append((t, env, stacks.build(frames, depth, slot.padding)[0].clone()))
