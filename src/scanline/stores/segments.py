"""Segment queue: short pieces of play that wait, in order, until a trainer joins some of them.

Gives a sampler an empty segment and takes it back full; gives trainers joined segments of at least
a minimum number of steps. Knows no sampler, network, thread or optimiser.

All segments are allocated once and only their numbers travel. The queue is bounded: when trainers
are slow, acting waits, so that the lag of what is learned stays bounded too. Segments of a batch
leave the queue together: any number of trainers holds no part of a batch, so that the segments that
one of them needs are never with another one that waits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from ..records import Batch, Column, Experience, Slot, Spaces
from ..threads import BoundedQueue

Waiting = Callable[[], None]
"""Called about ten times a second while a call waits; an error that it raises ends the wait."""

_PATIENCE_SECONDS = 0.1


def silently() -> None:
    """Of a wait that gives no sign of life."""


@dataclass(frozen=True, kw_only=True)
class SegmentSettings:
    """How segments wait and are joined."""

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

    def joined_segments(self, segment_agent_steps: int) -> int:
        """Segments per update."""
        return max(1, -(-self.min_batch_agent_steps // segment_agent_steps))

    def batch_size(self, num_envs: int, rollout_agent_steps: int) -> int:
        """Agent steps that one update sees, for segments of one environment."""
        return self.joined_segments(rollout_agent_steps) * rollout_agent_steps


@dataclass(frozen=True)
class SegmentShape:
    """Sizes that follow from other parts."""

    num_steps: int
    num_envs: int
    """Environments of one segment."""
    num_held: int
    """Segments that may be in the hands of samplers at once."""


class SegmentQueue:
    """Preallocated segments, the empty ones and those that wait to be learned from."""

    def __init__(
        self,
        spaces: Spaces,
        columns: Mapping[str, Column],
        shape: SegmentShape,
        settings: SegmentSettings,
    ) -> None:
        self.settings = settings
        self.num_joined = settings.joined_segments(shape.num_steps * shape.num_envs)
        num = shape.num_held + settings.queue_segments
        self._slots = [
            Slot.allocate(spaces, shape.num_steps, shape.num_envs, columns) for _ in range(num)
        ]
        self._numbers = {id(slot): number for number, slot in enumerate(self._slots)}
        self.empty: BoundedQueue[int] = BoundedQueue(num)
        self.full: BoundedQueue[int] = BoundedQueue(settings.queue_segments)
        for number in range(num):
            self.empty.put(number, 0.0)

    def slot(self, waiting: Waiting = silently) -> Slot:
        """An empty segment; waits, while trainers copy segments, until they give them back."""
        while not (taken := self.empty.take(patience_seconds=_PATIENCE_SECONDS)):
            waiting()
        return self._slots[taken[0]]

    def put(self, slot: Slot, waiting: Waiting = silently) -> None:
        """Queues a full segment; waits while there are too many."""
        while not self.full.put(self._numbers[id(slot)], _PATIENCE_SECONDS):
            waiting()

    def joined(self, patience_seconds: float) -> Slot | None:
        """Copies of as many segments as an update needs, side by side; None if they are not there.

        They are taken when there are enough of them, all at once.
        """
        numbers = self.full.take_together(self.num_joined, patience_seconds=patience_seconds)
        if not numbers:
            return None
        slot = join([self._slots[number] for number in numbers])
        for number in numbers:
            self.empty.put(number, 0.0)
        return slot if self.settings.learn_terminal_reward else without_terminal_rewards(slot)

    def batch(self, experience: Experience, agent_steps: int, update: int) -> Batch:
        """All steps of joined segments, or all but the last ones of games."""
        slot = experience.slot
        named = {**slot.columns, **experience.columns}
        kept: slice | Tensor = slice(None)
        if not self.settings.learn_terminal_reward:
            kept = (~slot.terminal).flatten().nonzero().flatten()
        return Batch(
            observations=slot.observations()[kept],
            actions=slot.actions.flatten()[kept],
            columns={name: column.flatten(0, 1)[kept] for name, column in named.items()},
            agent_steps=agent_steps,
            update=update,
        )

    def close(self) -> None:
        """Wakes every thread that waits."""
        self.empty.close()
        self.full.close()


def join(slots: Sequence[Slot]) -> Slot:
    """Copies of segments side by side, as one slot [T, sum of B]; its versions are [T, B] too."""
    sizes = [slot.actions.shape[1] for slot in slots]
    first_envs = [sum(sizes[:place]) for place in range(len(slots))]

    arrays: dict[str, Any] = {
        name: torch.cat([getattr(slot, name) for slot in slots], dim=1) for name in _SIDE_BY_SIDE
    }
    first = slots[0]
    joined = replace(
        first,
        **arrays,
        version=torch.cat(
            [s.version[:, None].expand(-1, size) for s, size in zip(slots, sizes, strict=True)], 1
        ),
        columns={n: torch.cat([slot.columns[n] for slot in slots], 1) for n in first.columns},
        last={n: torch.cat([slot.last[n] for slot in slots]) for n in first.last},
        finals=first.finals.emptied(),
        starts=first.starts.emptied(),
    )
    for slot, env in zip(slots, first_envs, strict=True):
        joined.finals.extend(slot.finals, env=env)
        joined.starts.extend(slot.starts, env=env)
    return joined


_SIDE_BY_SIDE = (
    *("frames", "depth", "actions", "reward", "raw_reward"),
    *("terminated", "truncated", "life_lost"),
)


def without_terminal_rewards(slot: Slot) -> Slot:
    """The same segments where the reward of a game's last step was never seen."""
    return replace(slot, reward=torch.where(slot.terminal, 0.0, slot.reward))
