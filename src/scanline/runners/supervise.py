"""A fleet: learner processes that go their own way and meet only in a central store.

Takes an entry function and the arguments of each learner; gives a run that is told, report by
report, what they collected and learned. `Journal` is a learner's side of it.
Knows no algorithm, engine or network, and not what the store is.

Nobody waits for anybody: a learner counts its steps on a shared board, so that schedules see the
steps of all, and sends a report now and then. The parent only listens. It ends the run when one of
them dies, raises or says nothing for too long; the others then end at their next turn.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..interfaces import Metric
from ..processes import Entry, ParentLink, SharedArrays, WorkerPool, start_workers
from ..records import EpisodeEnd, Slot, State
from ..runs.clock import TimeSplit
from ..runs.game_numbers import GameNumbers
from ..runs.lags import Lags
from ..runs.leader import LeaderRun
from ..runs.progress import Progress, ProgressSettings
from ..threads import Heartbeats, StuckError

_LISTEN_SECONDS = 0.2
_REPORT_SECONDS = 0.1
_START_SECONDS = 300.0


class Board:
    """What all learners may read: the agent steps of each, whether to pause and whether to stop."""

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


@dataclass(frozen=True)
class StoreSide:
    """What a journal asks of a learner's parameters."""

    updates: Callable[[], int]
    """Updates of the store so far, all learners'."""
    own_updates: Callable[[], int]
    """Those that were this learner's."""
    waited_seconds: Callable[[], float]


class Journal:
    """Told by a learner's loop what it does; tells the parent, now and then."""

    def __init__(self, link: ParentLink, board: Board, rank: int, store: StoreSide) -> None:
        self._link, self._board, self._rank, self._store = link, board, rank, store
        self.time_split = TimeSplit()
        self.progress = Progress(ProgressSettings(), frame_skip=1, time_split=self.time_split)
        self.progress.agent_steps = board.total_agent_steps
        self._versions: Slot | None = None
        self._own_at_collect = 0
        self._sums: dict[str, tuple[float, int]] = {}
        self.drain_episodes: Callable[[], Sequence[EpisodeEnd]] = list
        """Games finished since the last call; set by the loop that has them."""
        self._begin()

    def _begin(self) -> None:
        self._report, self._lags, self._since = Report(), Lags(), time.monotonic()
        self._split, self._waited = self.time_split.seconds(), self._store.waited_seconds()
        self._sums = {}

    def goes_on(self) -> bool:
        """Tells what is due; whether the parent lets the learner go on."""
        self.progress.end_turn()
        self.tell()
        return not self._board.is_stopping

    def breaks_off(self) -> bool:
        """The same in the midst of a turn."""
        self.tell()
        return self._board.is_stopping

    def collected(self, slot: Slot) -> None:
        """Counts on the board; the global count is read here only, so that none is skipped."""
        self._report.agent_steps += slot.actions.numel()
        self._report.ends += self.drain_episodes()
        self._board.agent_steps[self._rank] += slot.actions.numel()
        self.progress.agent_steps = self._board.total_agent_steps
        self._versions, self._own_at_collect = slot, self._store.own_updates()

    def updated(self, metrics: Mapping[str, Metric], norms: Mapping[str, Metric]) -> None:
        self._report.updates += 1
        self._note_lag()
        self.log({**metrics, **norms})

    def log(self, metrics: Mapping[str, Metric]) -> None:
        for name, value in metrics.items():
            total, count = self._sums.get(name, (0.0, 0))
            if name.startswith("charts/"):
                total, count = 0.0, 0
            self._sums[name] = (total + float(value), count + 1)

    def _note_lag(self) -> None:
        """Updates of others between acting and the first gradient from it."""
        if self._versions is None:
            return
        own = self._store.own_updates() - self._own_at_collect
        newest, slot = self._store.updates() - own, self._versions
        self._lags.note(newest - slot.version, slot.actions.shape[1])
        self._versions = None

    def tell(self) -> None:
        """Sends a report if one is due."""
        now = time.monotonic()
        if now - self._since < _REPORT_SECONDS:
            return
        report, split = self._report, self.time_split.seconds()
        report.metrics = {name: total / count for name, (total, count) in self._sums.items()}
        report.lags = self._lags.counts
        report.split_seconds = {part: s - self._split[part] for part, s in split.items()}
        report.waited_seconds = self._store.waited_seconds() - self._waited
        report.seconds = now - self._since
        self._link.answer(0, report)
        self._begin()


