"""What a network computed while it acted, used again when it learns.

Takes the number of rows of a rollout; keeps every native layer's activations while `keeping`, row
after row, and hands them out while `recalling`. Knows layers as keys only.

A rollout that is learned from once, whole, in its own order and before any weight has moved would
otherwise go forward twice. Every row of the native kernels depends on its own picture alone, so
that a recalled result has the bits of a second forward pass. Where anything differs (a weight has
moved, rows are missing) nothing is recalled and the layer computes: forgetting costs time only.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from ..spans import Span, spans

Begin = Callable[[], Any]
"""Makes a layer's work: what it knows of its rows besides arrays, and can `clear`."""

Shapes = Sequence[tuple[int, ...]]
"""Of one row of every array that a layer gives."""

_version_of = attrgetter("_version")


def versions_of(weights: Sequence[Tensor]) -> list[int] | None:
    """PyTorch counts the changes of every tensor but of those made in inference mode."""
    try:
        return list(map(_version_of, weights))
    except RuntimeError:
        return None


class Rows(NamedTuple):
    """Rows of the arrays that a layer gives, where they lie, and the work on all of its rows."""

    arrays: list[Tensor]
    spans: list[Span]
    work: Any

    @classmethod
    def of(cls, arrays: list[Tensor], work: Any) -> Rows:
        return cls(arrays, spans(arrays), work)


@dataclass
class Kept:
    """Rows of one layer."""

    whole: Rows
    num_rows: int = 0
    parts: dict[tuple[int, int], Rows] = field(default_factory=dict)
    """Rows that were asked for, by the first and the end: views are made once."""

    def part(self, first: int, end: int) -> Rows:
        found = self.parts.get((first, end))
        if found is None:
            arrays = [each[first:end] for each in self.whole.arrays]
            found = self.parts[first, end] = Rows.of(arrays, self.whole.work)
        return found


class Memory:
    """Activations of one rollout of `capacity_rows` observations."""

    def __init__(self, network: nn.Module, capacity_rows: int) -> None:
        self._weights = list(network.parameters())
        self._versions: list[int] | None = None
        self._capacity_rows = capacity_rows
        self._layers: dict[Hashable, Kept] = {}

    @property
    def capacity_rows(self) -> int:
        return self._capacity_rows

    def begin(self) -> None:
        """A new rollout: rows are kept from the first one on."""
        self._versions = versions_of(self._weights)
        for layer in self._layers.values():
            layer.num_rows = 0

    @contextmanager
    def keeping(self) -> Iterator[None]:
        """Forward passes without gradient are kept, after the rows of the rollout so far."""
        with _active(keeper=self):
            yield

    @contextmanager
    def recalling(self) -> Iterator[None]:
        """Forward passes with gradient take what was kept."""
        with _active(source=self):
            yield

    def room(self, layer: Hashable, num: int, shapes: Shapes, begin: Begin | None) -> Rows | None:
        """Places for the next rows, or None.

        None when the rollout is full, and once a weight has moved: work goes on from earlier rows.
        """
        if not self._capacity_rows or not self._is_current():
            return None
        kept = self._layers.get(layer)
        if kept is None:
            with torch.inference_mode(False):  # they will be part of a graph
                arrays = [torch.empty((self._capacity_rows, *shape)) for shape in shapes]
            kept = self._layers[layer] = Kept(Rows.of(arrays, begin() if begin else None))
        first, end = kept.num_rows, kept.num_rows + num
        if end > self._capacity_rows:
            return None
        if first == 0 and kept.whole.work is not None:
            kept.whole.work.clear()
        kept.num_rows = end
        return kept.part(first, end)

    def work(self, layer: Hashable) -> Any | None:
        """The work on the rows that are kept, of help to rows that need not be."""
        kept = self._layers.get(layer)
        if kept is None or not kept.num_rows or not self._is_current():
            return None
        return kept.whole.work

    def recalled(self, layer: Hashable, num: int) -> Rows | None:
        """All rows, if there are `num` of them and no weight of the network has moved since."""
        kept = self._layers.get(layer)
        if kept is None or not kept.num_rows == num == self._capacity_rows:
            return None
        return kept.whole if self._is_current() else None

    def _is_current(self) -> bool:
        """Whether no weight has moved since the first row."""
        return self._versions is not None and self._versions == versions_of(self._weights)


class _Active(threading.local):
    """Which memory this thread's forward passes use."""

    keeper: Memory | None = None
    source: Memory | None = None


_current = _Active()


@contextmanager
def _active(keeper: Memory | None = None, source: Memory | None = None) -> Iterator[None]:
    before = _current.keeper, _current.source
    _current.keeper, _current.source = keeper, source
    try:
        yield
    finally:
        _current.keeper, _current.source = before


def room(layer: Hashable, num: int, shapes: Shapes, begin: Begin | None = None) -> Rows | None:
    """Places for the activations of a forward pass, where somebody wants them kept."""
    keeper = _current.keeper
    return keeper.room(layer, num, shapes, begin) if keeper else None


def work(layer: Hashable) -> Any | None:
    """The work on rows that are kept meanwhile, where there are any."""
    keeper = _current.keeper
    return keeper.work(layer) if keeper else None


def recalled(layer: Hashable, num: int) -> Rows | None:
    """The activations of a forward pass, where they are known."""
    source = _current.source
    return source.recalled(layer, num) if source else None
