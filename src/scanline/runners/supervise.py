"""The loop of a parent process: learner processes work, it listens.

Takes an entry function and the arguments of each process; gives their reports to the run.
Knows no algorithm, engine or network, and not what a report says.

No process waits for another one. The parent ends the run when one of them dies, raises or reports
nothing for too long; the others then end at their next turn.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import signal
import time
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from ..interfaces import Run
from ..processes import Entry, WorkerLost, WorkerPool, start_workers
from ..threads import Heartbeats, StuckError

_LISTEN_SECONDS = 0.2
_START_SECONDS = 300.0
_LAST_WORDS_SECONDS = 2.0


class SupervisedRun(Run, Protocol):
    """A run whose work is done by other processes."""

    def heard(self, reports: Iterable[tuple[int, Any]]) -> None:
        """Counts what processes report, each with its number."""


class Workers(Protocol):
    """Processes that report what they do."""

    def reports(self) -> list[tuple[int, Any]]:
        """What they have reported since the last call; waits a moment for the first."""


def loop(workers: Workers, run: SupervisedRun) -> None:
    while run.goes_on():
        run.heard(workers.reports())


class LearnerProcesses:
    """The parent's side: starts learners, listens, and ends them."""

    def __init__(
        self, num_learners: int, first_rank: int = 0, silent_seconds: float = 300.0
    ) -> None:
        self.num_learners, self._first_rank = num_learners, first_rank
        self._heartbeats = Heartbeats[int](silent_seconds)
        self._pool: WorkerPool | None = None

    def start(self, entry: Entry, args: Sequence[Sequence[Any]], fds: Sequence[int]) -> None:
        """Starts all learners and waits until each has built its parts and answered."""
        self._pool = start_workers(entry, args, fds=fds)
        for rank, worker in enumerate(self._pool.workers):
            worker.name = f"Learner {self._first_rank + rank}"
        waiting, deadline = set(range(self.num_learners)), time.monotonic() + _START_SECONDS
        while waiting:
            if time.monotonic() > deadline:
                raise StuckError(f"Learners {sorted(waiting)} did not start within 5 minutes.")
            waiting -= {rank for rank, _, _ in self._pool.answers(_LISTEN_SECONDS)}
        for worker in self._pool.workers:
            worker.order(0)
        self._heartbeats.beat(*range(self.num_learners))

    def reports(self) -> list[tuple[int, Any]]:
        """What learners have reported since the last call; waits a moment for the first."""
        assert self._pool is not None, "start it first"
        found = [(rank, report) for rank, _, report in self._pool.answers(_LISTEN_SECONDS)]
        self._heartbeats.beat(*(rank for rank, _ in found))
        self._refuse_silent(self._pool)
        return found

    def last_words(self) -> str:
        """What a lost learner left behind: a traceback, or how it ended; nothing if none is."""
        assert self._pool is not None, "start it first"
        try:
            self._pool.answers(_LAST_WORDS_SECONDS)
        except WorkerLost as error:
            return str(error)
        return ""

    def _refuse_silent(self, pool: WorkerPool) -> None:
        silent = self._heartbeats.silent(range(self.num_learners))
        if silent:
            for rank in silent:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pool.workers[rank].process.pid, signal.SIGUSR1)
            raise StuckError(
                f"No report from learners {silent} for {self._heartbeats.patience_seconds:g} "
                "seconds; their stacks are on the error stream."
            )

    def close(self) -> None:
        """Ends all learners, by force if they do not come to an end; may be called twice."""
        if self._pool is not None:
            self._pool.close()


def show_stack_when_asked() -> None:
    """In a learner: it writes its stack when the parent finds it silent, if it still can."""
    with contextlib.suppress(Exception):
        faulthandler.register(signal.SIGUSR1, all_threads=True)
