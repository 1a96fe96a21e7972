"""A trace: what every thread of a run does, from when to when.

Takes marks ("from now on: acting") from any thread; gives spans by the name of the thread.
Knows nothing of what the parts do.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import NamedTuple

from scanline.runs.clock import TimeSplit


class TracedSpan(NamedTuple):
    """One thread did one thing."""

    thread: str
    part: str
    begin_seconds: float
    end_seconds: float

    @property
    def seconds(self) -> float:
        return self.end_seconds - self.begin_seconds


class Trace:
    """Collects marks; appending to a list needs no lock between threads."""

    def __init__(self) -> None:
        self._marks: list[tuple[str, str, float]] = []
        self._begun = time.perf_counter()

    def mark(self, part: str) -> None:
        now = time.perf_counter() - self._begun
        self._marks.append((threading.current_thread().name, part, now))

    def spans(self) -> list[TracedSpan]:
        """Every mark lasts until the next one of its thread; the last one of each is left out."""
        found, open_marks = [], dict[str, tuple[str, float]]()
        for thread, part, at in self._marks:
            if thread in open_marks:
                before, since = open_marks[thread]
                found.append(TracedSpan(thread, before, since, at))
            open_marks[thread] = (part, at)
        return found


class TracedClock(TimeSplit):
    """The clock of a run that also tells a trace."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        super().__init__()

    def mark(self, part: str) -> str:
        self._trace.mark(part)
        return super().mark(part)


def since(begin_seconds: float, spans: Sequence[TracedSpan]) -> list[TracedSpan]:
    """What lies after a moment; a span across it is cut."""
    return [
        span._replace(begin_seconds=max(span.begin_seconds, begin_seconds))
        for span in spans
        if span.end_seconds > begin_seconds
    ]


def overlap_seconds(first: Sequence[TracedSpan], second: Sequence[TracedSpan]) -> float:
    """Time in which a span of the first list and one of the second run at once."""
    mine, other = _union(first), _union(second)
    return sum(
        max(0.0, min(end, other_end) - max(begin, other_begin))
        for begin, end in mine
        for other_begin, other_end in other
    )


def _union(spans: Sequence[TracedSpan]) -> list[tuple[float, float]]:
    """Disjoint intervals that cover the same time."""
    merged: list[tuple[float, float]] = []
    for span in sorted(spans, key=lambda span: span.begin_seconds):
        if merged and span.begin_seconds <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], span.end_seconds))
        else:
            merged.append((span.begin_seconds, span.end_seconds))
    return merged
