"""Segment queue: short rollouts that wait, in order, until a learner joins some of them.

A `Store` for any number of threads: `slot` gives an empty segment, `put` queues a prepared one,
`batches` joins as many as an update needs. Knows no sampler, network or optimiser.

All segments are allocated once and only their numbers travel. The queue is bounded: when learners
are slow, acting waits, so that the lag of what is learned stays bounded too. Segments of a batch
leave the queue together: a learner that waits holds no part of a batch that another one needs.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from .. import random
from ..choices import Updates
from ..devices import Places
from ..interfaces import BuildContext
from ..memory import Share
from ..records import Batch, Column, Experience, Slot, Spaces, State
from ..threads import BoundedQueue, heartbeat

_PATIENCE_SECONDS = 0.1
"""Longest wait before a heartbeat, and of a learner for segments."""


@dataclass(frozen=True, kw_only=True)
class SegmentSettings:
    """How segments wait and are joined."""

    needs: ClassVar[frozenset[str]] = frozenset({"agents", "free threads"})
    gives: ClassVar[frozenset[str]] = frozenset({"segments", "fresh steps"})

    min_batch_agent_steps: int = 0
    """Fewest agent steps of an update: segments are joined until there are so many; 0 for one
    segment per update."""
    queue_segments: int = 100
    """Segments that may wait for a trainer; acting waits when there are so many."""
    learn_terminal_reward: bool = True
    """Whether the last step of a game is learned from; not so in GA3C's released code."""

    def __post_init__(self) -> None:
        if self.min_batch_agent_steps < 0 or self.queue_segments < 1:
            raise ValueError(
                f"min_batch_agent_steps={self.min_batch_agent_steps} must not be negative and "
                f"queue_segments={self.queue_segments} must be at least 1."
            )

    def shared(self, num_learners: int, *, divides_batch: bool = True) -> SegmentSettings:
        return self

    def joined_segments(self, segment_agent_steps: int) -> int:
        """Segments per update."""
        return max(1, -(-self.min_batch_agent_steps // segment_agent_steps))

    def memory(self, context: BuildContext) -> Share:
        num, size = self._segments(context)
        return Share(
            f"{num:,} segments of {context.rollout_agent_steps:,} steps",
            num * Slot.num_bytes(*size),
            lambda left: "use a smaller num_envs or queue_segments",
            context.device.memory,
        )

    def build(self, context: BuildContext) -> SegmentQueue:
        num, size = self._segments(context)
        return SegmentQueue(
            [Slot.allocate(*size, places=Places(context.device)) for _ in range(num)],
            self,
            context.seed,
        )

    def _segments(
        self, context: BuildContext
    ) -> tuple[int, tuple[Spaces, int, int, Mapping[str, Column]]]:
        """A full queue, and two segments of every agent, while it changes them; and their size."""
        engine, steps = context.engine.settings, context.rollout_agent_steps
        num = 2 * engine.num_groups + self.queue_segments
        return num, (context.spaces, steps, engine.group_size, context.columns)

    def updates(self, num_envs: int, rollout_agent_steps: int) -> Updates:
        """For segments of one environment."""
        size = self.joined_segments(rollout_agent_steps) * rollout_agent_steps
        return Updates(num_envs * rollout_agent_steps / size, size)


class SegmentQueue:
    """Preallocated segments: the empty ones, and the full ones that wait to be learned from."""

    def __init__(self, slots: Sequence[Slot], settings: SegmentSettings, seed: int = 0) -> None:
        self.settings, self._slots, self._seed = settings, slots, seed
        self.num_joined = settings.joined_segments(slots[0].actions.numel())
        """Segments of a batch."""
        self._numbers = {id(slot): number for number, slot in enumerate(slots)}
        self._prepared: dict[int, Mapping[str, Tensor]] = {}
        self.empty: BoundedQueue[int] = BoundedQueue(len(slots))
        self.full: BoundedQueue[int] = BoundedQueue(settings.queue_segments)
        for number in range(len(slots)):
            self.empty.put(number, 0.0)
        self._num_batches, self._counting = 0, threading.Lock()

    def slot(self) -> Slot:
        """An empty segment; waits until a learner gives one back."""
        while not (taken := self.empty.take(patience_seconds=_PATIENCE_SECONDS)):
            heartbeat()
        return self._slots[taken[0]]

    def hide_terminal_rewards(self, slot: Slot) -> None:
        """Before returns are computed: sets rewards to 0 that the settings keep from learning."""
        if not self.settings.learn_terminal_reward:
            slot.reward.masked_fill_(slot.terminal, 0.0)

    def put(self, experience: Experience) -> None:
        """Queues a full segment; waits while there are too many."""
        number = self._numbers[id(experience.slot)]
        self._prepared[number] = experience.columns
        while not self.full.put(number, _PATIENCE_SECONDS):
            heartbeat()

    @property
    def owes(self) -> bool:
        return len(self.full) >= self.num_joined

    def batches(self) -> Iterator[Batch]:
        """One batch of copies, if there are enough segments within a short wait; else none."""
        numbers = self.full.take_together(self.num_joined, patience_seconds=_PATIENCE_SECONDS)
        if numbers:
            batch = self._batch(numbers)
            for number in numbers:
                self.empty.put(number, 0.0)
            yield batch

    def _batch(self, numbers: Sequence[int]) -> Batch:
        """All steps of these segments, or all but the last ones of games."""
        slots = [self._slots[number] for number in numbers]
        joined = join(slots)
        prepared = side_by_side([self._prepared[number] for number in numbers])
        named = {**joined.columns, **prepared}
        kept, versions = self._kept(slots), joined.version.flatten()
        there: slice | Tensor = slice(None)
        if kept is not None:
            there, versions = joined.device.upload(kept), versions[kept]
        with self._counting:
            update, self._num_batches = self._num_batches, self._num_batches + 1
        return Batch(
            observations=joined.observations()[there],
            actions=joined.actions.flatten()[there],
            columns={
                **{name: column.flatten(0, 1)[there] for name, column in named.items()},
                "version": versions,
            },
            agent_steps=max(slot.agent_steps_after for slot in slots),
            update=update,
            random=random.generator(self._seed, "loss", update),
        )

    def _kept(self, slots: Sequence[Slot]) -> Tensor | None:
        """Places [n] of the steps to learn from, in host memory; None for all."""
        if self.settings.learn_terminal_reward:
            return None
        return (~torch.cat([slot.host.terminal for slot in slots], 1)).flatten().nonzero().flatten()

    def feedback(self, batch: Batch, priorities: Tensor | None) -> None:
        """Segments have no priorities."""

    def state(self) -> State:
        """Segments that wait are not kept: they are seconds of play."""
        return {"num_batches": self._num_batches}

    def load(self, state: State) -> None:
        self._num_batches = state["num_batches"]

    def close(self) -> None:
        """Wakes every thread that waits."""
        self.empty.close()
        self.full.close()


def join(slots: Sequence[Slot]) -> Slot:
    """Copies of segments as one slot [T, sum of B], without what only `prepare` reads.

    Its versions are [T, B] too.
    """
    first, sizes = slots[0], [slot.actions.shape[1] for slot in slots]
    arrays: dict[str, Any] = side_by_side(
        [{name: getattr(slot, name) for name in _SIDE_BY_SIDE} for slot in slots]
    )
    joined = replace(
        first,
        **arrays,
        version=torch.cat(
            [s.version[:, None].expand(-1, size) for s, size in zip(slots, sizes, strict=True)], 1
        ),
        columns=side_by_side([slot.columns for slot in slots]),
        starts=first.starts.emptied(),
        finals=first.finals.emptied(),
        staging=None,
        records=None,
        last={},
    )
    for place, slot in enumerate(slots):
        joined.starts.extend(slot.starts, env=sum(sizes[:place]))
    return joined


_SIDE_BY_SIDE = (
    *("frames", "depth", "actions", "reward", "raw_reward"),
    *("terminated", "truncated", "life_lost"),
)


def side_by_side(columns: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """Copies of arrays [T, B, ...] of the same names, joined by environments."""
    return {name: torch.cat([each[name] for each in columns], dim=1) for name in columns[0]}
