"""Episodes under way: their scores and lengths, for `info`.

Takes raw rewards and ends of a step; gives return, length and time of the episodes that ended.
Knows no engine and no key of `info`.
"""

from __future__ import annotations

import time

import numpy as np

from ..records import Array


class EpisodeTotals:
    """Score, length in agent steps and start time of the episodes under way, for `info`.

    A lost life ends no episode here: scores are of whole games.
    """

    def __init__(self, num_envs: int) -> None:
        self.score = np.zeros(num_envs, np.float64)
        self.length = np.zeros(num_envs, np.int64)
        self.waits = np.zeros(num_envs, np.bool_)  # ended, and the next step only resets
        self._started = np.zeros(num_envs, np.float64)

    def restart(self, rows: slice, mask: Array | None = None) -> None:
        where = slice(None) if mask is None else mask
        for column in (self.score, self.length, self.waits):
            column[rows][where] = 0
        self._started[rows][where] = time.perf_counter()

    def add_step(
        self, rows: slice, raw_reward: Array, ended: Array, waits: bool
    ) -> dict[str, Array] | None:
        """Gives return, length and time {r, l, t}, zero where none ended, if any episode did."""
        self.score[rows] += raw_reward
        self.length[rows] += ~self.waits[rows]
        self.waits[rows] = ended & waits
        if not ended.any():
            return None
        seconds = time.perf_counter() - self._started[rows]
        columns = {"r": self.score[rows], "l": self.length[rows], "t": seconds}
        episode = {name: np.where(ended, column, 0) for name, column in columns.items()}
        self.restart(rows, ended)
        self.waits[rows] = ended & waits
        return episode
