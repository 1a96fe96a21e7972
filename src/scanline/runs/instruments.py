"""Instruments: norms and angles of gradients, off unless asked for.

Takes a batch and its loss at the updates that are measured; gives metrics for the log: norms of
parameters, gradients and steps, by layer and in total (Stooke and Abbeel 2018, Figures 6 and 8),
and the cosine between the gradients of half a batch and of all of it (their section 5.5).
Knows no network and no algorithm; changes nothing that is learned.

Norms cost one pass over the parameters, a cosine three halves of an update: both are taken at every
k-th update. A gradient is measured as it is after the all-reduce and before the clip.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ..records import Batch, LossResult, Views
from ..settings import at_least

Loss = Callable[[Views, Batch], LossResult]


@dataclass(frozen=True, kw_only=True)
class InstrumentSettings:
    """What is measured of learning besides its losses."""

    norms_every_updates: int = 0
    """Updates between two measurements of norms of parameters, gradients and steps; 0 for none."""
    cosine_every_updates: int = 0
    """Updates between two cosines of half a batch's gradient with the whole's; 0 for none."""
    log_intensity: bool = False
    """Whether the log has how often a collected step is learned from."""

    def __post_init__(self) -> None:
        names = ("norms_every_updates", "cosine_every_updates")
        at_least(0, self, *names, remedy="use 0 for never")


class Norms:
    """Norms around one step: called right before and right after it."""

    def __init__(self, first: Sequence[Tensor]) -> None:
        self._first = first
        self._before: list[Tensor] = []
        self.metrics: dict[str, Tensor] = {}

    def before(self, network: nn.Module) -> None:
        """With the gradients in place."""
        gradients = {n: p.grad for n, p in network.named_parameters() if p.grad is not None}
        self.metrics |= norms("gradient", gradients)
        self._before = copies(network.parameters())

    def after(self, network: nn.Module) -> None:
        """With the parameters moved."""
        names = [name for name, _ in network.named_parameters()]
        now = [each.detach() for each in network.parameters()]
        moved = torch._foreach_sub(now, self._before)
        gone = torch._foreach_sub(now, list(self._first))
        self.metrics |= norms("parameters", dict(zip(names, now, strict=True)))
        self.metrics |= norms("step", dict(zip(names, moved, strict=True)))
        self.metrics |= norms("distance", dict(zip(names, gone, strict=True)))


class Instruments:
    """What a run measures; made before the weights of a resumed run are loaded."""

    def __init__(self, settings: InstrumentSettings, network: nn.Module) -> None:
        self.settings = settings
        self._first = copies(network.parameters()) if settings.norms_every_updates else []

    def norms_at(self, update: int) -> Norms | None:
        """Where this update is measured, what `parameters.apply` calls around its step."""
        every = self.settings.norms_every_updates
        return Norms(self._first) if every and update % every == 0 else None

    def cosine_at(
        self, views: Views, batch: Batch, result: LossResult, loss: Loss
    ) -> dict[str, Tensor]:
        """Where this update is measured, the cosine of its gradient with that of half its batch."""
        every = self.settings.cosine_every_updates
        if not every or batch.update % every or halves(batch) < 2:
            return {}
        parameters = [each for each in views.live.parameters() if each.requires_grad]
        whole = gradient(result, parameters, retain_graph=True)
        half = gradient(loss(views, half_of(batch)), parameters)
        return {"norms/half_batch_cosine": torch.cosine_similarity(whole, half, dim=0)}


def gradient(
    result: LossResult, parameters: Sequence[nn.Parameter], retain_graph: bool = False
) -> Tensor:
    """The gradient of all losses together as one vector; zero where a parameter has none."""
    total = torch.stack(list(result.losses.values())).sum()
    found = torch.autograd.grad(
        total, parameters, retain_graph=retain_graph, allow_unused=True, materialize_grads=True
    )
    return torch.cat([each.reshape(-1) for each in found])


def halves(batch: Batch) -> int:
    """What a batch is divided by: its environments where it is sequences, else its steps."""
    if batch.slot is not None:
        return batch.slot.actions.shape[1]
    return len(batch.actions) if batch.sequences is None else batch.sequences.num_whole


def half_of(batch: Batch) -> Batch:
    """Every second step, or of sequences the first half of the environments."""
    if batch.slot is not None:
        return _half_of_sequences(batch)
    whole = batch.sequences
    envs = slice(0, whole.num_whole // 2 if whole else None)

    def half(rows: Tensor) -> Tensor:
        return rows[::2] if whole is None else whole.rows_of(rows, envs)

    changes: dict[str, Any] = {
        field.name: half(getattr(batch, field.name))
        for field in dataclasses.fields(batch)
        if isinstance(getattr(batch, field.name), Tensor)
    }
    changes["columns"] = {name: half(column) for name, column in batch.columns.items()}
    changes["sequences"] = None if whole is None else whole.of_envs(envs)
    return dataclasses.replace(batch, random=_copy(batch.random), **changes)


def _half_of_sequences(batch: Batch) -> Batch:
    assert batch.slot is not None
    num_steps, num_envs = batch.slot.actions.shape
    half = batch.slot.part(0, num_steps, slice(0, num_envs // 2))
    return dataclasses.replace(
        batch,
        observations=half.states(),
        actions=half.actions.flatten(),
        columns={name: column.flatten(0, 1) for name, column in half.columns.items()},
        slot=half,
        sequences=half.sequences(num_steps + 1),
        random=_copy(batch.random),
    )


def _copy(random: torch.Generator | None) -> torch.Generator | None:
    """The same chance again: measuring must not use up what learning draws from."""
    return None if random is None else torch.Generator().set_state(random.get_state())


def norms(what: str, named: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """`norms/WHAT` of all tensors, and `norms/WHAT/LAYER` of each layer's: names up to the last
    dot are a layer."""
    squares = torch.stack(torch._foreach_norm(list(named.values()))).square()
    layers: dict[str, list[int]] = {}
    for place, name in enumerate(named):
        layers.setdefault(name.rpartition(".")[0] or name, []).append(place)
    by_layer = {f"norms/{what}/{n}": squares[places].sum().sqrt() for n, places in layers.items()}
    return {f"norms/{what}": squares.sum().sqrt(), **by_layer}


def copies(tensors: Iterable[Tensor]) -> list[Tensor]:
    return [each.detach().clone() for each in tensors]
