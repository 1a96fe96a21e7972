"""When a run ends, and when something is due: limits, intervals of agent steps, saves.

Takes counters and seconds; gives the reason to stop, or that something is due.
Knows nothing of loops, networks or files.

An interval is derived from the count of agent steps alone, so that a resumed run agrees.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from ..settings import at_least

StopKind = Literal[
    "agent_steps", "seconds", "target_score", "too_slow", "callback", "signal", "leader"
]
_FIRST_SECONDS = 60.0
"""Training time after which a rate is worth a judgement."""


class Stop(NamedTuple):
    """Why a run stops."""

    kind: StopKind
    sentence: str


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Where a run ends, whichever comes first; None for no such limit."""

    agent_steps: int | None = None
    """Agent steps of the whole run, those before a resume included."""
    seconds: float | None = None
    """Training time in seconds, without evaluation, over all resumes."""
    target_score: float | None = None
    """Mean score of the last games, counted as the log does, that ends the run."""
    stop_if_too_slow: bool = False
    """Whether a run ends early that cannot do its agent steps within its seconds."""

    def __post_init__(self) -> None:
        for name in ("agent_steps", "seconds"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ValueError(f"{name}={value} must be positive.")
        if self.stop_if_too_slow and (self.agent_steps is None or self.seconds is None):
            raise ValueError("stop_if_too_slow needs agent_steps and seconds to judge by.")

    def reached(self, *, agent_steps: int, seconds: float, score: float | None) -> Stop | None:
        """The limit that is reached, if one is; `score` is None before the window is full."""
        if self.target_score is not None and score is not None and score >= self.target_score:
            reached = f"The score {score:.2f} has reached the target {self.target_score:g}."
            return Stop("target_score", reached)
        if self.agent_steps is not None and agent_steps >= self.agent_steps:
            return Stop("agent_steps", f"All {self.agent_steps:,} agent steps are done.")
        over = self.time_is_over(seconds)
        if over is None and self.stop_if_too_slow:
            return self._too_slow(agent_steps, seconds)
        return over

    def time_is_over(self, seconds: float) -> Stop | None:
        """The limit of seconds alone: the only one that ends a run in the midst of a turn."""
        if self.seconds is None or seconds < self.seconds:
            return None
        return Stop("seconds", f"The {self.seconds:,g} seconds of training are over.")

    def _too_slow(self, agent_steps: int, seconds: float) -> Stop | None:
        """Whether the agent steps would take longer than allowed, at the rate so far."""
        assert self.agent_steps is not None and self.seconds is not None
        expected_seconds = seconds * self.agent_steps / max(agent_steps, 1)
        if seconds < _FIRST_SECONDS or expected_seconds <= self.seconds:
            return None
        return Stop(
            "too_slow",
            f"This machine is too slow for the time it has: at {agent_steps / seconds:,.0f} agent "
            f"steps/s, {self.agent_steps:,} steps take {expected_seconds / 60:,.0f} minutes, more "
            f"than the {self.seconds / 60:,.0f} that were allowed. Close other programs, or allow "
            "more --seconds.",
        )

    def longer(self, kind: StopKind, *, agent_steps: int, seconds: float) -> str:
        """Options with which a run that a limit has ended goes on; '' where it needs none."""
        # A last turn, or a slow start, may have gone far beyond the limit.
        more_steps = 2 * max(self.agent_steps or 0, agent_steps // 2 + 1)
        more_seconds = 2 * max(self.seconds or 0, round(seconds))
        options = {
            "agent_steps": f"--agent-steps {more_steps:_}",
            "seconds": f"--seconds {more_seconds:g}",
            "target_score": "--target-score None",
            "too_slow": "--no-stop-if-too-slow",
        }
        return options.get(kind, "")

    def remaining_seconds(
        self, *, agent_steps: int, seconds: float, steps_per_second: float
    ) -> float | None:
        """Expected time until the first limit; None where none can be expected."""
        expected = []
        if self.agent_steps is not None and steps_per_second > 0:
            expected.append((self.agent_steps - agent_steps) / steps_per_second)
        if self.seconds is not None:
            expected.append(self.seconds - seconds)
        return max(min(expected), 0.0) if expected else None

    def done(self, *, agent_steps: int, seconds: float) -> float | None:
        """Share of the way to the nearer limit; None without a limit of steps or seconds."""
        limits = ((agent_steps, self.agent_steps), (seconds, self.seconds))
        shares = [now / limit for now, limit in limits if limit is not None]
        return min(max(shares), 1.0) if shares else None


def passed(every: int, before: int, now: int) -> bool:
    """Whether a multiple of `every` agent steps was reached after `before`; 0 for never."""
    return bool(every) and now // every > before // every


@dataclass(frozen=True)
class Every:
    """Something that is done whenever a multiple of some agent steps was reached."""

    agent_steps: int
    """0 for never."""
    do: Callable[[], None]
    early_agent_steps: Sequence[int] = ()
    """Counts before the first multiple at which it is done too; later ones have no effect."""

    def reached(self, before: int, now: int) -> bool:
        """Does it if it is due; gives whether it was."""
        early = [count for count in self.early_agent_steps if count < self.agent_steps]
        is_due = passed(self.agent_steps, before, now) or any(before < n <= now for n in early)
        if is_due:
            self.do()
        return is_due


@dataclass(frozen=True, kw_only=True)
class SaveSettings:
    """How often a checkpoint is written."""

    save_every_agent_steps: int = 1_000_000
    """Agent steps between two checkpoints; 0 for none by steps."""
    save_every_minutes: float = 5.0
    """Minutes between two checkpoints; 0 for none by time."""
    replay_segment_agent_steps: int = 20_000
    """Agent steps of a replay that are written as soon as they are there, so that a checkpoint is
    short; 0 writes them with the checkpoint only."""
    save_at_end: bool = True
    """Whether the end of a run is saved; off for measurements that keep nothing."""

    def __post_init__(self) -> None:
        names = ("save_every_agent_steps", "save_every_minutes", "replay_segment_agent_steps")
        at_least(0, self, *names, remedy="use 0 for never")


class SaveSchedule:
    """Says when the next save is due, by steps or by minutes."""

    def __init__(
        self,
        settings: SaveSettings,
        agent_steps: int = 0,
        clock_seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        self._every = settings.save_every_agent_steps
        self._every_seconds = settings.save_every_minutes * 60
        self._clock_seconds = clock_seconds
        self.saved(agent_steps)

    def due(self, agent_steps: int) -> bool:
        """Whether a multiple of the steps was reached, or the minutes passed, since the last."""
        if passed(self._every, self._saved_at, agent_steps):
            return True
        seconds = self._clock_seconds() - self._saved_clock
        return bool(self._every_seconds) and seconds >= self._every_seconds

    def saved(self, agent_steps: int) -> None:
        """Both intervals begin anew."""
        self._saved_at, self._saved_clock = agent_steps, self._clock_seconds()
