"""`reproduce learning`: runs of a queue become rows with verdicts; every recipe has one."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from scanline import recipes
from scanline_lab.experiments import EXPERIMENTS, evidence, reproduce
from scanline_lab.experiments.evidence import Row, verdict
from scanline_lab.experiments.over_queue import run_of

ROOT = Path(__file__).parents[3]


def test_every_recipe_has_a_row() -> None:
    assert {row.recipe for row in evidence.desk()} == set(recipes.RECIPES)
    assert {row.recipe for row in evidence.rows("paper")} == set(recipes.RECIPES)


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
    rows_are_kept(tmp_path, tmp_path / "learning", tmp_path / "README.md")


def rows_are_kept(reproduced: Path, out: Path, readme: Path) -> None:
    """From the queue of a reproduction, twice: rows of other runs stay, equal ones are replaced."""
    rows = learning_rows()
    out.mkdir()
    older = {"recipe": "paac", "game": "qbert", "seed": 3, "settings_sha256": "0"}
    (out / "paac.jsonl").write_text(json.dumps(older) + "\n")
    for _ in range(2):
        rows.keep(reproduced / "queue", out)
    catch, qbert = rows.read(out / "paac.jsonl")[::-1]
    assert qbert == older and (catch["game"], catch["verdict"]) == ("scanline/Catch-v0", "told")
    assert 3_000 <= catch["agent_steps"] == catch["curve"][-1][0]
    (out / "paac.jsonl").unlink()
    text = rows.written(f"before\n{rows.BEGIN}stale\n{rows.END}after\n", rows.read_all(out))
    assert text == rows.written(text, rows.read_all(out))
    assert text.startswith("before\n") and text.endswith("after\n") and "stale" not in text
    assert "| `a2c` | scanline/Catch-v0 | 1 |" in text and "`paac`" not in text
    rows.draw(rows.read_all(out), out / "curves.png")
    assert (out / "curves.png").stat().st_size > 1_000


def learning_rows() -> Any:
    """The script as a module."""
    path = ROOT / "benchmarks" / "learning_rows.py"
    spec = importlib.util.spec_from_file_location("learning_rows", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_row_stands_beside_the_published_score() -> None:
    row = {"recipe": "paac", "game": "qbert", "seed": 0, "settings_sha256": "", "verdict": "rises"}
    figures = dict.fromkeys(learning_rows().FIGURES, 1.5) | {"agent_steps": 10_000_000}
    text = learning_rows().table([{**row, **figures, "published": 16561.7}])
    assert (
        "| `paac` | qbert | 1 | 10,000,000 | 1.50 | 1.50 | 1.50 | 1.50 | 16,561.70 | rises |"
        in text
    )


def test_a_row_with_other_settings_does_not_stand_among_those_with_their_own() -> None:
    row = {"recipe": "impala", "game": "pong", "seed": 0, "settings_sha256": "", "verdict": "rises"}
    row |= dict.fromkeys((*learning_rows().FIGURES, "agent_steps"), 1.5)
    row |= {"settings": {"agent_steps": 9}}
    changed = row | {"settings_sha256": "1", "settings": {"seconds": 9, "learning_rate": 0.001}}
    own, other = learning_rows().table([row, changed]).split("Runs with other settings")
    assert own.count("| `impala` |") == other.count("| `impala` |") == 1
    assert "| rises | learning_rate 0.001 |" in other


def test_readme_s_table_is_that_of_the_kept_rows() -> None:
    rows, text = learning_rows(), (ROOT / "README.md").read_text()
    kept = rows.read_all(ROOT / "benchmarks" / "results" / "learning")
    command = "python benchmarks/learning_rows.py --out benchmarks/results/learning"
    assert rows.written(text, kept) == text, f"README's table is another: {command}"
