"""Fast DQN's experiments: figures by definition, and every variant really trains."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scanline_lab.experiments import Cell, fast_dqn, fast_dqn_timeline, figures
from scanline_lab.experiments.trace import TracedSpan, overlap_seconds, since

numbers = st.lists(st.integers(0, 6).map(float), min_size=3, max_size=12)


@given(numbers, st.randoms(use_true_random=False))
def test_rank_correlation_is_that_of_the_definition(first: list[float], random: Any) -> None:
    second = random.sample(first, len(first))
    if len(set(first)) < 2:
        assert np.isnan(figures.rank_correlation(first, second))
        return

    def slow_rank(values: list[float], at: float) -> float:
        below = sum(v < at for v in values)
        equal = sum(v == at for v in values)
        return below + (equal + 1) / 2

    slow = np.corrcoef(
        [slow_rank(first, v) for v in first], [slow_rank(second, v) for v in second]
    )[0, 1]
    assert figures.rank_correlation(first, second) == pytest.approx(slow, abs=1e-12)


def test_calibration_finds_the_item_that_gives_the_target() -> None:
    found = fast_dqn.calibrate(lambda seconds: 3.0 + 1e6 * seconds, target_hours=25.08)
    assert found["seconds_per_item"] == pytest.approx(22.08e-6)
    with pytest.raises(ValueError, match=r"without any device a run takes 40\.0 h"):
        fast_dqn.calibrate(lambda seconds: 40.0 + 1e6 * seconds, target_hours=25.08)


def kept(hours: dict[str, float]) -> dict[str, Any]:
    """Results as if these hours had been measured."""
    row = {"updates": 5, "agent_steps": 20}
    return {
        "calibration": {"seconds_per_item": 1e-5, "seconds_per_call": 2.5e-4},
        **{f"{v}.1": {"hours": h, **row} for v, h in hours.items()},
        **{f"simulated.{v}.1": {"hours": h, **row} for v, h in hours.items()},
    }


PAPERS_OWN = {variant: hours for variant, (hours, _) in fast_dqn.PAPER_HOURS.items()}


def test_the_papers_own_table_correlates_with_itself_and_contradicts_its_text() -> None:
    results = kept(PAPERS_OWN)
    assert fast_dqn.correlation_with_paper(results) == pytest.approx(1.0)
    verdicts = [claim.find(results).holds for claim in fast_dqn._speed_claims(simulated=False)]
    assert verdicts == [True, False, False, True, True]


def test_tables_have_fourteen_rows_beside_the_papers_and_smoke_no_ratio() -> None:
    smoke = fast_dqn.speed_tables("smoke", kept(PAPERS_OWN))
    assert [len(table.rows) for table in smoke] == [14] * 4
    assert all("ratio" not in table.columns for table in smoke)
    assert all(len(line) <= 80 for table in smoke for line in table.text().splitlines()[:-3])
    assert "ratio" in fast_dqn.speed_tables("desk", kept(PAPERS_OWN))[0].columns
    assert smoke[1].rows[-1][1:] == pytest.approx([35.96, 35.96, 2.78, 2.78], abs=0.01)


TINY = {"block": 80, "rollout": 5, "start": 80, "replay": 400, "repeats": 1, "blocks": 1}


@pytest.mark.parametrize("variant", ["standard-2", "both-2"])
def test_a_variant_really_trains_with_and_without_a_device(variant: str) -> None:
    recipe = fast_dqn.settings_of(variant, TINY)
    cell = Cell(name=f"{variant}.1", settings={"blocks": 1, "recipe": recipe})
    real = fast_dqn.measure_speed(cell, {})
    assert (real["agent_steps"], real["updates"]) == (80, 20)
    before = {"calibration": {"seconds_per_item": 1e-5}}
    simulated = fast_dqn.measure_speed(
        dataclasses.replace(cell, name=f"simulated.{cell.name}"), before
    )
    assert (simulated["agent_steps"], simulated["updates"]) == (80, 20)
    rounds = 80 if variant == "standard-2" else 40  # one inference per step, or per round
    assert simulated["device_calls"] == 2 * (rounds + 20)


def test_spans_are_cut_and_their_overlap_is_counted_once() -> None:
    spans = [TracedSpan("a", "x", 0.0, 2.0), TracedSpan("b", "x", 1.0, 3.0)]
    other = [TracedSpan("c", "y", 2.5, 5.0)]
    assert overlap_seconds(spans, spans) == 3.0
    assert overlap_seconds(spans, other) == 0.5
    assert since(1.5, spans) == [TracedSpan("a", "x", 1.5, 2.0), TracedSpan("b", "x", 1.5, 3.0)]


def test_the_timeline_sees_every_thread_and_the_overlap(tmp_path: Path) -> None:
    cells = {c.name: c for c in fast_dqn_timeline.cells("smoke")}
    names = ("standard-2", "simulated.both-2")
    results = {name: fast_dqn_timeline.measure(cells[name], {}) for name in names}
    threads = {name: {span[0] for span in r["spans"]} for name, r in results.items()}
    assert threads["standard-2"] == {"sampler-0", "sampler-1", "main"}
    assert threads["simulated.both-2"] == {"sampler-0", "trainer"}
    assert results["standard-2"]["overlap_seconds"] == 0.0
    assert results["simulated.both-2"]["overlap_seconds"] > 0.0
