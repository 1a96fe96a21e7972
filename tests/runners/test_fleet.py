"""A fleet's journal and board: what is counted, by whom, and when."""

from __future__ import annotations

from typing import Any

import torch

from scanline.records import EpisodeEnd, Slot, Spaces
from scanline.runners import supervise as fleet
from scanline.runners.supervise import Board, Journal, Report, StoreSide

SPACES = Spaces(frame_shape=(2,), frame_dtype="float32", stack=1, num_actions=2)


class FakeLink:
    """Keeps what would go through the pipe."""

    def __init__(self) -> None:
        self.sent: list[Report] = []

    def answer(self, code: int, item: Any) -> None:
        self.sent.append(item)


class Script:
    """A store whose counters are set by hand."""

    def __init__(self) -> None:
        self.updates = self.own = 0

    def side(self) -> StoreSide:
        return StoreSide(lambda: self.updates, lambda: self.own, lambda: 0.25)


def slot(version: int) -> Slot:
    made = Slot.allocate(SPACES, 5, 3, {})
    made.version.fill_(version)
    return made


def journal(monkeypatch: Any, rank: int = 1) -> tuple[Journal, FakeLink, Board, Script]:
    monkeypatch.setattr(fleet, "_REPORT_SECONDS", 0.0)
    link, board, script = FakeLink(), Board(3), Script()
    return Journal(link, board, rank, script.side()), link, board, script  # type: ignore[arg-type]


def test_lag_is_what_others_did_between_acting_and_the_first_gradient(monkeypatch: Any) -> None:
    """Round-robin of three learners: two updates of others lie in between, always."""
    told, link, _, script = journal(monkeypatch)
    for turn in range(4):
        acted_with = 3 * turn  # what this learner saw after its last update
        told.collected(slot(acted_with))
        script.updates, script.own = acted_with + 3, turn + 1  # two others, then this one
        told.updated({"losses/x": 1.0}, {})
    told.tell()
    assert link.sent[0].lags == {2: 4 * 15}


def test_own_epochs_over_one_rollout_are_no_lag(monkeypatch: Any) -> None:
    told, link, _, script = journal(monkeypatch)
    told.collected(slot(0))
    for number in range(4):
        script.updates = script.own = number + 1
        told.updated({"losses/x": float(number), "charts/rate": float(number)}, {})
    told.tell()
    report = link.sent[0]
    assert report.lags == {0: 15}
    assert (report.updates, report.agent_steps) == (4, 15)
    assert report.metrics == {"losses/x": 1.5, "charts/rate": 3.0}


def test_everybody_s_steps_are_seen_when_a_rollout_ends_and_none_is_skipped(
    monkeypatch: Any,
) -> None:
    told, _, board, _ = journal(monkeypatch)
    seen = [told.progress.agent_steps]
    for others in (100, 0, 40):
        board.agent_steps[0] += others
        assert told.progress.agent_steps == seen[-1]  # not before the rollout ends
        told.drain_episodes = lambda: [EpisodeEnd(0, 1.0, 5, 0)]
        told.collected(slot(0))
        seen.append(told.progress.agent_steps)
    assert seen == [0, 115, 130, 185]
    assert board.agent_steps.tolist() == [140, 45, 0]
    assert told.goes_on()
    board.stop()
    assert not told.goes_on()


def test_a_board_is_shared_by_its_file() -> None:
    board = Board(2)
    other = Board(2, board.shared.fd)
    other.agent_steps[1] = 7
    assert board.total_agent_steps == 7
    torch.testing.assert_close(torch.from_numpy(board.agent_steps), torch.tensor([0, 7]))
