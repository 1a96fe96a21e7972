"""History: the last frames of one group, and the observations that they make.

Gives the engine the place where its newest frame goes; gives observations [b, S, ...] with the
protocol's padding. Knows nothing of actions, rewards or Gymnasium.

The engine writes each frame once into a buffer longer than the stack, so that the window slides
over it, and only every so many steps its last frames move back to the front.
"""

from __future__ import annotations

import numpy as np
import torch

from .. import stacks
from ..records import Array, Spaces

_SPARE_STEPS = 12
"""Steps between two moves to the front: more cost memory, fewer cost copies."""


class History:
    """A sliding window of S frames for `num_envs` environments."""

    def __init__(self, spaces: Spaces, padding: str, num_envs: int) -> None:
        self._stack, self._padding = spaces.stack, padding
        length = spaces.stack + _SPARE_STEPS
        self._frames = np.zeros((length, num_envs, *spaces.frame_shape), spaces.frame_dtype)
        self._newest = spaces.stack - 1
        self._old_depth = np.ones(num_envs, np.uint8)
        self.depth = np.ones(num_envs, np.uint8)  # [b] valid frames; the engine writes it

    @property
    def newest(self) -> Array:
        """[b, ...frame] the newest frame, where a reset writes."""
        frame: Array = self._frames[self._newest]
        return frame

    def advance(self) -> None:
        """Makes room for the frame of the next step, which becomes the newest."""
        np.copyto(self._old_depth, self.depth)
        self._newest += 1
        if self._newest == len(self._frames):
            kept = self._stack - 1
            self._frames[:kept] = self._frames[self._newest - kept : self._newest]
            self._newest = kept

    def write(self, out: Array) -> None:
        """Observations [b, S, ...] after the newest frame, into the caller's array."""
        # By NumPy: torch would copy with all its threads, and wait for them on a busy machine.
        np.copyto(out, self._window().swapaxes(0, 1))
        young = np.flatnonzero(self.depth < self._stack)
        if young.size:
            out[young] = self._built(self._window()[:, young], self.depth[young]).numpy()

    def write_final(self, out: Array, rows: Array, final_frame: Array) -> None:
        """The last observations of the episodes that just ended in these rows."""
        window = self._window()[:, rows]  # a copy
        window[-1] = final_frame[rows]
        depth = np.minimum(self._old_depth[rows] + np.uint8(1), self._stack)
        out[rows] = self._built(window, depth).numpy()

    def window_of(self, row: int) -> bytes:
        """The S newest frames of one environment."""
        return self._window()[:, row].tobytes()

    def load_window(self, row: int, depth: int, window: bytes) -> None:
        place = self._window()[:, row]
        place[...] = np.frombuffer(window, place.dtype).reshape(place.shape)
        self.depth[row] = depth

    def _window(self) -> Array:
        window: Array = self._frames[self._newest - self._stack + 1 : self._newest + 1]
        return window

    def _built(self, window: Array, depth: Array) -> torch.Tensor:
        return stacks.build(torch.from_numpy(window), torch.from_numpy(depth), self._padding)
