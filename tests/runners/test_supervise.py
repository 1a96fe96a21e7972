"""The parent gives every report to the run, and names a learner that died or is silent."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

import pytest
from supervised import dying, reporting, silent

from scanline.processes import WorkerLost
from scanline.runners.supervise import LearnerProcesses, loop
from scanline.threads import StuckError

DEADLINE_SECONDS = 60.0


class CountingRun:
    """Goes on until so many reports were heard."""

    def __init__(self, wanted: int) -> None:
        self._wanted, self.reports = wanted, list[tuple[int, Any]]()
        self._deadline = time.monotonic() + DEADLINE_SECONDS

    def goes_on(self) -> bool:
        assert time.monotonic() < self._deadline
        return len(self.reports) < self._wanted

    def heard(self, reports: Iterable[tuple[int, Any]]) -> None:
        self.reports.extend(reports)


def test_every_report_reaches_the_run_with_its_learner() -> None:
    learners, run = LearnerProcesses(2), CountingRun(6)
    try:
        learners.start(reporting, [(3,), (3,)], fds=())
        loop(learners, run)  # type: ignore[arg-type]
    finally:
        learners.close()
    assert sorted(run.reports) == [(rank, step) for rank in (0, 1) for step in range(3)]


def test_a_learner_that_dies_is_named_by_its_rank() -> None:
    learners = LearnerProcesses(1, first_rank=4)
    try:
        learners.start(dying, [()], fds=())
        with pytest.raises(WorkerLost, match=r"Learner 4 .*code 7"):
            loop(learners, CountingRun(1))  # type: ignore[arg-type]
    finally:
        learners.close()


def test_a_silent_learner_ends_the_run_with_its_number() -> None:
    learners = LearnerProcesses(1, silent_seconds=0.5)
    try:
        learners.start(silent, [()], fds=())
        with pytest.raises(StuckError, match=r"No report from learners \[0\] for 0.5 seconds"):
            loop(learners, CountingRun(1))  # type: ignore[arg-type]
    finally:
        learners.close()
