"""Optimisers whose weights are central: chunk by chunk, or merged after several local steps.

Takes parameters whose `.grad` is set, and a central store; moves the store by them and leaves the
central weights in the parameters. Knows nothing of losses, learners or processes.

Both wrap the optimiser of a local run, so that one learner gives a local run's bits: `ChunkedStep`
runs it on the store's memory, `MultiStepAdam` on its own and merges what several steps came to
(Stooke and Abbeel 2018, section 4.3 and appendix B).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor, nn

from ..devices import Device, download
from ..interfaces import Metric
from ..records import State
from .central import CentralRule, CentralStore, Chunk, visit
from .local import NotFiniteGradientError
from .optimisers import STEP, Optimiser, OptimiserSettings, memories, scale

_AVERAGES = ("exp_avg", "exp_avg_sq")


class FlatArray:
    """A group's parameters as one flat array in the order of their memory, and back.

    The flat array is in host memory, as what learners share; parameters may be on a device.
    """

    def __init__(self, parameters: Sequence[nn.Parameter]) -> None:
        self.parameters = list(parameters)
        ends = torch.tensor([each.numel() for each in self.parameters]).cumsum(0).tolist()
        self.parts = [slice(e - p.numel(), e) for e, p in zip(ends, self.parameters, strict=True)]
        self.num_numbers = ends[-1]
        self._device = Device.of(self.parameters[0])

    def gathered(self, tensors: Sequence[Tensor | None], into: Tensor | None = None) -> Tensor:
        """Copies of tensors shaped like the parameters; zeros for one that is missing."""
        host = torch.empty(self.num_numbers) if into is None else into
        into = host if self._device.is_host else self._device.empty((self.num_numbers,))
        for part, parameter, tensor in zip(self.parts, self.parameters, tensors, strict=True):
            if tensor is None:
                into[part] = 0.0
            else:
                _in_order(into[part], parameter).copy_(tensor)
        if into is not host:
            host.copy_(torch.from_numpy(download(into)))
        return host

    def scatter(self, start: int, values: Tensor, into: Sequence[Tensor]) -> None:
        """Copies the flat values from place `start` on into tensors shaped like the parameters."""
        stop, values = start + len(values), self._device.upload(values)
        for part, parameter, tensor in zip(self.parts, self.parameters, into, strict=True):
            first, last = max(part.start, start), min(part.stop, stop)
            if first < last:
                own = _in_memory(tensor, parameter)
                own[first - part.start : last - part.start] = values[first - start : last - start]


def _in_order(flat: Tensor, parameter: Tensor) -> Tensor:
    """A flat array seen in the parameter's shape and order of memory."""
    return flat.as_strided(parameter.shape, parameter.stride(), flat.storage_offset())


def _in_memory(tensor: Tensor, parameter: Tensor) -> Tensor:
    """A dense tensor with the parameter's strides, as the flat array that it is in memory."""
    assert tensor.stride() == parameter.stride()
    return tensor.detach().as_strided((tensor.numel(),), (1,), tensor.storage_offset())


class CentralOptimiser(ABC):
    """What both rules share: the group's chunks, its gradient, and pulling."""

    def __init__(
        self,
        store: CentralStore,
        group: str,
        parameters: Sequence[nn.Parameter],
        settings: CentralRule,
    ) -> None:
        self.store, self.flat, self._settings = store, FlatArray(parameters), settings
        self.numbers = store.layout.chunks_of(group)
        self.first = store.layout.groups[group].start
        self.gradient = torch.zeros(self.flat.num_numbers)
        self.waited_seconds = 0.0
        """Time spent waiting for locks so far."""
        self.version = 0
        """Updates in the weights that this learner has."""
        self.own_updates = 0
        """Updates of the store that were this learner's."""

    @abstractmethod
    def step(self, learning_rate: float, gradient_scale: Metric = 1.0) -> None:
        """Moves the store by the gradient, by the rule."""

    def take_gradient(self, gradient_scale: Metric) -> None:
        gradients = [each.grad for each in self.flat.parameters]
        scale([each for each in gradients if each is not None], gradient_scale)
        self.flat.gathered(gradients, self.gradient)
        if not torch.isfinite(self.gradient).all():
            raise NotFiniteGradientError("the gradient holds infinities or what is no number")

    def part(self, flat: Tensor, chunk: Chunk) -> Tensor:
        """The chunk's part of one of the group's flat arrays."""
        return flat[chunk.range.start - self.first : chunk.range.stop - self.first]

    @torch.no_grad()
    def keep(self, number: int) -> None:
        """Copies an open chunk into the learner's own parameters."""
        chunk = self.store.chunk(number)
        self.flat.scatter(chunk.range.start - self.first, chunk.parameters, self.flat.parameters)
        if number == self.numbers[0]:
            self.version = int(chunk.updates)

    def pull(self) -> None:
        """Makes the learner's parameters the central ones."""
        self.visit(self.keep)

    def visit(self, function: Callable[[int], None]) -> None:
        waited = visit(self.store, self.numbers, function, lock_seconds=self._settings.lock_seconds)
        self.waited_seconds += waited

    def adopt(self, memories: Mapping[str, Sequence[Tensor]]) -> None:
        raise TypeError("The memory of a central optimiser is the store's.")

    def remembered(self) -> dict[str, list[Tensor]]:
        return {}

    def state(self) -> State:
        return {}

    def load(self, state: State) -> None:
        """The store is saved by its owner."""
        assert not state


