"""Cells: equal ones have one id, and a file that no sweep wrote is one sentence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scanline.queue.cells import Cell, CellError, read_cell

CELL = Cell(recipe="a2c", game="pong", seed=3, settings={"learning_rate": 1e-3, "num_threads": 1})


def written(folder: Path, text: str) -> Path:
    path = folder / f"{CELL.id}.json"
    path.write_text(text)
    return path


def test_an_id_is_readable_and_depends_on_everything_but_the_version() -> None:
    assert CELL.id.startswith("a2c-pong-s3-learning_rate=0.001-")
    others = [
        Cell(recipe="ppo", game="pong", seed=3, settings=CELL.settings),
        Cell(recipe="a2c", game="pong", seed=4, settings=CELL.settings),
        Cell(recipe="a2c", game="pong", seed=3, settings={"learning_rate": 1e-3}),
    ]
    assert len({cell.id for cell in (CELL, *others)}) == 4
    same = Cell(recipe="a2c", game="pong", seed=3, settings=CELL.settings, scanline="9")
    assert same.id == CELL.id


def test_runs_that_differ_in_game_and_seed_have_the_same_settings() -> None:
    other = Cell(recipe="a2c", game="qbert", seed=0, settings=CELL.settings)
    assert other.settings_sha256 == CELL.settings_sha256
    assert Cell(recipe="a2c", game="pong", seed=3).settings_sha256 != CELL.settings_sha256


def test_a_cell_comes_back_from_its_file_and_makes_a_plan(tmp_path: Path) -> None:
    assert read_cell(written(tmp_path, CELL.text())) == CELL
    plan = CELL.plan(live=False)
    assert (plan.run.seed, plan.recipe.optimiser.learning_rate) == (3, 1e-3)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("{", "is damaged: it is no JSON"),
        ("[]", "is damaged: it is no object"),
        (CELL.text().replace('"seed": 3', '"seed": "3"'), "is damaged: seed is '3'"),
        (CELL.text().replace('"seed": 3', '"seed": 4'), "not that of its name"),
        (CELL.text().replace('"seed"', '"sed"'), "is damaged: seed is None"),
        (json.dumps({**json.loads(CELL.text()), "more": 1}), "it has more"),
        (CELL.text().replace('"format_version": 1', '"format_version": 2'), "newer scanline"),
    ],
)
def test_a_damaged_file_is_one_sentence(tmp_path: Path, text: str, fault: str) -> None:
    with pytest.raises(CellError, match=fault) as caught:
        read_cell(written(tmp_path, text))
    assert str(caught.value).count("\n") == 0
