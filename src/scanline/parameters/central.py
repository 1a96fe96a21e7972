"""The central store: one set of weights that several learners move, chunk by chunk.

Takes the layout of a network's parameters and the settings of its optimiser; gives chunks, each a
range of parameters with the optimiser's memory of it, to one learner at a time.
Knows no loss, no gradient and no process: locks and shared memory are handed in or made here.

`CentralStore` is all that a learner sees, so that a store on another machine can take the place of
`SharedStore`. Gradients are computed before a chunk is opened: a lock is held for an update of that
chunk only, and whoever finds a chunk busy goes on with the next one.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, Protocol

import torch
from torch import Tensor, nn

from ..processes import Fields, SharedArrays, SharedLocks
from .optimisers import STEP, OptimiserSettings, memories

_NAP_SECONDS = 0.0005
"""Pause after a round in which every remaining chunk was busy."""
_GRAIN = 64
"""Numbers between possible borders inside a parameter: vector code then rounds every number as it
does where the parameter is whole."""


class CentralRule(Protocol):
    """How learners move the central weights; `CentralSettings` in exchange.py."""

    @property
    def rule(self) -> str:
        """'chunks' or 'multi-step-adam'."""

    @property
    def num_chunks(self) -> int: ...

    @property
    def sync_updates(self) -> int: ...

    @property
    def lock_seconds(self) -> float: ...


class StoreStuckError(RuntimeError):
    """A chunk stayed locked for too long."""


class Range(NamedTuple):
    """Numbers start <= i < stop of the flat parameters, all of one group."""

    group: str
    start: int
    stop: int


@dataclass(frozen=True)
class Layout:
    """Where every parameter lies in one flat array, group after group, and how it is cut."""

    groups: Mapping[str, Range]
    parameters: Sequence[Range]
    chunks: Sequence[Range]

    @classmethod
    def of(cls, groups: Mapping[str, Sequence[nn.Parameter]], num_chunks: int) -> Layout:
        """About `num_chunks` chunks of about equal size; none spans two groups."""
        parameters, end = list[Range](), 0
        for name, members in groups.items():
            for each in members:
                start, end = end, end + each.numel()
                parameters.append(Range(name, start, end))
        most = -(-end // num_chunks)
        whole = {name: _joined(parameters, name) for name in groups}
        chunks = [part for each in whole.values() for part in _cut(each, most, parameters)]
        return cls(whole, parameters, chunks)

    @property
    def num_numbers(self) -> int:
        return self.parameters[-1].stop

    def chunks_of(self, group: str) -> list[int]:
        return [number for number, chunk in enumerate(self.chunks) if chunk.group == group]

    def pieces(self, number: int) -> list[slice]:
        """The parameters, or parts of one, that a chunk holds, counted from its start."""
        chunk = self.chunks[number]
        met = [(max(p.start, chunk.start), min(p.stop, chunk.stop)) for p in self.parameters]
        return [slice(a - chunk.start, b - chunk.start) for a, b in met if a < b]


def _joined(parameters: Sequence[Range], group: str) -> Range:
    own = [each for each in parameters if each.group == group]
    return Range(group, own[0].start, own[-1].stop)


def _cut(whole: Range, most: int, parameters: Sequence[Range]) -> list[Range]:
    num_parts = -(-(whole.stop - whole.start) // most)
    ends = [whole.start + (whole.stop - whole.start) * n // num_parts for n in range(num_parts + 1)]
    ends = sorted({_border(end, parameters) for end in ends})
    return [Range(whole.group, a, b) for a, b in pairwise(ends)]


def _border(place: int, parameters: Sequence[Range]) -> int:
    """A place near this one that leaves whole vectors of the parameter before it."""
    for each in parameters:
        if each.start < place <= each.stop:
            return min(each.start + -(-(place - each.start) // _GRAIN) * _GRAIN, each.stop)
    return place


@dataclass(frozen=True)
class Chunk:
    """A range of parameters as the store holds it; valid while it is open."""

    range: Range
    parameters: Tensor  # [n]
    memories: Mapping[str, Tensor]
    """What the optimiser remembers: [n] each; of its count of steps one number per piece."""
    updates: Tensor  # [] int64, updates that moved this chunk


class CentralStore(Protocol):
    """Chunks that one learner at a time may read and write."""

    @property
    def layout(self) -> Layout: ...

    @property
    def updates(self) -> int:
        """Updates of all learners so far."""

    def chunk(self, number: int) -> Chunk:
        """The tensors of a chunk, always the same ones."""

    def try_open(self, number: int) -> bool:
        """Makes the chunk's tensors the central ones; False while another learner has them."""

    def close(self, number: int) -> None:
        """Makes the chunk's tensors central, and lets others have it."""


