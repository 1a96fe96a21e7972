"""`reproduce learning`: runs of a queue become rows with verdicts; every recipe has one."""

from __future__ import annotations

from pathlib import Path

import pytest

from scanline import recipes
from scanline_lab.experiments import EXPERIMENTS, evidence, reproduce
from scanline_lab.experiments.evidence import Row, verdict
from scanline_lab.experiments.over_queue import run_of


def test_every_recipe_but_the_papers_many_variants_has_a_row() -> None:
    asked = {row.recipe for row in evidence.desk()}
    variants = {name for name in recipes.RECIPES if name.startswith("cule-vtrace-")}
    assert set(recipes.RECIPES) - asked == variants


def test_rows_change_limits_only_and_are_cells_of_a_queue() -> None:
    for cell in evidence.cells("desk"):
        run = run_of(cell.settings)
        changed = run.settings.keys() - {"num_threads", "torch_threads"}
        assert changed <= {"agent_steps", "seconds", "target_score"}
        assert run.plan().recipe.name == cell.settings["recipe"]


@pytest.mark.parametrize(
    ("scores", "at_least", "words"),
    [
        ((-20.0, 18.2), 18.0, "learned"),
        ((-20.0, -12.0), 18.0, "rises, not there"),
        ((-20.0, -19.5), 18.0, "has not learned"),
        ((-20.0, -12.0), None, "rises"),
        ((), 18.0, "no game finished"),
    ],
)
def test_verdicts(scores: tuple[float, ...], at_least: float | None, words: str) -> None:
    curve = [[number, float(number), score] for number, score in enumerate(scores)]
    result = {"curve": curve, "score": scores[-1] if scores else None}
    assert verdict(Row(recipe="a2c", at_least=at_least), result) == words


def test_a_smoke_run_goes_through_a_queue_and_is_reported(tmp_path: Path) -> None:
    outcome = reproduce(EXPERIMENTS["learning"], "smoke", tmp_path, say=lambda sentence: None)
    assert set(outcome.results) == {"a2c-scanline.Catch-v0.0", "paac-scanline.Catch-v0.0"}
    [table] = outcome.tables
    assert [line[0] for line in table.rows] == ["a2c", "paac"]
    assert all(result["agent_steps"] >= 3_000 for result in outcome.results.values())
    assert "verdict" in outcome.report and (tmp_path / "plot.png").exists()
