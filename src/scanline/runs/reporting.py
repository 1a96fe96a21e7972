"""Learners with a central store as one run: counters that they share, and reports to the parent.

`ReportingRun` is the run of a learner's loop: it counts in shared memory, so that schedules see the
steps of all learners, and sends a `Report` now and then. `SupervisorRun` is the parent's run with
what their reports say. Knows no algorithm, engine or network, and not what the store is.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from ..interfaces import Metric
from ..processes import SharedArrays
from ..records import EpisodeEnd, Slot, State
from ..samplers import GameNumbers
from .clock import TimeSplit
from .lags import Lags
from .leader import LeaderRun
from .progress import Progress, ProgressSettings
from .wrappers import Wrapper

_REPORT_SECONDS = 0.1


class SharedCounters:
    """Shared memory of all learners: agent steps of each, whether to pause, whether to stop."""

    def __init__(self, num_learners: int, fd: int | None = None) -> None:
        fields = {
            "agent_steps": ((num_learners,), "int64"),
            "pause": ((1,), "int64"),
            "stop": ((1,), "int64"),
        }
        self.shared = SharedArrays(fields, fd)
        self.agent_steps = self.shared.arrays["agent_steps"]
        self._pause, self._stop = self.shared.arrays["pause"], self.shared.arrays["stop"]

    @property
    def total_agent_steps(self) -> int:
        return int(self.agent_steps.sum())

    @property
    def is_stopping(self) -> bool:
        return bool(self._stop[0])

    def stop(self) -> None:
        self._stop[0] = 1

    @property
    def is_paused(self) -> bool:
        """Whether environments stand still, where learners were started so that they can."""
        return bool(self._pause[0])

    def pause(self, is_on: bool) -> None:
        self._pause[0] = is_on


@dataclass
class Report:
    """What a learner did since its last report."""

    agent_steps: int = 0
    updates: int = 0
    metrics: dict[str, float] = field(default_factory=dict)
    ends: list[EpisodeEnd] = field(default_factory=list)
    lags: dict[int, int] = field(default_factory=dict)
    split_seconds: dict[str, float] = field(default_factory=dict)
    waited_seconds: float = 0.0
    """For locks of the store."""
    seconds: float = 0.0


class CentralCounters(Protocol):
    """What a learner's parameters count."""

    @property
    def store_updates(self) -> int:
        """Updates of the store so far, all learners'."""

    @property
    def own_updates(self) -> int:
        """Those that were this learner's."""

    @property
    def waited_seconds(self) -> float:
        """Time spent waiting for locks so far."""


class ReportingRun:
    """The run of a learner's loop in a process of its own."""

    def __init__(
        self,
        send: Callable[[Report], object],
        counters: SharedCounters,
        rank: int,
        parameters: CentralCounters,
        time_split: TimeSplit | None = None,
    ) -> None:
        self._send, self._counters, self._rank = send, counters, rank
        self._parameters = parameters
        self.time_split = time_split or TimeSplit()
        self.progress = Progress(ProgressSettings(), frame_skip=1, time_split=self.time_split)
        self.progress.agent_steps = counters.total_agent_steps
        self._not_learned: Slot | None = None
        self._own_at_collect = 0
        self.drain_episodes: Callable[[], Sequence[EpisodeEnd]] = list
        """Games finished since the last call; set by the loop that has them."""
        self._begin_report()

    def _begin_report(self) -> None:
        self._report, self._lags, self._since = Report(), Lags(), time.monotonic()
        self._split, self._waited = self.time_split.seconds(), self._parameters.waited_seconds
        self._sums: dict[str, tuple[float, int]] = {}

    def goes_on(self) -> bool:
        """Reports if it is time; whether the parent lets the learner go on."""
        self.progress.end_turn()
        return not self.breaks_off()

    def breaks_off(self) -> bool:
        """The same in the midst of a turn; whether the parent stops the learner."""
        self.report_if_due()
        return self._counters.is_stopping

    def collected(self, slot: Slot) -> None:
        """The global count is read here only, so that no step of a schedule is skipped."""
        self._report.agent_steps += slot.actions.numel()
        self._report.ends += self.drain_episodes()
        self._counters.agent_steps[self._rank] += slot.actions.numel()
        self.progress.agent_steps = self._counters.total_agent_steps
        self._not_learned, self._own_at_collect = slot, self._parameters.own_updates

    def updated(self, metrics: Mapping[str, Metric], norms: Mapping[str, Metric]) -> None:
        self._report.updates += 1
        self._count_lag()
        self.log({**metrics, **norms})

    def log(self, metrics: Mapping[str, Metric]) -> None:
        for name, value in metrics.items():
            total, count = self._sums.get(name, (0.0, 0))
            if name.startswith("charts/"):
                total, count = 0.0, 0
            self._sums[name] = (total + float(value), count + 1)

    def _count_lag(self) -> None:
        """Updates of others between acting and the first gradient from it."""
        if self._not_learned is None:
            return
        own = self._parameters.own_updates - self._own_at_collect
        newest, slot = self._parameters.store_updates - own, self._not_learned
        self._lags.note(newest - slot.version, slot.actions.shape[1])
        self._not_learned = None

    def report_if_due(self) -> None:
        now = time.monotonic()
        if now - self._since < _REPORT_SECONDS:
            return
        report, split = self._report, self.time_split.seconds()
        report.metrics = {name: total / count for name, (total, count) in self._sums.items()}
        report.lags = self._lags.counts
        report.split_seconds = {part: s - self._split[part] for part, s in split.items()}
        report.waited_seconds = self._parameters.waited_seconds - self._waited
        report.seconds = now - self._since
        self._send(report)
        self._begin_report()


class LearnerStatistics:
    """What the reports of all learners add up to, besides the log."""

    def __init__(self, num_learners: int, num_envs: int) -> None:
        """`num_envs`: environments of one learner."""
        self._num_envs = num_envs
        self._numbers = GameNumbers(num_learners * num_envs)
        self.lags = Lags()
        """Policy lag of the whole run."""

    def numbered(self, rank: int, ends: Iterable[EpisodeEnd]) -> list[EpisodeEnd]:
        """A learner's ended games with numbers and environments counted over all learners."""
        first = rank * self._num_envs
        return self._numbers.give(end._replace(env=end.env + first) for end in ends)

    def state(self) -> State:
        return self._numbers.state()

    def load(self, state: State) -> None:
        self._numbers.load(state)


class SupervisorRun(Wrapper):
    """The parent's run: it goes on like any other, and is fed by reports."""

    def __init__(self, run: LeaderRun, statistics: LearnerStatistics) -> None:
        super().__init__(run)
        self._run, self._statistics = run, statistics

    def heard(self, reports: Iterable[tuple[int, Any]]) -> None:
        """Counts and logs the reports, each with the rank of its learner."""
        for rank, report in reports:
            ends = self._statistics.numbered(rank, report.ends)
            self._statistics.lags.add(report.lags)
            metrics = {**report.metrics, **Lags(report.lags).metrics()}
            self._run.report(report.agent_steps, report.updates, metrics, ends)
            waited = report.waited_seconds / max(report.seconds, 1e-9)
            self._run.log_rates({"perf/lock_wait_share": waited})
            self._run.time_split.share(report.split_seconds)
