"""Rollout store: the last [T, B] steps, learned from and then overwritten.

Gives the sampler a slot to fill in place and the learner batches of it: the whole rollout at once,
or shuffled minibatches over several epochs. Knows no sampler, network or optimiser.

Frames are kept once. The whole rollout is a view of them: between the engine's write and the
network's conversion to floats nothing is copied unless an episode has just begun.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
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
    shuffle: Literal["steps", "per-env"] = "steps"
    """'steps': any step may meet any other; 'per-env': every minibatch holds equally many steps of
    each environment, drawn by its global number, so that learners do not change the draw."""

    def __post_init__(self) -> None:
        if self.epochs < 1 or self.num_minibatches < 1:
            raise ValueError(
                f"epochs={self.epochs} and num_minibatches={self.num_minibatches} "
                "must be at least 1."
            )

    def batch_size(self, num_envs: int, rollout_agent_steps: int) -> int:
        """Agent steps that one update sees."""
        return num_envs * rollout_agent_steps // self.num_minibatches


class RolloutStore:
    """One slot, committed by `put` and handed out as batches until the next `put`."""

    def __init__(
        self, slot: Slot, settings: RolloutSettings, seed: int, first_env_id: int = 0
    ) -> None:
        per_env = settings.shuffle == "per-env"
        num_samples = slot.num_steps if per_env else slot.actions.numel()
        if num_samples % settings.num_minibatches:
            raise ValueError(
                f"{num_samples} steps per rollout{' and environment' * per_env} do not divide into "
                f"{settings.num_minibatches} equal minibatches; change num_envs, the rollout's "
                "length, num_minibatches or shuffle."
            )
        self._slot, self._settings, self._seed = slot, settings, seed
        self._sight, self._actions = slot.sight_of_steps(), slot.actions.view(-1)
        self._env_ids = first_env_id + np.arange(slot.actions.shape[1])
        self._columns: dict[str, Tensor] = {}
        self._num_updates = 0

    def slot(self) -> Slot:
        return self._slot

    def put(self, experience: Experience) -> None:
        named = {**experience.slot.columns, **experience.columns}
        self._columns = {name: column.flatten(0, 1) for name, column in named.items()}

    def batches(self) -> Iterator[Batch]:
        observations = self._sight.observations()
        for chosen in self._order():
            yield Batch(
                observations=_picked(observations, chosen),
                actions=_picked(self._actions, chosen),
                columns={n: _picked(column, chosen) for n, column in self._columns.items()},
                agent_steps=self._slot.agent_steps_after,
                update=self._num_updates,
            )
            self._num_updates += 1

    def _order(self) -> Iterator[Tensor | None]:
        """Indices of every minibatch; None for the whole rollout in its own order.

        Steps that were not played are left out, so that every mean is over those that were.
        """
        draw = self._steps_per_env if self._settings.shuffle == "per-env" else self._any_steps
        valid = None if self._slot.valid is None else self._slot.valid.flatten()
        for _ in range(self._settings.epochs):
            if self._settings.num_minibatches > 1:
                order = draw()
                played = order if valid is None else order[valid[order]]
                yield from played.tensor_split(self._settings.num_minibatches)
            else:
                yield None if valid is None or valid.all() else valid.nonzero().squeeze(-1)

    def _any_steps(self) -> Tensor:
        """All places [T * B] in any order."""
        first = int(self._env_ids[0])
        random = streams.generator(self._seed, "minibatches", self._num_updates, first)
        return torch.randperm(self._slot.actions.numel(), generator=random)

    def _steps_per_env(self) -> Tensor:
        """All places [T * B], T times one of each environment, in an order of its own."""
        num_steps, num_envs = self._slot.actions.shape
        counters = self._num_updates * num_steps + np.arange(num_steps)[:, None]
        drawn = streams.uniforms(self._seed, "minibatches", self._env_ids[None, :], counters)
        order = np.argsort(drawn[..., 0], axis=0, kind="stable")
        return torch.from_numpy((order * num_envs + np.arange(num_envs)).reshape(-1))

    def feedback(self, batch: Batch, priorities: Tensor | None) -> None:
        """A rollout is used whole: it has no use for priorities."""

    def state(self) -> State:
        return {"num_updates": self._num_updates}

    def load(self, state: State) -> None:
        self._num_updates = state["num_updates"]


def _picked(rows: Tensor, chosen: Tensor | None) -> Tensor:
    return rows if chosen is None else rows[chosen]
