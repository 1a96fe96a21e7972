"""A stretch of a real run, timed: what forecasts, benchmarks and experiments measure.

Takes a plan, of one learner or several, and how long to warm up and to measure; gives steps,
updates, seconds and where the time went, as the leading learner counts them, and, where asked for,
the rate that the same run reaches while its environments stand still.
Knows the order of a run's life; the loop and the parts are others'.

It is a run like any other, logging included, in a folder that is thrown away, without a checkpoint
at its end: writing a replay of gigabytes is no part of a rate.

The limit is that run itself, in the same processes and threads, with the same weights, batches and
pictures: all of its work but that of the environments. So the run cannot be faster, but for the
machine's own noise. The two therefore take turns, and the limit is the best of its stretches, where
the run has the mean of all of its own.
"""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from . import networks, settings
from .runs.clock import EVALUATION, TimeSplit
from .runs.leader import LeaderRun
from .training import Attachments, Plan, PreparedRun, learners, open_run, prepared
from .training.attachments import Pause
from .training.train import follow

_QUIET = {"live": False, "save_at_end": False, "save_every_minutes": 0, "save_every_agent_steps": 0}


@dataclass(frozen=True, kw_only=True)
class Stretch:
    """A stretch that lasts until it has so many agent steps, updates and seconds."""

    agent_steps: int = 0
    seconds: float = 0.0
    updates: int = 0


@dataclass(frozen=True, kw_only=True)
class Limit:
    """How the rate without environments is measured."""

    turn: Stretch
    """The run has such a stretch, then the limit, and so on until the run is measured."""
    settle: Stretch = field(default_factory=Stretch)
    """Before each of them, not counted: what is left of the one before."""


@dataclass(frozen=True, kw_only=True)
class Timing:
    """What happened in the measured stretch."""

    agent_steps: int
    updates: int
    seconds: float
    split_seconds: Mapping[str, float]
    """Seconds per part of the run: environment, acting, learning, other."""
    frame_skip: int
    score: float | None
    """Mean of the last 100 games; None before the first has finished."""
    losses: Mapping[str, float]
    """Metrics of the last log row."""
    note: Mapping[str, Any] = field(default_factory=dict)
    """What the parts tell besides; histograms count the measured stretch only."""
    limit_agent_steps_per_second: float | None = None
    """Rate while environments stood still, of the best such stretch; None where there was none."""

    @property
    def agent_steps_per_second(self) -> float:
        return self.agent_steps / self.seconds

    @property
    def updates_per_second(self) -> float:
        return self.updates / self.seconds

    @property
    def raw_frames_per_second(self) -> float:
        return self.frame_skip * self.agent_steps_per_second


def timed(
    plan: Plan,
    *,
    warm_up: Stretch,
    measured: Stretch,
    attachments: Attachments | None = None,
    time_split: TimeSplit | None = None,
    limit: Limit | None = None,
) -> Timing:
    """Runs a plan for a while and counts; with a limit about twice as long."""
    attached, time_split = attachments or Attachments(), time_split or TimeSplit()
    if limit is not None:
        _refuse_followers(learners.placed(plan))
        attached = replace(attached, pause=attached.pause or Pause())
    with _begun(plan, attached, time_split) as (parts, run):
        _go_on(parts, run, warm_up)
        if limit is None or attached.pause is None:
            return _timed(parts, run, measured)
        return _with_limit(parts, run, measured, limit, attached.pause)


