"""Write cursors: how far every environment has been written, committed and completed.

Takes the steps that writers put and the moment of a commit; gives the window that may be drawn.
Knows rows and no arrays.

An environment's rows are numbered from its first on and never again, wherever the ring keeps them.
Three numbers per environment then say everything: what is written, what is committed, and where
the last finished episode ended.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..records import Array, State
from .sampling import RingRange

Flush = Literal["full", "completed"]

_SAVED = ("written", "committed", "completed", "opened")


@dataclass(frozen=True)
class RingLimits:
    """What bounds the rows of one environment."""

    history: int
    """Rows before the first step, for the older frames of its stack: S - 1."""
    stored: int
    """Steps that are kept."""
    staged: int
    """Steps that may be written between two commits; 0 where every put commits."""
    n_step: int
    """Newest steps minus one that cannot be drawn yet: their n-step future is not there."""

    @property
    def num_rows(self) -> int:
        """Rows of the ring: the steps, the frames before the oldest, the frame after the newest,
        and what may be written while the others are being read."""
        return self.history + self.stored + 1 + self.staged


class WriteCursors:
    """Positions of B environments, each [B] int64."""

    def __init__(self, num_envs: int, limits: RingLimits) -> None:
        self._limits = limits
        self.written = np.full(num_envs, limits.history, np.int64)
        self.committed = self.written.copy()
        self.completed = self.written.copy()
        self.opened = self.written.copy()
        """What was written at the last commit: draws do not see what came since."""

    @property
    def num_committed(self) -> int:
        """Agent steps committed since the beginning, over all environments."""
        return int((self.committed - self._limits.history).sum())

    def room(self, env: int) -> int:
        """Steps that a staged environment may still write before the next commit."""
        return self._limits.staged - int(self.written[env] - self.opened[env])

    def advance(self, envs: slice, ended: Array) -> None:
        """Notes T written steps of some environments; `ended` [T, b] is not 0 where one ended."""
        num_steps, first = len(ended), self.written[envs]
        if ended.any():
            after_last = num_steps - np.argmax(ended[::-1] != 0, axis=0)  # up to and with it
            has_one = ended.any(axis=0)
            self.completed[envs] = np.where(has_one, first + after_last, self.completed[envs])
        self.written[envs] = first + num_steps

    def commit(self, flush: Flush) -> None:
        """Makes steps visible: all, or those of finished episodes.

        An episode that fills half the ring is committed unfinished: it would push out everything
        that can be drawn.
        """
        upto = self.written
        if flush == "completed":
            too_long = self.written - self.completed > self._limits.stored // 2
            upto = np.where(too_long, self.written, self.completed)
        np.maximum(self.committed, upto, out=self.committed)
        np.copyto(self.opened, self.written)

    def window(self) -> RingRange:
        """Rows that may be drawn: kept, committed, and with n steps after them."""
        history, n_step = self._limits.history, self._limits.n_step
        first = np.maximum(self.opened - self._limits.stored, history)
        last = self.committed - (n_step - 1)
        return RingRange(first, np.maximum(first, last))

    def state(self) -> State:
        return {name: getattr(self, name).copy() for name in _SAVED}

    def load(self, state: State) -> None:
        for name in _SAVED:
            getattr(self, name)[:] = np.asarray(state[name])
