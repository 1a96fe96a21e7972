"""Why a run is not exact: collected from parts, states and conditions, each reason once."""

from __future__ import annotations

import torch

from scanline.runs.exactness import Exactness, reasons_in, sentence

CONDITIONS = {"span": 400, "versions": {"torch": "2.13", "engine": "native core 0123"}}


def test_a_run_without_reasons_is_exact() -> None:
    run = Exactness([], CONDITIONS)
    assert run.begin() == []
    saved = run.state()
    assert saved["exact"] is True and saved["inexact"] == []
    again = Exactness([], CONDITIONS)
    assert again.resumed(saved, 120) == []
    assert again.state() == saved


def test_reasons_are_new_once_and_go_with_the_checkpoint() -> None:
    run = Exactness(["no snapshots"], CONDITIONS)
    assert run.begin() == ["no snapshots"]
    assert run.add(["a worker died", "no snapshots", "a worker died"]) == ["a worker died"]
    saved = run.state()
    assert saved["exact"] is False
    later = Exactness(["no snapshots"], CONDITIONS)
    assert later.resumed(saved, 120) == ["no snapshots", "a worker died"]
    assert later.begin() == []


def test_conditions_that_changed_are_named() -> None:
    saved = Exactness([], CONDITIONS).state()
    now = {"span": 800, "versions": {"torch": "2.13", "engine": "native core 4567"}}
    found = Exactness([], now).resumed(saved, 1_200)
    assert found == [
        "resumed after 1,200 agent steps, span was 400 and is now 800",
        "resumed after 1,200 agent steps, "
        "versions.engine was 'native core 0123' and is now 'native core 4567'",
    ]
    assert len(Exactness([], now).resumed({}, 0)) == 3, "a checkpoint that says nothing"


def test_a_state_says_of_its_gaps_at_any_depth() -> None:
    state = {
        "sampler": {"learners": [{"inexact": "one"}, {"window": torch.zeros(2)}]},
        "store": {"rows": [1, 2], "inexact": "two"},
    }
    assert list(reasons_in(state)) == ["one", "two"]
    assert "bit for bit" in sentence(["one", "two"]) and "one; two" in sentence(["one", "two"])