def optimiser_of(
    flat: Tensor,
    gradient: Tensor,
    memory: Mapping[str, Tensor],
    pieces: Sequence[slice],
    settings: OptimiserSettings,
) -> Optimiser:
    """A local optimiser over pieces of flat arrays."""
    parameters = [flat[piece] for piece in pieces]
    for each, piece in zip(parameters, pieces, strict=True):
        each.grad = gradient[piece]
    optimiser = settings.build(parameters)
    optimiser.adopt(
        {
            name: list(values.unbind()) if name == STEP else [values[piece] for piece in pieces]
            for name, values in memory.items()
        }
    )
    return optimiser


class ChunkedStep(CentralOptimiser):
    """The optimiser of a local run, on the memory of one open chunk after the other."""

    def __init__(
        self,
        store: CentralStore,
        group: str,
        parameters: Sequence[nn.Parameter],
        optimiser: OptimiserSettings,
        settings: CentralRule,
    ) -> None:
        super().__init__(store, group, parameters, settings)
        self._rate = 0.0
        self._optimisers = {n: self._optimiser(n, optimiser) for n in self.numbers}

    def _optimiser(self, number: int, settings: OptimiserSettings) -> Optimiser:
        chunk, pieces = self.store.chunk(number), self.store.layout.pieces(number)
        gradient = self.part(self.gradient, chunk)
        return optimiser_of(chunk.parameters, gradient, chunk.memories, pieces, settings)

    def step(self, learning_rate: float, gradient_scale: Metric = 1.0) -> None:
        self.take_gradient(gradient_scale)
        self._rate = learning_rate
        self.visit(self._update)
        self.own_updates += 1

    def _update(self, number: int) -> None:
        self._optimisers[number].step(self._rate)
        self.store.chunk(number).updates.add_(1)
        self.keep(number)


class MultiStepAdam(CentralOptimiser):
    """Adam on the learner's own weights; every `sync_updates` steps are merged into the store."""

    def __init__(
        self,
        store: CentralStore,
        group: str,
        parameters: Sequence[nn.Parameter],
        optimiser: OptimiserSettings,
        settings: CentralRule,
    ) -> None:
        if optimiser.kind != "adam" or optimiser.amsgrad:
            raise ValueError(
                "multi-step Adam merges the two averages of plain Adam; use kind='adam' and "
                "amsgrad=False, or the rule 'chunks'."
            )
        super().__init__(store, group, parameters, settings)
        self._betas = optimiser.betas
        self._own = torch.zeros(self.flat.num_numbers)
        pieces = self.flat.parts
        self._remembered = {
            name: torch.zeros(len(pieces) if name == STEP else self.flat.num_numbers)
            for name in memories(optimiser)
        }
        self._adam = optimiser_of(self._own, self.gradient, self._remembered, pieces, optimiser)
        self._start = torch.zeros_like(self._own)  # own weights at the last merge
        self._sum, self._square_sum = torch.zeros_like(self._own), torch.zeros_like(self._own)
        self._num_steps = 0
        self._seen: dict[int, int] = {}  # updates of each chunk at the last merge

    def step(self, learning_rate: float, gradient_scale: Metric = 1.0) -> None:
        self.take_gradient(gradient_scale)
        beta, square_beta = self._betas
        self._sum.mul_(beta).add_(self.gradient)
        self._square_sum.mul_(square_beta).addcmul_(self.gradient, self.gradient)
        self._adam.step(learning_rate)
        self._num_steps += 1
        if self._num_steps == self._settings.sync_updates:
            self.pull()
        else:
            self.flat.scatter(0, self._own, self.flat.parameters)

    def pull(self) -> None:
        """Merges what was stepped since the last time; the merged weights are then the own ones."""
        self.visit(self._merge)
        self.own_updates += self._num_steps
        self._num_steps = 0
        for each in (self._sum, self._square_sum):
            each.zero_()

    @torch.no_grad()
    def _merge(self, number: int) -> None:
        chunk, steps = self.store.chunk(number), self._num_steps
        if steps:
            alone = self._seen.get(number) == int(chunk.updates)
            (self._overwrite if alone else self._add)(chunk)
            chunk.memories[STEP].add_(steps)
            chunk.updates.add_(steps)
        self._seen[number] = int(chunk.updates)
        for mine in (self._own, self._start):
            self.part(mine, chunk).copy_(chunk.parameters)
        for name in _AVERAGES:
            self.part(self._remembered[name], chunk).copy_(chunk.memories[name])
        self._remembered[STEP].fill_(chunk.memories[STEP][0])
        self.keep(number)

    def _overwrite(self, chunk: Chunk) -> None:
        """No other learner has written since: own values are the merge, without its rounding."""
        chunk.parameters.copy_(self.part(self._own, chunk))
        for name in _AVERAGES:
            chunk.memories[name].copy_(self.part(self._remembered[name], chunk))

    def _add(self, chunk: Chunk) -> None:
        """Appendix B: weights -= own way; averages decay n times and take the summed gradients."""
        beta, square_beta = self._betas
        chunk.parameters.add_(self.part(self._own, chunk) - self.part(self._start, chunk))
        sums = ((beta, self._sum), (square_beta, self._square_sum))
        for name, (decay, added) in zip(_AVERAGES, sums, strict=True):
            chunk.memories[name].mul_(decay**self._num_steps)
            chunk.memories[name].add_(self.part(added, chunk), alpha=1 - decay)
