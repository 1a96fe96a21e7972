"""Learners with a central store: what their reports count, and when."""

from __future__ import annotations

from typing import Any

import torch

from scanline.records import EpisodeEnd, Slot, Spaces
from scanline.runs import reporting
from scanline.runs.reporting import Report, ReportingRun, SharedCounters

SPACES = Spaces(frame_shape=(2,), frame_dtype="float32", stack=1, num_actions=2)


class Script:
    """Parameters whose counters are set by hand."""

    waited_seconds = 0.25

    def __init__(self) -> None:
        self.store_updates = self.own_updates = 0


def slot(version: int) -> Slot:
    made = Slot.allocate(SPACES, 5, 3, {})
    made.version.fill_(version)
    return made


def reporting_run(
    monkeypatch: Any, rank: int = 1
) -> tuple[ReportingRun, list[Report], SharedCounters, Script]:
    monkeypatch.setattr(reporting, "_REPORT_SECONDS", 0.0)
    sent, counters, script = list[Report](), SharedCounters(3), Script()
    return ReportingRun(sent.append, counters, rank, script), sent, counters, script


def test_lag_is_what_others_did_between_acting_and_the_first_gradient(monkeypatch: Any) -> None:
    """Round-robin of three learners: two updates of others lie in between, always."""
    run, sent, _, script = reporting_run(monkeypatch)
    for turn in range(4):
        acted_with = 3 * turn  # what this learner saw after its last update
        run.collected(slot(acted_with))
        script.store_updates, script.own_updates = (
            acted_with + 3,
            turn + 1,
        )  # two others, then this one
        run.updated({"losses/x": 1.0}, {})
    run.report_if_due()
    assert sent[0].lags == {2: 4 * 15}


def test_own_epochs_over_one_rollout_are_no_lag(monkeypatch: Any) -> None:
    run, sent, _, script = reporting_run(monkeypatch)
    run.collected(slot(0))
    for number in range(4):
        script.store_updates = script.own_updates = number + 1
        run.updated({"losses/x": float(number), "charts/rate": float(number)}, {})
    run.report_if_due()
    report = sent[0]
    assert report.lags == {0: 15}
    assert (report.updates, report.agent_steps) == (4, 15)
    assert report.metrics == {"losses/x": 1.5, "charts/rate": 3.0}


def test_all_learners_steps_are_seen_when_a_rollout_ends_and_none_is_skipped(
    monkeypatch: Any,
) -> None:
    run, _, counters, _ = reporting_run(monkeypatch)
    seen = [run.progress.agent_steps]
    for others in (100, 0, 40):
        counters.agent_steps[0] += others
        assert run.progress.agent_steps == seen[-1]  # not before the rollout ends
        run.drain_episodes = lambda: [EpisodeEnd(0, 1.0, 5, 0)]
        run.collected(slot(0))
        seen.append(run.progress.agent_steps)
    assert seen == [0, 115, 130, 185]
    assert counters.agent_steps.tolist() == [140, 45, 0]
    assert run.goes_on()
    counters.stop()
    assert not run.goes_on()


def test_counters_are_shared_by_their_file() -> None:
    counters = SharedCounters(2)
    other = SharedCounters(2, counters.shared.fd)
    other.agent_steps[1] = 7
    assert counters.total_agent_steps == 7
    torch.testing.assert_close(torch.from_numpy(counters.agent_steps), torch.tensor([0, 7]))
