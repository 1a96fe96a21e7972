"""Frame pool: frames that belong to a row of the ring and have no place in it.

Takes a few frames with their row and environment; finds them again by the row's place until the row
has left the ring. Two pools stand beside a ring: the true last observations of truncated steps,
because the ring holds the first frame of the next episode there, and the frames that fill the stack
of a new episode. Knows no slot, sampling rule or episode.

Both are rare (truncation: once in 27,000 steps of Atari; a start: once per game), so a small pool
that grows by doubling serves any rate and costs nothing where there is none.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from ..records import Array, State
from .ring import Ring

_FIRST_SIZE = 8
_FREE = -1


class FramePool:
    """Entries of `num_frames` frames each; a column of the ring holds their numbers."""

    def __init__(self, ring: Ring, column: str, num_frames: int) -> None:
        self._ring, self._column = ring, column
        frames = ring.arrays["frame"]
        self._shape, self._dtype = (num_frames, *frames.shape[2:]), frames.dtype
        self._clear()

    def _clear(self) -> None:
        self._frames = torch.empty((0, *self._shape), dtype=self._dtype)
        self._rows = np.empty(0, np.int64)
        self._envs = np.empty(0, np.int64)
        self._free: list[int] = []

    def add(self, row: int, env: int, frames: Tensor) -> None:
        """Keeps the frames of one row; what was kept for it before is replaced."""
        known = np.flatnonzero((self._rows == row) & (self._envs == env))
        if not known.size and not self._free:
            self._grow()
        number = int(known[0]) if known.size else self._free.pop()
        self._rows[number], self._envs[number] = row, env
        self._frames[number] = frames
        self._ring.arrays[self._column][row % self._ring.num_rows, env] = number

    def at(self, places: Array) -> Tensor:
        """Frames [N, num_frames, *frame] of the rows at these places."""
        return self._frames[torch.from_numpy(self._ring.by_place[self._column][places])]

    def release(self, first_row: Array) -> None:
        """Forgets what lies before the first row [B] of its environment."""
        if len(self._free) == len(self._rows):
            return
        old = (self._rows != _FREE) & (self._rows < first_row[self._envs])
        self._rows[old] = _FREE
        self._free.extend(np.flatnonzero(old).tolist())

    def _grow(self) -> None:
        size = len(self._rows)
        more = max(_FIRST_SIZE, size)
        fresh = torch.empty((more, *self._shape), dtype=self._dtype)
        self._frames = torch.cat([self._frames, fresh])
        self._rows = np.concatenate([self._rows, np.full(more, _FREE)])
        self._envs = np.concatenate([self._envs, np.zeros(more, np.int64)])
        self._free = list(range(size + more - 1, size - 1, -1))

    def kept(self) -> tuple[Array, Array]:
        """Rows and environments of everything kept, in their order."""
        kept = self._kept()
        return self._rows[kept], self._envs[kept]

    def _kept(self) -> Array:
        kept = np.flatnonzero(self._rows != _FREE)
        order: Array = kept[np.lexsort((self._envs[kept], self._rows[kept]))]
        return order

    def state(self) -> State:
        rows, envs = self.kept()
        frames = self._frames[torch.from_numpy(self._kept())]
        return {"rows": rows, "envs": envs, "frames": frames}

    def load(self, state: State) -> None:
        """Numbers begin anew, in the ring too."""
        self._clear()
        for row, env, frames in zip(state["rows"], state["envs"], state["frames"], strict=True):
            self.add(int(row), int(env), frames)


def start_place(ring: Ring, places: Array, depths: Array) -> Array:
    """Places of the first frames of the episodes that are `depths` frames old at these places."""
    ages = depths.astype(np.int64) - 1
    first: Array = (places - ages * ring.num_envs) % ring.num_places
    return first
