"""The parameters of one learner among several, and the owner of what they share.

Takes a network and a central store; `CentralParameters` is to a learner what `LocalParameters` is
to a run alone, `CentralOwner` fills the store, and saves it in a local run's form.
Knows no process.

A checkpoint in a local run's form is read by everything that reads checkpoints: evaluation, films,
and a run with another number of learners.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from ..interfaces import Metric
from ..records import State, Views
from .central import CentralRule, CentralStore, Chunk, Layout, SharedStore, visit
from .chunked import CentralOptimiser, ChunkedStep, FlatArray, MultiStepAdam
from .local import (
    LocalParameters,
    NotFiniteGradientError,
    not_finite,
    of_group,
    trainable_groups,
)
from .optimisers import STEP, Optimiser, OptimiserSettings, memories


def shared_store(
    network: nn.Module,
    optimiser: OptimiserSettings | Mapping[str, OptimiserSettings],
    settings: CentralRule,
    fds: tuple[int, int] | None = None,
) -> SharedStore:
    """The store of a network: a new one, or another process' by its `fds`."""
    groups = trainable_groups(network)
    chosen = {name: of_group(optimiser, name) for name in groups}
    return SharedStore(Layout.of(groups, settings.num_chunks), chosen, fds)


class CentralParameters(LocalParameters):
    """A learner's own copy of the weights; `apply` moves the central ones."""

    def __init__(
        self,
        network: nn.Module,
        optimiser: OptimiserSettings | Mapping[str, OptimiserSettings],
        store: CentralStore,
        settings: CentralRule,
        **options: Any,
    ) -> None:
        self._central: list[CentralOptimiser] = []
        self._store = store

        def build(name: str, parameters: list[nn.Parameter], own: OptimiserSettings) -> Optimiser:
            rule = ChunkedStep if settings.rule == "chunks" else MultiStepAdam
            self._central.append(rule(store, name, parameters, own, settings))
            return self._central[-1]

        super().__init__(network, optimiser, build=build, **options)
        self.pull()

    @property
    def waited_seconds(self) -> float:
        """Time spent waiting for locks so far."""
        return sum(each.waited_seconds for each in self._central)

    @property
    def store_updates(self) -> int:
        """Updates of the store so far, all learners'."""
        return self._store.updates

    @property
    def own_updates(self) -> int:
        """Updates of the store that were this learner's."""
        return self._central[0].own_updates

    def pull(self) -> None:
        """Makes the own weights the central ones."""
        for each in self._central:
            each.pull()
        self.version = self._central[0].version

    def apply(
        self, views: Views, losses: Mapping[str, Tensor], agent_steps: int
    ) -> dict[str, Metric]:
        """One update of the central weights; refuses a gradient that is not finite."""
        try:
            metrics = super().apply(views, losses, agent_steps)
        except NotFiniteGradientError as error:
            rate = self.learning_rate(agent_steps)
            raise not_finite(losses, self.version, rate, f"{error}; ") from None
        self.version = self._central[0].version
        return metrics


class CentralOwner:
    """Fills the store from a learner that is never stepped, and saves it in that learner's form."""

    def __init__(
        self, parameters: LocalParameters, store: CentralStore, lock_seconds: float
    ) -> None:
        self.parameters, self._store, self._lock_seconds = parameters, store, lock_seconds
        self._flats = {name: FlatArray(g.parameters) for name, g in parameters.groups.items()}
        for group in parameters.groups.values():
            group.optimiser.adopt(_fresh(group.parameters, group.settings))
        self._visit(self._write)

    def pull(self) -> LocalParameters:
        """The learner with the newest central weights and memory."""
        self._visit(self._read)
        return self.parameters

    def state(self) -> State:
        parameters = self.pull()
        if parameters.views.target is not None:
            parameters.sync_target()
        return parameters.state()

    def load(self, state: State) -> None:
        self.parameters.load(state)
        self._visit(self._write)

    def _visit(self, function: Callable[[Chunk], None]) -> None:
        numbers = range(len(self._store.layout.chunks))
        with torch.no_grad():
            visit(
                self._store,
                numbers,
                lambda number: function(self._store.chunk(number)),
                lock_seconds=self._lock_seconds,
            )

    def _pairs(self, chunk: Chunk) -> Iterator[tuple[str, Tensor, list[Tensor]]]:
        """Every array of a chunk by name, with the tensors of its group that it is a part of."""
        group = self.parameters.groups[chunk.range.group]
        yield "parameters", chunk.parameters, list(group.parameters)
        for name, tensors in group.optimiser.remembered().items():
            yield name, chunk.memories[name], tensors

    def _start(self, chunk: Chunk) -> int:
        """Where the chunk begins in the flat array of its group."""
        return chunk.range.start - self._store.layout.groups[chunk.range.group].start

    def _read(self, chunk: Chunk) -> None:
        for name, central, tensors in self._pairs(chunk):
            if name == STEP:
                torch._foreach_copy_(tensors, [central[0]] * len(tensors))
            else:
                self._flats[chunk.range.group].scatter(self._start(chunk), central, tensors)
        self.parameters.version = int(chunk.updates)

    def _write(self, chunk: Chunk) -> None:
        part = slice(self._start(chunk), self._start(chunk) + len(chunk.parameters))
        for name, central, tensors in self._pairs(chunk):
            if name == STEP:
                central.fill_(tensors[0])
            else:
                central.copy_(self._flats[chunk.range.group].gathered(tensors)[part])
        chunk.updates.fill_(self.parameters.version)


def _fresh(parameters: list[nn.Parameter], settings: OptimiserSettings) -> dict[str, list[Tensor]]:
    """The memory of an optimiser that has never stepped."""
    return {
        name: [
            torch.full((), start)
            if name == STEP
            else torch.full_like(each, start, requires_grad=False)
            for each in parameters
        ]
        for name, start in memories(settings).items()
    }
