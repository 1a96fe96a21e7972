"""The controller: finds how many agents, predictors and trainers suit a machine, while it runs.

Takes a rate to raise, measured as a count of updates, and a function that sets the numbers; changes
one of them by one now and then and keeps what was better. Knows no thread and no queue.

Babaeizadeh 2017, section 4.3. A change is compared with the numbers before it over windows of equal
length, each after a time to settle, and undone at once if it was not better; then the old numbers
are measured anew, because games and machine change. The released code moves all three at once, and
compares windows of unequal length; `moves="all"` has the first of these, not the second.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple, dataclass
from typing import Literal, NamedTuple

from .. import random
from ..records import State
from ..settings import at_least


@dataclass(frozen=True, kw_only=True)
class ControllerSettings:
    """How the numbers of agents, predictors and trainers are adjusted."""

    adjust: bool = False
    """Whether they are adjusted at all."""
    moves: Literal["one", "all"] = "one"
    """'one': one number changes by one, as in the paper; 'all': each by -1, 0 or 1."""
    adjust_seconds: float = 60.0
    """Seconds between two changes."""
    settle_seconds: float = 10.0
    """Seconds of these before the rate is measured."""
    most_predictors: int = 16
    """Most predictor threads."""
    most_trainers: int = 16
    """Most trainer threads."""

    def __post_init__(self) -> None:
        if not 0 <= self.settle_seconds < self.adjust_seconds:
            raise ValueError(
                f"settle_seconds={self.settle_seconds:g} must be at least 0 and below "
                f"adjust_seconds={self.adjust_seconds:g}, so that time to measure remains."
            )
        at_least(1, self, "most_predictors", "most_trainers")


class Counts(NamedTuple):
    """How many of each."""

    agents: int
    predictors: int
    trainers: int


@dataclass(frozen=True)
class Step:
    """One finished measurement, for the log and for plots."""

    seconds: float
    counts: Counts
    rate: float
    """Updates per second."""
    kept: bool


class Controller:
    """Call `tick` often, from one thread; time is what the clock says."""

    def __init__(
        self,
        settings: ControllerSettings,
        start: Counts,
        most_agents: int,
        apply: Callable[[Counts], None],
        seed: int = 0,
    ) -> None:
        self._settings, self._apply, self._seed = settings, apply, seed
        self._most = Counts(most_agents, settings.most_predictors, settings.most_trainers)
        self.counts = start
        """The numbers that are in force now."""
        self.steps: list[Step] = []
        self._best, self._best_rate = start, -1.0
        self._moves = 0
        self._changed_at = -1.0
        self._measured_from: tuple[float, int] | None = None

    def tick(self, now_seconds: float, updates: int) -> None:
        """Measures, compares and changes, when it is time to."""
        if not self._settings.adjust:
            return
        if self._changed_at < 0:
            self._changed_at = now_seconds
        passed = now_seconds - self._changed_at
        if self._measured_from is None and passed >= self._settings.settle_seconds:
            self._measured_from = now_seconds, updates
        if self._measured_from is not None and passed >= self._settings.adjust_seconds:
            since, before = self._measured_from
            self._judge(now_seconds, (updates - before) / max(now_seconds - since, 1e-9))

    def _judge(self, now_seconds: float, rate: float) -> None:
        """Keeps the numbers if they are the old ones, or better; else the old ones come back."""
        kept = self.counts == self._best or rate > self._best_rate
        self.steps.append(Step(now_seconds, self.counts, rate, kept))
        if kept:
            self._best, self._best_rate = self.counts, rate
            self._set(self._proposal(), now_seconds)
        else:
            self._set(self._best, now_seconds)  # and is measured anew before the next change

    def _set(self, counts: Counts, now_seconds: float) -> None:
        self.counts = counts
        self._changed_at, self._measured_from = now_seconds, None
        self._apply(counts)

    def _proposal(self) -> Counts:
        """Other numbers within the limits, drawn by the number of the move."""
        while True:
            chance = random.uniforms(self._seed, "controller", 0, self._moves)
            self._moves += 1
            if self._settings.moves == "all":
                change = [int(3 * c) - 1 for c in chance[:3]]
            else:
                change = [0, 0, 0]
                change[int(3 * chance[0])] = 1 if chance[1] < 0.5 else -1
            found = Counts(*(n + c for n, c in zip(self._best, change, strict=True)))
            inside = all(1 <= n <= most for n, most in zip(found, self._most, strict=True))
            if inside and found != self._best:
                return found

    def state(self) -> State:
        return {"counts": list(self._best), "moves": self._moves}

    def load(self, state: State) -> None:
        """Goes on from the best numbers; they are measured anew."""
        self._moves = state["moves"]
        if self._settings.adjust:
            self._best, self._best_rate = Counts(*state["counts"]), -1.0
            self.counts = self._best

    def rows(self) -> list[tuple[float, int, int, int, float, bool]]:
        """Every measurement as plain numbers: seconds, agents, predictors, trainers, rate, kept."""
        return [(s.seconds, *astuple(s)[1], s.rate, s.kept) for s in self.steps]
