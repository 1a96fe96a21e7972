"""Frame stack: the last frames of one group, and the observations that they make.

Gives the engine the arrays to write a step to; gives observations [b, S, ...] with the protocol's
padding. Knows nothing of actions, rewards or Gymnasium.

The engine writes each frame once into a buffer longer than the stack, so that the window slides
over it, and only every so many steps its last frames move back to the front.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from .. import stacks
from ..records import Array, Spaces, StepArrays

_SPARE_STEPS = 12
"""Steps between two moves to the front: more cost memory, fewer cost copies."""


class FrameStack:
    """A sliding window of S frames for the environments of one group.

    Where an episode has just begun, `write` replaces the older frames, which are those of the
    episode before; `write_final` needs them, so it comes first.
    """

    def __init__(self, spaces: Spaces, arrays: StepArrays) -> None:
        """`arrays`: where the group's steps are written, but for their frames."""
        self._stack, self._rule = spaces.stack, spaces.stack_padding
        self._frames = np.zeros(
            (spaces.stack + _SPARE_STEPS, *arrays.frame.shape), arrays.frame.dtype
        )
        self._arrays = [replace(arrays, frame=frame) for frame in self._frames]
        self._newest = spaces.stack - 1
        self._depth, self._start_frames = arrays.depth, arrays.start_frames

    @property
    def arrays(self) -> StepArrays:
        """Where an engine writes a reset, or, after `advance`, a step."""
        return self._arrays[self._newest]

    def advance(self) -> None:
        """Makes room for the frame of the next step, which becomes the newest."""
        self._newest += 1
        if self._newest == len(self._frames):
            kept = self._stack - 1
            self._frames[:kept] = self._frames[self._newest - kept : self._newest]
            self._newest = kept

    def write(self, out: Array) -> None:
        """Observations [b, S, ...] after the newest frame, into the caller's array."""
        new = np.flatnonzero(self._depth < min(2, self._stack))
        if new.size:
            self._window()[:, new] = self._padded(new).swapaxes(0, 1)
        # By NumPy: torch would copy with all its threads, and wait for them on a busy machine.
        np.copyto(out, self._window().swapaxes(0, 1))

    def write_final(self, out: Array, ended: Array) -> None:
        """The same, but the last observations of the episodes that just ended, mask [b]."""
        np.copyto(out, self._window().swapaxes(0, 1))
        out[ended, -1] = self.arrays.final_frame[ended]

    def window_of(self, row: int) -> bytes:
        """The S newest frames of one environment, as last written."""
        return self._window()[:, row].tobytes()

    def load_window(self, row: int, depth: int, window: bytes) -> None:
        frames = self._window()[:, row]
        frames[...] = np.frombuffer(window, frames.dtype).reshape(frames.shape)
        self._depth[row] = depth
        self._start_frames[row] = frames[: self._start_frames.shape[1]]

    def _window(self) -> Array:
        window: Array = self._frames[self._newest - self._stack + 1 : self._newest + 1]
        return window

    def _padded(self, rows: Array) -> Array:
        """Observations [rows, S, ...] of episodes that have just begun."""
        given = torch.from_numpy(self._start_frames[rows])
        starts = stacks.SparseFrames(tuple(given.shape[1:]), given.dtype, len(rows))
        starts.append(0, torch.arange(len(rows)), given)
        padding = stacks.Padding(self._rule, starts)
        window = torch.from_numpy(self._window()[:, rows])
        depth = torch.from_numpy(self._depth[rows])
        observations: Array = stacks.build(window, depth, padding).numpy()
        return observations
