"""Rollout queue: rollouts of one or more writers wait until there are trajectories for an update.

Gives every writer a slot to fill in place, and the learner batches of whole trajectories once
enough of them were put. Knows no sampler, network or optimiser.

All rollouts lie side by side in one array [T, most of a rollout and a batch], so a batch is a view
of what the writers filled: only its stacks are copied, as bytes. A rollout takes the next free
place, whichever writer brings it, and keeps versions of its own: rollouts of a batch may have been
played with different weights, which V-trace corrects.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from .. import random
from ..choices import Updates
from ..interfaces import BuildContext
from ..memory import Share
from ..records import Batch, Experience, Slot, State
from ..settings import at_least


@dataclass(frozen=True, kw_only=True)
class RolloutQueueSettings:
    """How many trajectories an update sees."""

    needs: ClassVar[frozenset[str]] = frozenset()
    gives: ClassVar[frozenset[str]] = frozenset(
        {"sequences", "writers", "whole sequences", "device frames"}
    )

    batch_trajectories: int = 32
    """Trajectories of an update, each a rollout of one environment."""

    def __post_init__(self) -> None:
        at_least(1, self, "batch_trajectories")

    def updates(self, num_envs: int, rollout_agent_steps: int) -> Updates:
        size = self.batch_trajectories * rollout_agent_steps
        return Updates(num_envs / self.batch_trajectories, size)

    def shared(self, num_learners: int, *, divides_batch: bool = True) -> RolloutQueueSettings:
        """Learners divide the trajectories of every batch."""
        if self.batch_trajectories % num_learners:
            raise ValueError(
                f"batch_trajectories={self.batch_trajectories} does not divide among "
                f"{num_learners} learners; use a multiple of {num_learners}."
            )
        return replace(self, batch_trajectories=self.batch_trajectories // num_learners)

    def memory(self, context: BuildContext) -> Share:
        """The queue, and the pictures of a batch."""
        batch, rollout = self._sizes(context)
        width, steps, spaces = max(batch, rollout), context.rollout_agent_steps, context.spaces
        return Share(
            f"A queue of {width:,} trajectories of {steps:,} steps",
            Slot.num_bytes(spaces, steps, width, {**context.columns, **context.carried})
            + batch * (steps + 1) * spaces.stack * spaces.frame_bytes,
            lambda left: "use a smaller num_envs or batch_trajectories, or shorter rollouts",
            context.device.memory,
        )

    def _sizes(self, context: BuildContext) -> tuple[int, int]:
        """Trajectories of a learner's batch, and of one rollout."""
        batch = self.shared(context.num_learners).batch_trajectories
        return batch, context.num_envs // context.num_samplers

    def build(self, context: BuildContext) -> RolloutQueue:
        batch, rollout = self._sizes(context)
        width = max(batch, rollout)
        if width % min(batch, rollout):
            raise ValueError(
                f"A rollout has {rollout} trajectories and a batch {batch} of them; one must be a "
                "multiple of the other: change num_envs, batch_trajectories or remote_actors."
            )
        steps = context.rollout_agent_steps
        size = (context.columns, context.carried, context.places)
        arrays = Slot.allocate(context.spaces, steps, width, *size)
        arrays.num_learners = context.num_learners
        return RolloutQueue(arrays, rollout, batch, (context.seed, context.first_env_id))


