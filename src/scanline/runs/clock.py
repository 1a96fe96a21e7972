"""Where the time goes: a split into environment, acting, learning and other.

Takes marks ("from now on: acting"); gives nanoseconds per part.
Knows nothing of what the parts do.

One mark ends a part and begins the next, so every nanosecond belongs to exactly one part, nothing
has to be closed, and a hot loop pays one clock reading. Evaluation is a part of its own, because a
run is judged by its training time. For one thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from ..records import State

ENVIRONMENT, ACTING, LEARNING, OTHER = "environment", "acting", "learning", "other"
EVALUATION = "evaluation"
TRAINING_PARTS = (ENVIRONMENT, ACTING, LEARNING, OTHER)


class TimeSplit:
    """Time per part; `other` runs from the beginning."""

    def __init__(self, clock_ns: Callable[[], int] = time.perf_counter_ns) -> None:
        self._clock_ns = clock_ns
        self._totals_ns = dict.fromkeys((*TRAINING_PARTS, EVALUATION), 0)
        self._part, self._since_ns = OTHER, clock_ns()
        self._kept_ns = 0  # of `other`, shared out as far as it goes

    def restart(self) -> None:
        """Forgets what passed so far, e.g. while the parts of a run were built."""
        self._totals_ns = dict.fromkeys(self._totals_ns, 0)
        self._part, self._since_ns, self._kept_ns = OTHER, self._clock_ns(), 0

    def mark(self, part: str) -> str:
        """From now on `part` runs; gives the part that ran until now."""
        now_ns = self._clock_ns()
        before = self._part
        self._totals_ns[before] += now_ns - self._since_ns
        self._part, self._since_ns = part, now_ns
        return before

    @contextmanager
    def during(self, part: str) -> Iterator[None]:
        """`part` runs inside, and afterwards what ran before; for places that are not hot."""
        before = self.mark(part)
        try:
            yield
        finally:
            self.mark(before)

    @contextmanager
    def untimed(self) -> Iterator[None]:
        """What passes inside belongs to no part."""
        self.mark(self._part)
        yield
        self._since_ns = self._clock_ns()

    def share(self, split_seconds: Mapping[str, float]) -> None:
        """Gives the time of `other` since the last call to the parts in which others spent theirs.

        For a run whose work is done elsewhere, while this thread only listens.
        """
        self.mark(self._part)
        total = sum(split_seconds.get(part, 0.0) for part in TRAINING_PARTS)
        passed_ns = self._totals_ns[OTHER] - self._kept_ns
        for part in TRAINING_PARTS if total > 0.0 else ():
            moved_ns = int(passed_ns * split_seconds.get(part, 0.0) / total)
            self._totals_ns[part] += moved_ns
            self._totals_ns[OTHER] -= moved_ns
        self._kept_ns = self._totals_ns[OTHER]

    @property
    def part(self) -> str:
        """What runs now."""
        return self._part

    def seconds(self) -> dict[str, float]:
        """Seconds per part until now."""
        self.mark(self._part)
        return {part: total / 1e9 for part, total in self._totals_ns.items()}

    def training_seconds(self) -> float:
        """Everything but evaluation, over all resumes of the run."""
        seconds = self.seconds()
        return sum(seconds[part] for part in TRAINING_PARTS)

    def state(self) -> State:
        self.mark(self._part)
        return {"totals_ns": dict(self._totals_ns)}

    def load(self, state: State) -> None:
        """Adds the time of an earlier part of the run to what passed since this one began."""
        for part, total_ns in state["totals_ns"].items():
            self._totals_ns[part] += total_ns
        self._kept_ns = self._totals_ns[OTHER]
