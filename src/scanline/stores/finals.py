"""Finals: the true last observations of truncated steps, kept beside the ring.

Takes (row, environment, observation) of a truncated step; gives a number under which it is found
until its step has left the ring. Knows no ring and no sampling.

The ring holds the first frame of the next episode where the last frame of a truncated one would
have to be. Truncation is rare (once in 27,000 steps of Atari), so a small pool that grows by
doubling serves any rate and costs nothing where there is none.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from ..records import Array, Spaces, State

_FIRST_SIZE = 8
_FREE = -1


class Finals:
    """A pool of observations [F, S, *frame]."""

    def __init__(self, spaces: Spaces) -> None:
        self._shape = spaces.observation_shape
        self._dtype = getattr(torch, spaces.frame_dtype)
        self._clear()

    def _clear(self) -> None:
        self.observations = torch.empty((0, *self._shape), dtype=self._dtype)
        self._rows = np.empty(0, np.int64)
        self._envs = np.empty(0, np.int64)
        self._free: list[int] = []

    def add(self, row: int, env: int, observation: Tensor) -> int:
        """Keeps one observation; gives its number."""
        if not self._free:
            self._grow()
        number = self._free.pop()
        self._rows[number], self._envs[number] = row, env
        self.observations[number] = observation
        return number

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
        self.observations = torch.cat([self.observations, fresh])
        self._rows = np.concatenate([self._rows, np.full(more, _FREE)])
        self._envs = np.concatenate([self._envs, np.zeros(more, np.int64)])
        self._free = list(range(size + more - 1, size - 1, -1))

    def state(self) -> State:
        """What is kept, in the order of rows and environments."""
        kept = np.flatnonzero(self._rows != _FREE)
        kept = kept[np.lexsort((self._envs[kept], self._rows[kept]))]
        return {
            "rows": self._rows[kept],
            "envs": self._envs[kept],
            "observations": self.observations[torch.from_numpy(kept)],
        }

    def load(self, state: State) -> None:
        """Numbers begin anew: read them from `kept`."""
        self._clear()
        for row, env, observation in zip(
            state["rows"], state["envs"], state["observations"], strict=True
        ):
            self.add(int(row), int(env), observation)

    def kept(self) -> list[tuple[int, int, int]]:
        """(row, environment, number) of everything kept."""
        numbers = np.flatnonzero(self._rows != _FREE)
        return [(int(self._rows[n]), int(self._envs[n]), int(n)) for n in numbers]
