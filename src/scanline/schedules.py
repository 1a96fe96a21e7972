"""Schedules: numbers that change over a run, as pure functions of agent steps.

Takes the global count of agent steps; gives a float.
Knows nothing of what the number is: a learning rate, an exploration rate, a clip range.

Agent steps and not updates, so that a schedule means the same with any number of
environments, learners or epochs, and a resumed run needs no state for it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

Schedule = Callable[[int], float]
"""Agent steps to a value."""


@dataclass(frozen=True, kw_only=True)
class Constant:
    """Always the same value."""

    value: float
    """In the unit of what it schedules."""

    def __call__(self, agent_steps: int) -> float:
        return self.value


@dataclass(frozen=True, kw_only=True)
class Linear:
    """A straight line from `start` to `end`, and constant before and after it."""

    start: float
    """Value up to `begin_agent_steps`."""
    end: float
    """Value from `begin_agent_steps + duration_agent_steps` on."""
    duration_agent_steps: int
    """Agent steps from start to end."""
    begin_agent_steps: int = 0
    """Agent steps before the line begins."""

    def __post_init__(self) -> None:
        if self.duration_agent_steps < 1:
            raise ValueError(
                f"duration_agent_steps={self.duration_agent_steps} is no duration; "
                "use at least 1, or a Constant."
            )
        if self.begin_agent_steps < 0:
            raise ValueError(
                f"begin_agent_steps={self.begin_agent_steps} lies before the run; use 0 or more."
            )

    def __call__(self, agent_steps: int) -> float:
        done = (agent_steps - self.begin_agent_steps) / self.duration_agent_steps
        if done >= 1:
            return self.end
        return self.start + (self.end - self.start) * max(done, 0.0)


@dataclass(frozen=True, kw_only=True)
class WarmUp:
    """Another schedule, multiplied by a factor that first grows from 0 to 1."""

    schedule: Schedule
    """What holds once it is warm."""
    duration_agent_steps: int
    """Agent steps until the factor is 1."""

    def __post_init__(self) -> None:
        if self.duration_agent_steps < 1:
            raise ValueError(
                f"duration_agent_steps={self.duration_agent_steps} is no duration; "
                "use at least 1, or the schedule without warm-up."
            )

    def __call__(self, agent_steps: int) -> float:
        factor = min(max(agent_steps / self.duration_agent_steps, 0.0), 1.0)
        return factor * self.schedule(agent_steps)
