"""Rollout store: the last [T, B] steps, learned from and then overwritten.

Gives the sampler a slot to fill in place and the learner batches of it: the whole rollout at once,
or shuffled minibatches over several epochs. Knows no sampler, network or optimiser.

Frames are kept once. The whole rollout is a view of them: between the engine's write and the
network's conversion to floats nothing is copied unless an episode has just begun.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from .. import streams
from ..records import Batch, Experience, Slot, State


@dataclass(frozen=True, kw_only=True)
class RolloutSettings:
    """How a rollout becomes batches."""

    epochs: int = 1
    """Times that every step is learned from."""
    num_minibatches: int = 1
    """Equal, shuffled parts of the rollout per epoch; 1 keeps it whole."""

    def __post_init__(self) -> None:
        if self.epochs < 1 or self.num_minibatches < 1:
            raise ValueError(
                f"epochs={self.epochs} and num_minibatches={self.num_minibatches} "
                "must be at least 1."
            )


class RolloutStore:
    """One slot, committed by `put` and handed out as batches until the next `put`."""

    def __init__(self, slot: Slot, settings: RolloutSettings, seed: int) -> None:
        num_samples = slot.actions.numel()
        if num_samples % settings.num_minibatches:
            raise ValueError(
                f"{num_samples} steps per rollout do not divide into "
                f"{settings.num_minibatches} equal minibatches; change num_envs, "
                "rollout_agent_steps or num_minibatches."
            )
        self._slot, self._settings, self._seed = slot, settings, seed
        self._columns: dict[str, Tensor] = {}
        self._num_updates = 0

    def slot(self) -> Slot:
        return self._slot

    def put(self, experience: Experience) -> None:
        named = {**experience.slot.columns, **experience.columns}
        self._columns = {name: column.flatten(0, 1) for name, column in named.items()}

    def batches(self) -> Iterator[Batch]:
        observations, actions = self._slot.observations(), self._slot.actions.flatten()
        for chosen in self._order(actions.numel()):
            pick = slice(None) if chosen is None else chosen
            yield Batch(
                observations=observations[pick],
                actions=actions[pick],
                columns={name: column[pick] for name, column in self._columns.items()},
                agent_steps=self._slot.agent_steps + actions.numel(),
                update=self._num_updates,
            )
            self._num_updates += 1

    def _order(self, num_samples: int) -> Iterator[Tensor | None]:
        """Indices of every minibatch; None for the whole rollout in its own order."""
        for _ in range(self._settings.epochs):
            if self._settings.num_minibatches == 1:
                yield None
                continue
            random = streams.generator(self._seed, "minibatches", self._num_updates)
            shuffled = torch.randperm(num_samples, generator=random)
            yield from shuffled.chunk(self._settings.num_minibatches)

    def feedback(self, batch: Batch, priorities: Tensor | None) -> None:
        """A rollout is used whole: it has no use for priorities."""

    def state(self) -> State:
        return {"num_updates": self._num_updates}

    def load(self, state: State) -> None:
        self._num_updates = state["num_updates"]
