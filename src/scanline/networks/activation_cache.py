"""The activation cache: what a network computed while it acted, used again when it learns.

Takes the number of rows of a rollout; stores every native layer's activations inside `writing`, row
after row, and gives them inside `reading`. Knows layers as keys only.

A rollout that is learned from once, whole, in its own order and before any weight has changed would
otherwise go forward twice. Every row of the native kernels depends on its own image alone, so a hit
has the bits of a second forward pass. Where anything differs (a weight has changed, rows are
missing) it is a miss and the layer computes: a miss costs time only.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from ..native_arrays import Span, spans

MakeWorkspace = Callable[[], Any]
"""Makes a layer's native workspace: intermediate results of its rows besides the activations."""

Shapes = Sequence[tuple[int, ...]]
"""Of one row of every array that a layer gives."""

_version = attrgetter("_version")


def versions_of(weights: Sequence[Tensor]) -> list[int] | None:
    """PyTorch's change counts of these tensors; None where one was made in inference mode."""
    try:
        return list(map(_version, weights))
    except RuntimeError:
        return None


class Activations(NamedTuple):
    """Rows of the arrays that a layer gives, their addresses, and the workspace of all its rows."""

    arrays: list[Tensor]
    spans: list[Span]
    workspace: Any

    @classmethod
    def of(cls, arrays: list[Tensor], workspace: Any) -> Activations:
        return cls(arrays, spans(arrays), workspace)


@dataclass
class CacheEntry:
    """The activations of one layer."""

    whole: Activations
    num_rows: int = 0
    """Rows that are written."""
    slices: dict[tuple[int, int], Activations] = field(default_factory=dict)
    """By first row and end: views are made once."""

    def slice(self, first: int, end: int) -> Activations:
        rows = self.slices.get((first, end))
        if rows is None:
            arrays = [each[first:end] for each in self.whole.arrays]
            rows = self.slices[first, end] = Activations.of(arrays, self.whole.workspace)
        return rows


class ActivationCache:
    """Activations of one rollout of `capacity_rows` observations."""

    def __init__(self, network: nn.Module, capacity_rows: int) -> None:
        self.capacity_rows = capacity_rows
        self._weights = list(network.parameters())
        self._versions: list[int] | None = None
        self._entries: dict[Hashable, CacheEntry] = {}

    def start_rollout(self) -> None:
        """Drops all rows; the weights of now are those of the next rows."""
        self._versions = versions_of(self._weights)
        for entry in self._entries.values():
            entry.num_rows = 0

    def writing(self) -> AbstractContextManager[None]:
        """Forward passes without gradient append their rows to those of the rollout so far."""
        return _active(target=self)

    def reading(self) -> AbstractContextManager[None]:
        """Forward passes with gradient take the stored rows."""
        return _active(source=self)

    def reserve(
        self, key: Hashable, num: int, shapes: Shapes, make_workspace: MakeWorkspace | None = None
    ) -> Activations | None:
        """Arrays for the next rows; None when the rollout is full or a weight has changed."""
        if not self.capacity_rows or not self._is_current():
            return None
        entry = self._entries.get(key)
        if entry is None:
            entry = self._entries[key] = self._new_entry(shapes, make_workspace)
        first, end = entry.num_rows, entry.num_rows + num
        if end > self.capacity_rows:
            return None
        if first == 0 and entry.whole.workspace is not None:
            entry.whole.workspace.clear()
        entry.num_rows = end
        return entry.slice(first, end)

    def _new_entry(self, shapes: Shapes, make_workspace: MakeWorkspace | None) -> CacheEntry:
        with torch.inference_mode(False):  # they will be part of a graph
            arrays = [torch.empty((self.capacity_rows, *shape)) for shape in shapes]
        return CacheEntry(Activations.of(arrays, make_workspace() if make_workspace else None))

    def workspace(self, key: Hashable) -> Any | None:
        """The workspace of the stored rows: rows that are not stored may be equal to some."""
        entry = self._entries.get(key)
        if entry is None or not entry.num_rows or not self._is_current():
            return None
        return entry.whole.workspace

    def lookup(self, key: Hashable, num: int) -> Activations | None:
        """All rows, if there are `num` of them and no weight of the network has changed since."""
        entry = self._entries.get(key)
        if entry is None or not entry.num_rows == num == self.capacity_rows:
            return None
        return entry.whole if self._is_current() else None

    def _is_current(self) -> bool:
        return self._versions is not None and self._versions == versions_of(self._weights)


class _Active(threading.local):
    """The caches that this thread's forward passes use."""

    target: ActivationCache | None = None
    """Inside `writing`."""
    source: ActivationCache | None = None
    """Inside `reading`."""


active = _Active()


@contextmanager
def _active(
    target: ActivationCache | None = None, source: ActivationCache | None = None
) -> Iterator[None]:
    before = active.target, active.source
    active.target, active.source = target, source
    try:
        yield
    finally:
        active.target, active.source = before