class RolloutQueue:
    """Arrays [T, W] of W trajectories: filled rollout by rollout, then given batch by batch."""

    keeps_rows = False

    def __init__(
        self,
        arrays: Slot,
        rollout_trajectories: int,
        batch_trajectories: int,
        key: tuple[int, int] = (0, 0),
    ) -> None:
        """`key`: seed of the run, and global number of the first environment."""
        self._arrays, self._batch_size, self._key = arrays, batch_trajectories, key
        num_steps, width = arrays.actions.shape
        # The sampler knows slots by identity: they are made once.
        self._slots = [
            arrays.part(0, num_steps, slice(first, first + rollout_trajectories))
            for first in range(0, width, rollout_trajectories)
        ]
        for slot in self._slots:  # each with versions of its own
            slot.version = slot.host.version = torch.zeros(num_steps, dtype=torch.int64)
        self._num_batches = width // batch_trajectories
        self._num_put, self._num_given, self._num_updates = 0, 0, 0

    def slot(self, writer: int = 0) -> Slot:
        """The next free place, for any writer."""
        return self._slots[self._num_put]

    def put(self, experience: Experience) -> None:
        if experience.columns:
            raise ValueError(
                f"{sorted(experience.columns)} were computed once per rollout, but trajectories "
                "that wait in a queue are prepared when they are learned from; compute them in the "
                "loss."
            )
        slot, place = experience.slot, self._slots[self._num_put]
        assert slot is place, "rollouts take their places in order"
        if self._num_put == 0:
            self._arrays.finals.clear()
            self._arrays.starts.clear()
        first = self._num_put * slot.actions.shape[1]
        self._arrays.finals.extend(slot.finals, env=first)
        self._arrays.starts.extend(slot.starts, env=first)
        self._num_put += 1
        if self._num_put == len(self._slots):
            self._num_given = 0

    @property
    def owes(self) -> bool:
        return self._num_put == len(self._slots)

    def batches(self) -> Iterator[Batch]:
        while self.owes:
            # Counted before it is given: a learner that stops here has learned from it.
            update, self._num_updates = self._num_updates, self._num_updates + 1
            first, self._num_given = self._num_given * self._batch_size, self._num_given + 1
            if self._num_given == self._num_batches:
                self._num_put = 0
            yield self._batch(slice(first, first + self._batch_size), update)

    def _batch(self, envs: slice, update: int) -> Batch:
        block = self._arrays.part(0, self._arrays.num_steps, envs)
        return Batch(
            observations=block.states(),
            actions=block.actions.flatten(),
            columns={name: column.flatten(0, 1) for name, column in block.columns.items()},
            agent_steps=max(slot.agent_steps_after for slot in self._slots),
            update=update,
            random=random.generator(self._key[0], "loss", update, self._key[1]),
            slot=block,
            sequences=block.sequences(block.num_steps + 1),
        )

    def cut(self, writer: int) -> None:
        """A writer begins new games: its trajectories stand alone, so nothing is to be done."""

    def feedback(self, batch: Batch, priorities: Tensor | None) -> None:
        """Trajectories are learned from once: they have no use for priorities."""

    def state(self) -> State:
        """With the rollouts that wait, or are still to be learned from."""
        kept = [_saved(slot) for slot in self._slots[: self._num_put]]
        return {
            "num_updates": self._num_updates,
            "num_given": self._num_given if self.owes else 0,
            "rollouts": kept,
        }

    def load(self, state: State) -> None:
        self._num_updates, self._num_put = state["num_updates"], 0
        for kept in state["rollouts"]:
            _restore(self.slot(), kept)
            self.put(Experience(self.slot()))
        self._num_given = state["num_given"]


_ARRAYS = (
    *("frames", "depth", "actions", "reward", "raw_reward"),
    *("terminated", "truncated", "life_lost", "version"),
)


def _saved(slot: Slot) -> State:
    return {
        "arrays": {name: getattr(slot, name).clone() for name in _ARRAYS},
        "columns": {name: column.clone() for name, column in slot.columns.items()},
        "carried": {name: each.clone() for name, each in slot.carried.items()},
        "finals": slot.finals.state(),
        "starts": slot.starts.state(),
        "agent_steps": slot.agent_steps,
    }


def _restore(slot: Slot, kept: State) -> None:
    for name, array in kept["arrays"].items():
        getattr(slot, name).copy_(array)
    for name, column in kept["columns"].items():
        slot.columns[name].copy_(column)
    for name, carried in kept["carried"].items():
        slot.carried[name].copy_(carried)
    slot.finals.load(kept["finals"])
    slot.starts.load(kept["starts"])
    slot.agent_steps = kept["agent_steps"]
