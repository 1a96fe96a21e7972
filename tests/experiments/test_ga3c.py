"""GA3C's experiments: tables and claims from made-up results, and a real search in small."""

from __future__ import annotations

from pathlib import Path

import pytest

from scanline.experiments import EXPERIMENTS, ga3c
from scanline.experiments.claims import judge
from scanline.experiments.experiment import Cell

SPEED, ADJUSTMENT = EXPERIMENTS["ga3c-vs-a3c"], EXPERIMENTS["ga3c-adjustment"]


def speeds(small: float, large: float) -> dict[str, dict[str, float]]:
    """A3C predicts 100 a second, GA3C so many times as much."""
    found = {}
    for network in ga3c.NETWORKS:
        factor = small if network == "ga3c" else large
        found[f"a3c-agents_{network}"] = {"pps": 100.0, "tps": 20.0, "cpu_percent": 99.0}
        found[f"ga3c_{network}"] = {"pps": 100.0 * factor, "tps": 20.0, "cpu_percent": 90.0}
    return found


@pytest.mark.parametrize(
    ("small", "large", "verdicts"),
    [
        (2.0, 3.0, ["confirmed", "confirmed"]),
        (0.9, 3.0, ["contradicted", "confirmed"]),
        (3.0, 2.0, ["confirmed", "contradicted"]),
    ],
)
def test_the_claims_of_table_2_follow_the_factors(
    small: float, large: float, verdicts: list[str]
) -> None:
    assert [j.verdict for j in judge(SPEED.claims, "desk", speeds(small, large))] == verdicts


def test_table_2_stands_beside_the_paper_s_and_says_that_no_gpu_was_run(tmp_path: Path) -> None:
    results = speeds(2.0, 3.0)
    (table,) = SPEED.tables("smoke", results)
    assert len(table.rows) == 5
    assert table.rows[0][:6] == ["ga3c", 100.0, 200.0, 2.0, 90.0, "not run"]
    assert table.rows[0][6:8] == [352, 1_361]
    (partly,) = SPEED.tables("smoke", {"ga3c_ga3c": results["ga3c_ga3c"]})
    assert partly.rows[0][1:4] == [None, 200.0, None]
    SPEED.plot("smoke", results, tmp_path / "speed.png")
    assert (tmp_path / "speed.png").stat().st_size > 0


def test_a_search_is_told_window_by_window(tmp_path: Path) -> None:
    rows = [(3.0, 1, 1, 1, 10.0, True), (6.0, 2, 1, 1, 15.0, True), (9.0, 2, 2, 1, 12.0, False)]
    one = {"rows": rows, "first_tps": 10.0, "best_tps": 15.0, "best": (2, 1, 1)}
    results = {"boxing": one, "pong": {**one, "best": (3, 1, 1)}}
    (table,) = ADJUSTMENT.tables("smoke", results)
    assert table.rows[0] == ["boxing", 3, 1, 10.0, 15.0, "2/1/1"]
    assert [j.verdict for j in judge(ADJUSTMENT.claims, "desk", results)] == ["confirmed"] * 2
    ADJUSTMENT.plot("smoke", results, tmp_path / "search.png")
    assert (tmp_path / "search.png").stat().st_size > 0


def test_a_real_search_begins_with_one_of_each_and_changes_one_by_one() -> None:
    settings = {
        "game": "scanline/Catch-v0",
        "seconds": 4.0,
        "adjust_seconds": 0.6,
        "settle_seconds": 0.2,
        "num_envs": 4,
        "network": "mlp",
        "num_workers": 0,
    }
    found = ADJUSTMENT.measure(Cell(name="catch", settings=settings), {})
    assert found["rows"][0][1:4] == (1, 1, 1)
    assert len(found["rows"]) >= 3
    assert found["best_tps"] >= found["first_tps"] > 0