def middle_timed(plan: Plan, *, warm_up: Stretch, measured: Stretch, repeats: int) -> Timing:
    """Of several stretches of one run the one whose rate is in the middle: others use the machine
    too, for a while."""
    with _begun(plan, Attachments(), TimeSplit()) as (parts, run):
        _go_on(parts, run, warm_up)
        found = [_timed(parts, run, measured) for _ in range(repeats)]
    return sorted(found, key=lambda timing: timing.agent_steps_per_second)[repeats // 2]


@contextmanager
def _begun(
    plan: Plan, attached: Attachments, time_split: TimeSplit
) -> Iterator[tuple[PreparedRun, LeaderRun]]:
    """A run that has begun, in a folder that is thrown away."""
    plan = learners.placed(settings.override(plan, _QUIET))
    with (
        networks.threads_restored(),
        learners.joined(plan, follow) as group,
        tempfile.TemporaryDirectory() as folder,
    ):
        parts = prepared(plan, time_split.mark, lambda sentence: None, group, attached)
        try:
            run = open_run(parts, Path(folder) / "run", time_split=time_split)
            with run.running(parts.saved(run), resume=False, begin=parts.runtime.begin):
                yield parts, run
                run.leave()
        finally:
            parts.runtime.close()


def _refuse_followers(plan: Plan) -> None:
    if plan.learners > 1 and not plan.recipe.exchange.is_central:
        raise ValueError(
            f"learners={plan.learners}: the environments of other learners cannot be paused; "
            "measure a limit with learners=1, or with a recipe that has a central store."
        )


def _with_limit(
    parts: PreparedRun, run: LeaderRun, measured: Stretch, limit: Limit, pause: Pause
) -> Timing:
    """The run and the run without environments take turns."""
    runs, limits = list[Timing](), list[Timing]()
    while not runs or (_is_short(_joined(runs), measured) and run.stop is None):
        for is_on, timings in ((False, runs), (True, limits)):
            pause.is_on = is_on
            _go_on(parts, run, limit.settle)
            timings.append(_timed(parts, run, limit.turn))
    pause.is_on = False
    best = max(timing.agent_steps_per_second for timing in limits)
    return replace(_joined(runs), limit_agent_steps_per_second=best)


def _is_short(timing: Timing, stretch: Stretch) -> bool:
    return timing.agent_steps < stretch.agent_steps or timing.seconds < stretch.seconds


def _timed(parts: PreparedRun, run: LeaderRun, stretch: Stretch) -> Timing:
    before, noted = _Count.of(run), parts.runtime.note()
    _go_on(parts, run, stretch)
    timing = _timing(parts, run, before)
    return replace(timing, note=since(noted, parts.runtime.note()))


def _go_on(parts: PreparedRun, run: LeaderRun, stretch: Stretch) -> None:
    """Whole turns, until the stretch is over."""
    parts.runtime.run(cast(LeaderRun, StretchRun(run, stretch)))


class StretchRun:
    """A run that goes on until a stretch is over, and can go on with the next one."""

    def __init__(self, run: LeaderRun, stretch: Stretch) -> None:
        self._run, self._stretch = run, stretch
        self._begun, self._first = time.perf_counter(), run.progress.agent_steps
        self._first_update = run.progress.updates

    def __getattr__(self, name: str) -> Any:
        return getattr(self._run, name)

    def goes_on(self) -> bool:
        done = self._run.progress.agent_steps - self._first
        seconds = time.perf_counter() - self._begun
        updates = self._run.progress.updates - self._first_update
        is_over = done >= self._stretch.agent_steps and seconds >= self._stretch.seconds
        return not (is_over and updates >= self._stretch.updates) and self._run.goes_on()


def since(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """A later note in which histograms count only what has come since an earlier one."""
    return {
        name: _counted_since(before[name], value) if isinstance(value, Mapping) else value
        for name, value in after.items()
    }


def _counted_since(before: Mapping[Any, int], after: Mapping[Any, int]) -> dict[Any, int]:
    new = {value: count - before.get(value, 0) for value, count in after.items()}
    return {value: count for value, count in new.items() if count}


def _joined(runs: Sequence[Timing]) -> Timing:
    """Several stretches of one run as one."""
    return replace(
        runs[-1],
        agent_steps=sum(run.agent_steps for run in runs),
        updates=sum(run.updates for run in runs),
        seconds=sum(run.seconds for run in runs),
        split_seconds=_summed([run.split_seconds for run in runs]),
        note={
            name: _summed([run.note[name] for run in runs]) if isinstance(last, Mapping) else last
            for name, last in runs[-1].note.items()
        },
    )


def _summed(counts: Sequence[Mapping[Any, Any]]) -> dict[Any, Any]:
    total: Counter[Any] = Counter()
    for each in counts:
        total.update(each)
    return dict(total)


@dataclass(frozen=True)
class _Count:
    """Where a run is, and when."""

    seconds: float
    agent_steps: int
    updates: int
    split_seconds: Mapping[str, float]

    @classmethod
    def of(cls, run: LeaderRun) -> _Count:
        progress = run.progress
        split = {p: s for p, s in run.time_split.seconds().items() if p != EVALUATION}
        return cls(time.perf_counter(), progress.agent_steps, progress.updates, split)


def _timing(parts: PreparedRun, run: LeaderRun, before: _Count) -> Timing:
    after = _Count.of(run)
    split = {p: after.split_seconds[p] - s for p, s in before.split_seconds.items()}
    row = run.progress.last_row
    return Timing(
        agent_steps=after.agent_steps - before.agent_steps,
        updates=after.updates - before.updates,
        seconds=after.seconds - before.seconds,
        split_seconds=split,
        frame_skip=parts.protocol.frame_skip,
        score=run.progress.scores.mean,
        losses={k: float(v) for k, v in row.items() if "/" in k and v is not None},
    )