def show_stack_when_asked() -> None:
    """A learner that the parent finds silent writes where it is, if it still can."""
    with contextlib.suppress(Exception):
        faulthandler.register(signal.SIGUSR1, all_threads=True)


class Fleet:
    """The parent's side: starts learners, listens, counts, and ends them."""

    def __init__(
        self,
        entry: Entry,
        args_of: Callable[[int, Fleet], Sequence[Any]],
        num_learners: int,
        *,
        num_envs: int,
        fds: Sequence[int] = (),
        silent_seconds: float = 300.0,
    ) -> None:
        """`args_of` a rank are a learner's arguments; it has `num_envs` environments."""
        self.num_learners, self.num_envs = num_learners, num_envs
        self.board = Board(num_learners)
        self.num_resumes = 0
        self.numbers = GameNumbers(num_learners * num_envs)
        self.lags = Lags()
        self._entry, self._args_of, self._fds = entry, args_of, tuple(fds)
        self._heartbeats = Heartbeats[int](silent_seconds)
        self._pool: WorkerPool | None = None

    def start(self) -> None:
        """Starts all learners and waits until each has built its parts."""
        fds = (*self._fds, self.board.shared.fd)
        args = [tuple(self._args_of(rank, self)) for rank in range(self.num_learners)]
        self._pool = start_workers(self._entry, args, fds=fds)
        for rank, worker in enumerate(self._pool.workers):
            worker.name = f"Learner {rank}"
        waiting, deadline = set(range(self.num_learners)), time.monotonic() + _START_SECONDS
        while waiting:
            if time.monotonic() > deadline:
                raise StuckError(f"Learners {sorted(waiting)} did not start within 5 minutes.")
            waiting -= {rank for rank, _, _ in self._pool.answers(_LISTEN_SECONDS)}
        for worker in self._pool.workers:
            worker.order(0)
        self._heartbeats.beat(*range(self.num_learners))

    def turn(self, session: LeaderRun) -> None:
        """Listens once; notes what learners tell, and who is silent."""
        assert self._pool is not None, "start it first"
        for rank, _, report in self._pool.answers(_LISTEN_SECONDS):
            self._heartbeats.beat(rank)
            self._note(session, rank, report)
        self._refuse_silent()

    def _note(self, session: LeaderRun, rank: int, report: Report) -> None:
        first = rank * self.num_envs
        ends = self.numbers.give(e._replace(env=e.env + first) for e in report.ends)
        self.lags.add(report.lags)
        metrics = {**report.metrics, **Lags(report.lags).metrics()}
        session.report(report.agent_steps, report.updates, metrics, ends)
        waited = report.waited_seconds / max(report.seconds, 1e-9)
        session.log_rates({"perf/lock_wait_share": waited})
        session.time_split.share(report.split_seconds)

    def _refuse_silent(self) -> None:
        silent = self._heartbeats.silent(range(self.num_learners))
        if silent and self._pool is not None:
            for rank in silent:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self._pool.workers[rank].process.pid, signal.SIGUSR1)
            raise StuckError(
                f"No report from learners {silent} for {self._heartbeats.patience_seconds:g} "
                "seconds; their stacks are on the error stream."
            )

    def close(self) -> None:
        """Ends all learners, by force if they do not come to an end; may be called twice."""
        self.board.stop()
        if self._pool is not None:
            self._pool.close()
        self.board.shared.close_fd()

    def state(self) -> State:
        return {
            "agent_steps": self.board.agent_steps.copy(),
            "num_resumes": self.num_resumes,
            "numbers": self.numbers.state(),
        }

    def load(self, state: State) -> None:
        """Counts go on; the games in play will never end, and new ones begin in their place."""
        total = int(sum(state["agent_steps"]))
        self.board.agent_steps[:] = total // self.num_learners
        self.board.agent_steps[0] += total % self.num_learners
        self.num_resumes = state["num_resumes"] + 1
        self.numbers.load(state["numbers"])
