"""Attachments: what watches or stands around the parts of a run, for measurements.

Takes nothing; gives a bundle that assembly hangs around engines, algorithm and threads.
Knows no part: a run without attachments is not changed by them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..interfaces import Algorithm
from ..schedules import Schedule

Mark = Callable[[str], Any]


def unmarked(part: str) -> None:
    """Where nothing is recorded: a clock splits the time of one thread only."""


def unchanged(algorithm: Algorithm) -> Algorithm:
    return algorithm


@dataclass(eq=False)
class Pause:
    """Whether environments stand still while a run acts and learns on, at a learning rate of 0.

    One rollout, learned from again and again, would lead the weights where no run goes.
    """

    is_on: bool = False

    def __call__(self) -> bool:
        return self.is_on


@dataclass(frozen=True, kw_only=True)
class Attachments:
    """What watches or stands around the parts of a run, for measurements; nothing by default."""

    mark_threads: Mark = unmarked
    """Called, by samplers that play side by side, with what their thread does from now on."""
    around: Callable[[Algorithm], Algorithm] = unchanged
    """Makes the algorithm that acts and learns from the recipe's own."""
    pause: Pause | None = None
    """Where given, it lets the environments stand still at any time."""


def unless_paused(learning_rate: Schedule, is_paused: Callable[[], bool] | None) -> Schedule:
    """The same learning rate; 0 while the environments stand still."""
    if is_paused is None:
        return learning_rate
    return lambda agent_steps: 0.0 if is_paused() else learning_rate(agent_steps)
