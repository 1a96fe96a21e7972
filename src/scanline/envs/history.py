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
    """A sliding window of S frames for `num_envs` environments.

    Right after a start the older frames are not yet the episode's own: they are replaced when the
    next step makes room, because until then the last frames of the old episode may be asked for.
    """

    def __init__(self, spaces: Spaces, num_envs: int) -> None:
        self._stack, self._rule = spaces.stack, spaces.stack_padding
        frame, dtype = spaces.frame_shape, spaces.frame_dtype
        self._frames = np.zeros((spaces.stack + _SPARE_STEPS, num_envs, *frame), dtype)
        self._newest = spaces.stack - 1
        # What the engine writes besides: [b] valid frames; [b, ...] frames that fill a new stack.
        self.depth = np.ones(num_envs, np.uint8)
        self.start_frames = np.zeros((num_envs, spaces.num_start_frames, *frame), dtype)

    @property
    def newest(self) -> Array:
        """[b, ...frame] the newest frame, where a reset writes."""
        frame: Array = self._frames[self._newest]
        return frame

    def advance(self) -> None:
        """Makes room for the frame of the next step, which becomes the newest."""
        self._settle()
        self._newest += 1
        if self._newest == len(self._frames):
            kept = self._stack - 1
            self._frames[:kept] = self._frames[self._newest - kept : self._newest]
            self._newest = kept

    def write(self, out: Array) -> None:
        """Observations [b, S, ...] after the newest frame, into the caller's array."""
        # By NumPy: torch would copy with all its threads, and wait for them on a busy machine.
        np.copyto(out, self._window().swapaxes(0, 1))
        new = self._new()
        if new.size:
            out[new] = self._begun(new)

    def write_final(self, out: Array, rows: Array, final_frame: Array) -> None:
        """The last observations of the episodes that just ended in these rows."""
        window = self._window()[:, rows]  # a copy
        window[-1] = final_frame[rows]
        out[rows] = window.swapaxes(0, 1)

    def window_of(self, row: int) -> bytes:
        """The S newest frames of one environment."""
        self._settle()
        return self._window()[:, row].tobytes()

    def load_window(self, row: int, depth: int, window: bytes) -> None:
        place = self._window()[:, row]
        place[...] = np.frombuffer(window, place.dtype).reshape(place.shape)
        self.depth[row] = depth
        self.start_frames[row] = place[: self.start_frames.shape[1]]

    def _window(self) -> Array:
        window: Array = self._frames[self._newest - self._stack + 1 : self._newest + 1]
        return window

    def _new(self) -> Array:
        """Rows whose episodes have just begun, where a stack has older frames."""
        return np.flatnonzero(self.depth < min(2, self._stack))

    def _settle(self) -> None:
        """Puts what fills the stacks of new episodes into the window."""
        new = self._new()
        if new.size:
            self._window()[:, new] = self._begun(new).swapaxes(0, 1)

    def _begun(self, rows: Array) -> Array:
        """Observations [rows, S, ...] of episodes that have just begun."""
        given = torch.from_numpy(self.start_frames[rows])
        padding = stacks.Padding(self._rule, {(0, place): s for place, s in enumerate(given)})
        window, depth = (
            torch.from_numpy(self._window()[:, rows]),
            torch.from_numpy(self.depth[rows]),
        )
        observations: Array = stacks.build(window, depth, padding).numpy()
        return observations