def store_fields(layout: Layout, optimiser: Mapping[str, OptimiserSettings]) -> Fields:
    """The arrays of a store."""
    names = {name for each in optimiser.values() for name in memories(each)}
    flat = ((layout.num_numbers,), "float32")
    per_chunk = (len(layout.chunks),)
    vectors = dict.fromkeys(sorted(names - {STEP}), flat)
    return {
        "parameters": flat,
        **vectors,
        STEP: ((sum(len(layout.pieces(n)) for n in range(len(layout.chunks))),), "float32"),
        "updates": (per_chunk, "int64"),
    }


class SharedStore:
    """A store in shared memory. Pulling and overwriting are then the update itself, in place."""

    def __init__(
        self,
        layout: Layout,
        optimiser: Mapping[str, OptimiserSettings],
        fds: tuple[int, int] | None = None,
    ) -> None:
        """`fds` of another process' store attach to it; without them a new one is made."""
        memory_fd, lock_fd = fds or (None, None)
        self._shared = SharedArrays(store_fields(layout, optimiser), memory_fd)
        self._locks = SharedLocks(lock_fd)
        self._layout = layout
        self._arrays = {name: torch.from_numpy(a) for name, a in self._shared.arrays.items()}
        named = {group: memories(settings) for group, settings in optimiser.items()}
        self._chunks = [
            self._chunk(number, range_, list(named[range_.group]))
            for number, range_ in enumerate(layout.chunks)
        ]
        if fds is None:
            self._begin(named)

    @property
    def layout(self) -> Layout:
        return self._layout

    @property
    def fds(self) -> tuple[int, int]:
        """What a process needs to attach."""
        return self._shared.fd, self._locks.fd

    @property
    def updates(self) -> int:
        """Updates so far; read without a lock."""
        return int(self._arrays["updates"][0])

    def chunk(self, number: int) -> Chunk:
        return self._chunks[number]

    def try_open(self, number: int) -> bool:
        return self._locks.try_acquire(number)

    def close(self, number: int) -> None:
        self._locks.release(number)

    def free(self) -> None:
        """Gives back the files; the memory goes with the last process that maps it."""
        self._shared.close_fd()
        self._locks.close()

    def _chunk(self, number: int, where: Range, names: Sequence[str]) -> Chunk:
        part, pieces = slice(where.start, where.stop), self._layout.pieces
        before = sum(len(pieces(n)) for n in range(number))
        steps = slice(before, before + len(pieces(number)))
        remembered = {name: self._arrays[name][steps if name == STEP else part] for name in names}
        parameters, updates = self._arrays["parameters"][part], self._arrays["updates"][number]
        return Chunk(where, parameters, remembered, updates)

    def _begin(self, named: Mapping[str, Mapping[str, float]]) -> None:
        for chunk in self._chunks:
            for name, start in named[chunk.range.group].items():
                chunk.memories[name].fill_(start)


def visit(
    store: CentralStore,
    numbers: Sequence[int],
    function: Callable[[int], None],
    *,
    lock_seconds: float,
    clock_seconds: Callable[[], float] = time.monotonic,
) -> float:
    """Calls the function with every chunk while it is open; gives the seconds spent waiting."""
    left, busy, waited = deque(numbers), 0, 0.0
    while left:
        number = left.popleft()
        if store.try_open(number):
            try:
                function(number)
            finally:
                store.close(number)
            busy = 0
            continue
        left.append(number)
        busy += 1
        if busy >= len(left):
            waited += _nap(clock_seconds)
            busy = 0
        if waited > lock_seconds:
            raise StoreStuckError(
                f"Chunks {sorted(left)} of the central store stayed locked for lock_seconds="
                f"{lock_seconds:g}; a learner hangs while it holds them."
            )
    return waited


def _nap(clock_seconds: Callable[[], float]) -> float:
    begun = clock_seconds()
    time.sleep(_NAP_SECONDS)
    return clock_seconds() - begun
