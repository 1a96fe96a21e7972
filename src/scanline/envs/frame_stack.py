"""Frame stack: the last frames of one group, and the observations that they make.

Gives the engine the arrays to write a step to; gives observations [b, S, ...] with the protocol's
padding. Knows nothing of actions, rewards or Gymnasium.

Frames lie in a ring of S entries, and each is written once. Engines with threads of their own turn
the ring into observations there (native/cpu/stack_arrays.h); `keep_finals`, `pad` and `write` do
the same for all others.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from .. import stacks
from ..engines.interface import StackArrays
from ..records import Array, Spaces, StepArrays


class FrameStack:
    """A ring of S frames for the environments of one group.

    Where an episode has just begun, `pad` replaces the older frames, which are those of the episode
    before; `keep_finals` needs them, so it comes first.
    """

    def __init__(self, spaces: Spaces, arrays: StepArrays) -> None:
        """`arrays`: where the group's steps are written, but for their frames."""
        self._rule = spaces.stack_padding
        self._ring = np.zeros((spaces.stack, *arrays.frame.shape), arrays.frame.dtype)
        self._arrays = [replace(arrays, frame=frame) for frame in self._ring]
        self._newest = spaces.stack - 1
        self.finals = np.zeros((len(arrays.depth), *spaces.observation_shape), self._ring.dtype)
        """Last observations [b, S, ...] where the last step ended an episode or a life."""

    @property
    def arrays(self) -> StepArrays:
        """Where an engine writes a reset, or the step that was sent."""
        return self._arrays[self._newest]

    @property
    def next_arrays(self) -> StepArrays:
        """Where an engine writes the step that is sent next."""
        return self._arrays[self._next]

    def next_stack(self, observations: Array, *, with_finals: bool) -> StackArrays:
        """The same, for an engine that builds observations: into the caller's array."""
        return StackArrays(
            self._ring, self._next, self.finals if with_finals else None, observations
        )

    def advance(self) -> None:
        """The step has been sent: its frame is the newest, and the oldest one is gone."""
        self._newest = self._next

    def keep_finals(self) -> None:
        """Notes the last observations of what the step just written has ended."""
        step = self.arrays
        ended = step.terminated | step.truncated
        over = np.flatnonzero(ended | step.life_lost)
        if over.size:
            self.finals[over] = self._window(over)
            self.finals[ended, -1] = step.final_frame[ended]

    def pad(self) -> None:
        """Fills the stacks of episodes that have just begun."""
        new = np.flatnonzero(self.arrays.depth < min(2, len(self._ring)))
        if new.size:
            self._ring[np.ix_(self._order, new)] = self._padded(new).swapaxes(0, 1)

    def write(self, out: Array) -> None:
        """Observations [b, S, ...] after the newest frame, into the caller's array."""
        # By NumPy: torch would copy with all its threads, and wait for them on a busy machine.
        for place, entry in enumerate(self._order):
            out[:, place] = self._ring[entry]

    def window_of(self, row: int) -> bytes:
        """The S newest frames of one environment, as last written."""
        return bytes(self._ring[self._order, row].tobytes())

    def load_window(self, row: int, depth: int, window: bytes) -> None:
        frames = np.frombuffer(window, self._ring.dtype).reshape(self.finals.shape[1:])
        self._ring[self._order, row] = frames
        step = self.arrays
        step.depth[row] = depth
        step.start_frames[row] = frames[: step.start_frames.shape[1]]

    @property
    def _next(self) -> int:
        return (self._newest + 1) % len(self._ring)

    @property
    def _order(self) -> Array:
        """Entries of the ring, the oldest first."""
        order: Array = (self._next + np.arange(len(self._ring))) % len(self._ring)
        return order

    def _window(self, rows: Array) -> Array:
        """Frames [rows, S, ...], oldest first, not padded."""
        window: Array = self._ring[np.ix_(self._order, rows)].swapaxes(0, 1)
        return window

    def _padded(self, rows: Array) -> Array:
        """Observations [rows, S, ...] of episodes that have just begun."""
        given = torch.from_numpy(self.arrays.start_frames[rows])
        starts = stacks.SparseFrames(tuple(given.shape[1:]), given.dtype, len(rows))
        starts.append(0, torch.arange(len(rows)), given)
        padding = stacks.Padding(self._rule, starts)
        window = torch.from_numpy(self._window(rows)).swapaxes(0, 1)
        depth = torch.from_numpy(self.arrays.depth[rows])
        observations: Array = stacks.build(window, depth, padding).numpy()
        return observations
