"""The parameters of one learner among several, and the owner of what they share.

Takes a network and a central store; `CentralParameters` is to a learner what `LocalParameters` is
to a run alone, `Owner` fills the store, and saves it in a local run's form.
Knows no process: who runs a learner, and where, is others' business.

A checkpoint in a local run's form is read by everything that reads checkpoints: evaluation, films,
and a run with another number of learners.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from ..interfaces import Metric
from ..records import State, Views
from .central import CentralSettings, CentralStore, Layout, SharedStore, visit
from .chunked import Central, ChunkedStep, Flat, MultiStepAdam
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
    settings: CentralSettings,
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
        settings: CentralSettings,
        **options: Any,
    ) -> None:
        self._central: list[Central] = []

        def build(name: str, parameters: list[nn.Parameter], own: OptimiserSettings) -> Optimiser:
            made: ChunkedStep | MultiStepAdam
            if settings.rule == "chunks":
                made = ChunkedStep(store, name, parameters, own, settings.lock_seconds)
            else:
                made = MultiStepAdam(
                    store, name, parameters, own, settings.lock_seconds, settings.sync_updates
                )
            self._central.append(made)
            return made

        super().__init__(network, optimiser, build=build, **options)
        self.pull()

    @property
    def waited_seconds(self) -> float:
        """Time spent waiting for locks so far."""
        return sum(each.waited_seconds for each in self._central)

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


class Owner:
    """Fills the store from a learner that is never stepped, and saves it in that learner's form."""

    def __init__(
        self, parameters: LocalParameters, store: CentralStore, lock_seconds: float
    ) -> None:
        self.parameters, self._store, self._lock_seconds = parameters, store, lock_seconds
        self._flats = {name: Flat(g.parameters) for name, g in parameters.groups.items()}
        for group in parameters.groups.values():
            group.optimiser.adopt(_fresh(group.parameters, group.settings))
        self._write()

    def pull(self) -> LocalParameters:
        """The learner with the newest central weights and memory."""
        self._visit(self._read_chunk)
        return self.parameters

    def state(self) -> State:
        parameters = self.pull()
        if parameters.views.target is not None:
            parameters.sync_target()
        return parameters.state()

    def load(self, state: State) -> None:
        self.parameters.load(state)
        self._write()

    def _write(self) -> None:
        self._visit(self._write_chunk)

    def _visit(self, function: Any) -> None:
        numbers = range(len(self._store.layout.chunks))
        with torch.no_grad():
            visit(self._store, numbers, function, lock_seconds=self._lock_seconds)

    def _read_chunk(self, number: int) -> None:
        chunk = self._store.chunk(number)
        name = chunk.range.group
        group, flat = self.parameters.groups[name], self._flats[name]
        start = chunk.range.start - self._store.layout.groups[name].start
        flat.scatter(start, chunk.parameters, group.parameters)
        for memory, tensors in group.optimiser.remembered().items():
            if memory == STEP:
                for each in tensors:
                    each.copy_(chunk.memories[memory][0])
            else:
                flat.scatter(start, chunk.memories[memory], tensors)
        self.parameters.version = int(chunk.updates)

    def _write_chunk(self, number: int) -> None:
        chunk = self._store.chunk(number)
        name = chunk.range.group
        group, flat = self.parameters.groups[name], self._flats[name]
        start = chunk.range.start - self._store.layout.groups[name].start
        part, whole = slice(start, start + len(chunk.parameters)), torch.empty(flat.num_numbers)
        flat.gather(group.parameters, whole)
        chunk.parameters.copy_(whole[part])
        for memory, tensors in group.optimiser.remembered().items():
            if memory == STEP:
                chunk.memories[memory].fill_(tensors[0])
            else:
                flat.gather(tensors, whole)
                chunk.memories[memory].copy_(whole[part])
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
