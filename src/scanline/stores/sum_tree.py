"""Sum tree: numbers at many places, and draws in proportion to them.

Takes values >= 0 for arrays of places; gives the places where the running sum reaches given marks.
Knows no replay, priority exponent or random stream.

Every node has 32 children instead of 2, so that a million places need four levels: NumPy then works
on a few wide rows, where twenty levels would cost twenty rounds of small calls. A node is always
summed anew from its children. Nothing drifts, and equal values give equal trees whatever the
history, which is what lets a checkpoint hold the leaves alone.
"""

from __future__ import annotations

import numpy as np

from ..records import Array

FAN_OUT = 32
_SHIFT = 5


class SumTree:
    """Values at `num_places` places, all zero at first."""

    def __init__(self, num_places: int) -> None:
        self._levels: list[Array] = []  # leaves first; each [nodes / 32, 32] float64
        for length in level_lengths(num_places):
            self._levels.append(np.zeros((length // FAN_OUT, FAN_OUT)))
        self.num_places = num_places
        self._wide = np.zeros((0, FAN_OUT + 1))

    @property
    def total(self) -> float:
        return float(self._levels[-1].sum())

    @property
    def leaves(self) -> Array:
        """The values [num_places]: a view, changed through `set` and `load` only."""
        return self._levels[0].reshape(-1)[: self.num_places]

    def at(self, places: Array) -> Array:
        """Values of the places."""
        return np.take(self._levels[0].reshape(-1), places)

    def set(self, places: Array, values: Array) -> None:
        """Changes the values of the places; where one is named twice, the last value stays."""
        if not np.isfinite(values).all() or (values < 0).any():
            raise ValueError(
                "A sum tree was given a value that is negative or not finite; a loss that became "
                "nan or infinite does this. Lower the learning rate or clip the gradient."
            )
        self._levels[0].reshape(-1)[places] = values
        for lower, upper in zip(self._levels, self._levels[1:], strict=False):
            places = places >> _SHIFT
            upper.reshape(-1)[places] = self._rows(lower, places).sum(axis=1)

    def find(self, marks: Array, places: Array) -> None:
        """Writes into `places` [N] where the running sum passes the marks [N]; marks are used up.

        A place with value zero is never found, even where a mark is off by rounding.
        """
        sums = self._scratch(len(marks))  # [N, 33], a zero and the running sums of a node
        starts = np.arange(len(marks)) * sums.shape[1]
        places.fill(0)
        for level in reversed(self._levels):
            np.cumsum(np.take(level, places, axis=0), axis=1, out=sums[:, 1:])
            np.minimum(marks, np.nextafter(sums[:, -1], 0.0), out=marks)
            child = (sums[:, 1:] <= marks[:, None]).sum(axis=1)
            marks -= np.take(sums, starts + child)
            places <<= _SHIFT
            places += child

    def load(self, leaves: Array) -> None:
        """Takes all values at once and sums the tree anew."""
        self.leaves[:] = leaves
        for lower, upper in zip(self._levels, self._levels[1:], strict=False):
            upper.reshape(-1)[: len(lower)] = lower.sum(axis=1)

    def _rows(self, level: Array, places: Array) -> Array:
        return np.take(level, places, axis=0)

    def _scratch(self, num: int) -> Array:
        if len(self._wide) != num:
            self._wide = np.zeros((num, FAN_OUT + 1))
        return self._wide


def level_lengths(num_places: int) -> list[int]:
    """Nodes of every level, leaves first, each rounded up to whole parents."""
    lengths = []
    length = num_places
    while True:
        parents = max(1, -(-length // FAN_OUT))
        lengths.append(parents * FAN_OUT)
        if parents == 1:
            return lengths
        length = parents


def tree_bytes(num_places: int) -> int:
    """Memory of a tree."""
    return 8 * sum(level_lengths(num_places))
