"""Rollout store: the last [T, B] steps, learned from and then overwritten.

Gives the sampler a slot to fill in place and the learner batches of it: the whole rollout at once,
or shuffled minibatches over several epochs; of a network with memory, whole sequences of some
environments. Knows no sampler, network or optimiser.

Frames are kept once. The whole rollout is a view of them: between the engine's write and the
network's conversion to floats nothing is copied unless an episode has just begun.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor

from .. import random
from ..carried import Sequences
from ..choices import Updates
from ..interfaces import BuildContext
from ..memory import Share
from ..records import Batch, Experience, Slot, State


@dataclass(frozen=True, kw_only=True)
class RolloutSettings:
    """How a rollout becomes batches."""

    needs: ClassVar[frozenset[str]] = frozenset()

    epochs: int = 1
    """Times that every step is learned from."""
    num_minibatches: int = 1
    """Equal, shuffled parts of the rollout per epoch; 1 keeps it whole."""
    shuffle: Literal["steps", "per-env", "envs"] = "steps"
    """'steps': any step may meet any other; 'per-env': every minibatch holds equally many steps of
    each environment; 'envs': it holds all steps of some environments, as memory needs them. The
    last two draw by global numbers of environments, so that learners do not change the draw."""

    def __post_init__(self) -> None:
        if self.epochs < 1 or self.num_minibatches < 1:
            raise ValueError(
                f"epochs={self.epochs} and num_minibatches={self.num_minibatches} "
                "must be at least 1."
            )

    def updates(self, num_envs: int, rollout_agent_steps: int) -> Updates:
        size = num_envs * rollout_agent_steps // self.num_minibatches
        return Updates(self.epochs * self.num_minibatches, size)

    @property
    def gives(self) -> frozenset[str]:
        once = ("one pass",) if self.epochs == self.num_minibatches == 1 else ()
        is_whole = self.num_minibatches == 1 or self.shuffle == "envs"
        more = (*once, "whole sequences") if is_whole else once
        always = {"rollouts", "fresh steps", "unplayed steps", "central updates", "device frames"}
        return frozenset({*always, *more})

    def shared(self, num_learners: int, *, divides_batch: bool = True) -> RolloutSettings:
        """Learners divide the environments, and with them every batch."""
        return self

    def memory(self, context: BuildContext) -> Share:
        """The rollout, and the pictures of a batch where it is a copy."""
        steps, envs, spaces = context.rollout_agent_steps, context.num_envs, context.spaces
        copied = self.updates(envs, steps).batch_agent_steps if self.num_minibatches > 1 else 0
        pictures = copied * spaces.stack * spaces.frame_bytes
        return Share(
            f"Rollouts of {steps:,} steps of {envs:,} environments",
            Slot.num_bytes(spaces, steps, envs, {**context.columns, **context.carried}) + pictures,
            lambda left: "use a smaller num_envs or a shorter rollout",
            context.device.memory,
        )

    def build(self, context: BuildContext) -> RolloutStore:
        steps, envs = context.rollout_agent_steps, context.num_envs
        size = (context.columns, context.carried, context.places)
        slot = Slot.allocate(context.spaces, steps, envs, *size)
        slot.num_learners = context.num_learners
        return RolloutStore(slot, self, context.seed, context.first_env_id)


class RolloutStore:
    """One slot, committed by `put` and given as batches until the next `put`."""

    keeps_rows = False

    def __init__(
        self, slot: Slot, settings: RolloutSettings, seed: int, first_env_id: int = 0
    ) -> None:
        num_steps, num_envs = slot.actions.shape
        num, what = {
            "steps": (num_steps * num_envs, "steps per rollout"),
            "per-env": (num_steps, "steps per rollout and environment"),
            "envs": (num_envs, "environments"),
        }[settings.shuffle]
        if num % settings.num_minibatches:
            raise ValueError(
                f"{num} {what} do not divide into {settings.num_minibatches} equal minibatches; "
                "change num_envs, the rollout's length, num_minibatches or shuffle."
            )
        self._slot, self._settings, self._seed = slot, settings, seed
        self._view, self._actions = slot.rollout_view(), slot.actions.view(-1)
        self._env_ids = first_env_id + np.arange(slot.actions.shape[1])
        self._columns: dict[str, Tensor] = {}
        self._sequences: Sequences | None = None
        self._num_batches = settings.epochs * settings.num_minibatches
        self._num_updates, self._num_given = 0, self._num_batches

    def slot(self) -> Slot:
        return self._slot

    def put(self, experience: Experience) -> None:
        named = {**experience.slot.columns, **experience.columns}
        self._columns = {name: column.flatten(0, 1) for name, column in named.items()}
        self._sequences = experience.slot.sequences(experience.slot.num_steps)
        self._num_given = 0

    @property
    def owes(self) -> bool:
        return self._num_given < self._num_batches

    def batches(self) -> Iterator[Batch]:
        observations = self._view.observations()
        for rows in self._order():
            chosen, sequences = self._learned(rows)
            # Counted before it is given: a learner that stops here has learned from it.
            update, self._num_updates = self._num_updates, self._num_updates + 1
            self._num_given += 1
            yield Batch(
                observations=_picked(observations, rows),
                actions=_picked(self._actions, chosen),
                columns={n: _picked(column, chosen) for n, column in self._columns.items()},
                agent_steps=self._slot.agent_steps_after,
                update=update,
                random=random.generator(self._seed, "loss", update, int(self._env_ids[0])),
                sequences=sequences,
            )

    def _learned(self, rows: Tensor | None) -> tuple[Tensor | None, Sequences | None]:
        """Which of a minibatch's rows are learned from, and how all of them are sequences.

        A network with memory goes through steps that were not played, and learns nothing there.
        """
        whole, valid = self._sequences, self._slot.valid
        if whole is None:
            return rows, None
        if rows is not None:
            whole = whole.of_envs(rows[: len(rows) // self._slot.num_steps])
        if valid is None or valid.all():
            return rows, whole
        played = _picked(valid.flatten(), rows).nonzero().squeeze(-1)
        return (played if rows is None else rows[played]), replace(whole, chosen=played)

    def _order(self) -> Iterator[Tensor | None]:
        """Indices of every minibatch left; None for the whole rollout in its own order."""
        num_parts = self._settings.num_minibatches
        first_update = self._num_updates - self._num_given
        epoch, given = divmod(self._num_given, num_parts)
        for number in range(epoch, self._settings.epochs):
            yield from self._parts(first_update + number * num_parts)[given:]
            given = 0

    def _parts(self, update: int) -> Sequence[Tensor | None]:
        """The minibatches of an epoch, whose first one is this update.

        Steps that were not played are left out, so that every mean is over those that were; of
        sequences later, by `_learned`.
        """
        slot = self._slot
        valid = slot.host.valid if self._sequences is None else None
        if self._settings.num_minibatches == 1:
            return [None if valid is None else slot.played()]
        valid = None if valid is None else valid.flatten()
        draws = {"steps": self._any_steps, "per-env": self._steps_per_env, "envs": self._whole_envs}
        order = draws[self._settings.shuffle](update)
        played = order if valid is None else order[valid[order]]
        return slot.device.upload(played).tensor_split(self._settings.num_minibatches)

    def _any_steps(self, update: int) -> Tensor:
        """All places [T * B] in any order."""
        first = int(self._env_ids[0])
        generator = random.generator(self._seed, "minibatches", update, first)
        return torch.randperm(self._slot.actions.numel(), generator=generator)

    def _steps_per_env(self, update: int) -> Tensor:
        """All places [T * B], T times one of each environment, in an order of its own."""
        num_steps, num_envs = self._slot.actions.shape
        counters = update * num_steps + np.arange(num_steps)[:, None]
        drawn = random.uniforms(self._seed, "minibatches", self._env_ids[None, :], counters)
        order = np.argsort(drawn[..., 0], axis=0, kind="stable")
        return torch.from_numpy((order * num_envs + np.arange(num_envs)).reshape(-1))

    def _whole_envs(self, update: int) -> Tensor:
        """All places [T * B], for each minibatch those of its environments, time first.

        Of every `num_minibatches` neighbours each goes to another minibatch.
        """
        (num_steps, num_envs), num_parts = self._slot.actions.shape, self._settings.num_minibatches
        drawn = random.uniforms(self._seed, "minibatches", self._env_ids, update)[:, 0]
        order = np.argsort(drawn.reshape(-1, num_parts), axis=1, kind="stable")
        envs = (order + np.arange(0, num_envs, num_parts)[:, None]).T  # [parts, environments]
        places = np.arange(num_steps)[None, :, None] * num_envs + envs[:, None, :]
        return torch.from_numpy(places.reshape(-1))

    def feedback(self, batch: Batch, priorities: Tensor | None) -> None:
        """A rollout is used whole: it has no use for priorities."""

    def state(self) -> State:
        """With the rollout itself only where some of it is still to be learned from."""
        slot, rollout = self._slot, dict[str, Any]()
        if self.owes:
            arrays = {"frames": slot.frames, "depth": slot.depth, "actions": slot.actions}
            rollout = {
                "arrays": {name: array.clone() for name, array in arrays.items()},
                "columns": {name: column.clone() for name, column in self._columns.items()},
                "valid": None if slot.host.valid is None else slot.host.valid.clone(),
                "sequences": self._saved_sequences(),
                "agent_steps": slot.agent_steps,
            }
        return {
            "num_updates": self._num_updates,
            "num_given": self._num_given,
            "rollout": rollout,
        }

    def _saved_sequences(self) -> State:
        """What of the rollout is sequences; nothing without memory."""
        if self._sequences is None:
            return {}
        state = {name: each.clone() for name, each in self._sequences.state.items()}
        return {"state": state, "begins": self._sequences.begins.clone()}

    def load(self, state: State) -> None:
        self._num_updates = state["num_updates"]
        rollout = state.get("rollout")
        self._num_given = state["num_given"] if rollout else self._num_batches
        if rollout:
            slot = self._slot
            for name, array in rollout["arrays"].items():
                getattr(slot, name).copy_(array)
            slot.host.valid, slot.agent_steps = rollout["valid"], rollout["agent_steps"]
            slot.valid = None if slot.host.valid is None else slot.device.upload(slot.host.valid)
            self._columns = {n: slot.device.upload(c) for n, c in rollout["columns"].items()}
            self._sequences = Sequences(**saved) if (saved := rollout.get("sequences")) else None


def _picked(rows: Tensor, chosen: Tensor | None) -> Tensor:
    return rows if chosen is None else rows[chosen]
