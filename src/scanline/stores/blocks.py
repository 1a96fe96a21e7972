"""Blocks: a filled slot as rows of the ring.

Takes a slot once and then, per put, the columns computed from it; gives arrays [rows, b, ...] by
the ring's names. Knows neither the ring nor where the rows will lie.

The views are made once per slot: with one environment and four steps, making them anew would cost
more than copying the frames.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from torch import Tensor

from ..records import Array, Slot, to_array
from .n_step import TERMINAL, TRUNCATED


class RowBlock:
    """The arrays of one slot as the ring wants them."""

    def __init__(self, slot: Slot) -> None:
        self.slot = slot
        self._names = slot.columns.keys()
        self._terminated, self._truncated = to_array(slot.terminated), to_array(slot.truncated)
        self._life_lost = to_array(slot.life_lost)
        self._depth, self._version = to_array(slot.depth), to_array(slot.version)
        self.end = np.zeros(self._terminated.shape, np.uint8)
        self._rows = {
            "frame": to_array(slot.frames[slot.stack - 1 :]),  # one row more than steps
            "depth": self._depth,  # likewise
            "action": to_array(slot.actions),
            "reward": to_array(slot.reward),
            "end": self.end,
            "version": np.broadcast_to(self._version[:, None], self.end.shape),
            **{name: to_array(column) for name, column in slot.columns.items()},
        }

    def rows(self, columns: Mapping[str, Tensor], rows_since_cut: int) -> Mapping[str, Array]:
        """The rows as the slot now stands, with columns that were computed from it."""
        terminal = self._terminated
        if self.slot.life_loss_ends_return:
            terminal = terminal | self._life_lost
        np.multiply(self._truncated, TRUNCATED, out=self.end, casting="unsafe")
        self.end[terminal] = TERMINAL
        rows = self._rows
        if rows_since_cut < self.slot.stack:
            rows = {**rows, "depth": self._depth_since_cut(rows_since_cut)}
        return {**rows, **self._own(columns)} if columns else rows

    def _depth_since_cut(self, rows_since_cut: int) -> Array:
        """Depths [T + 1, b]; right after a cut the ring has no frames from before it."""
        most = rows_since_cut + 1 + np.arange(len(self._depth))
        limited: Array = np.minimum(self._depth, most[:, None]).astype(np.uint8)
        return limited

    def _own(self, columns: Mapping[str, Tensor]) -> dict[str, Array]:
        unknown = sorted(columns.keys() - self._names)
        if unknown:
            raise ValueError(
                f"Columns {unknown} were put, but the replay was made without them; name them in "
                "the algorithm's columns()."
            )
        return {name: to_array(column) for name, column in columns.items()}
