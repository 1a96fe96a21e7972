"""Axes to cells; every mistake is one sentence before anything is written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scanline import cli
from scanline.queue.folder import Queue
from scanline.queue.sweep import made_of

CATCH = "scanline/Catch-v0"


def sweep(path: Path, *words: str) -> int:
    return cli.main(["sweep", str(path / "q"), "--no-predict", *words])


def test_every_combination_is_a_cell_and_a_second_sweep_adds_to_the_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--recipes", "ppo,a2c", "--games", f"pong,{CATCH}", "--seeds", "2"]
    assert sweep(tmp_path, *words, "--learning-rate", "1e-4,3e-4", "--agent_steps=1_000") == 0
    queue = Queue.open(tmp_path / "q")
    cells = [queue.cell(name) for name in queue.cell_ids()]
    assert len(cells) == len(queue.tickets("pending")) == 16
    assert {cell.settings["learning_rate"] for cell in cells} == {1e-4, 3e-4}
    assert {cell.settings["agent_steps"] for cell in cells} == {1000}
    assert all(cell.settings["torch_threads"] == 1 for cell in cells)
    assert sweep(tmp_path, *words, "--learning-rate", "3e-4,1e-3", "--agent-steps", "1000") == 0
    assert len(queue.cell_ids()) == 24
    assert "8 cells were added" in capsys.readouterr().out


def test_values_are_read_as_their_setting_wants_them(tmp_path: Path) -> None:
    keys = {"recipes": "a2c", "games": "pong", "first_seed": 7}
    given = {"learning_rate": ["1", "1.0"], "tensorboard": ["false"], "seconds": ["none", "60"]}
    cells = list(made_of({**keys, **given}).cells())
    assert [cell.settings["learning_rate"] for cell in cells] == [1.0, 1.0]
    assert [cell.settings["seconds"] for cell in cells] == [None, 60.0]
    assert cells[0].settings["tensorboard"] is False and cells[0].seed == 7


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--recipes", "pppo", "--games", "pong"], "There is no recipe 'pppo'"),
        (["--recipes", "ppo", "--games", "pongg"], "There is no game 'pongg'"),
        (["--recipes", "ppo", "--games", "pong", "--learn-rate", "1"], "no setting 'learn_rate'"),
        (["--recipes", "ppo", "--games", "pong", "--learning-rate", "x"], "learning_rate='x' must"),
        (["--recipes", "ppo", "--games", "pong", "--num-envs", "8,0"], "num_envs"),
        (["--recipes", "ppo", "--games", "pong", "--seed", "1"], "seed cannot be an axis"),
        (["--recipes", "ppo", "--games", "pong", "--out", "x"], "out cannot be an axis"),
        (["--recipes", "ppo", "--games", "pong", "--seeds", "0"], "number of seeds"),
        (["--recipes", "ppo", "--games", "pong", "--anneal"], "--anneal needs a value"),
        (["--recipes", "ppo"], "A sweep needs --games"),
        (["--games", "pong"], "A sweep needs --recipes"),
        (["--recipes", "ppo", "--games", "pong", "--file", "none.toml"], "no file none.toml"),
    ],
)
def test_a_mistake_is_one_sentence_and_nothing_is_written(
    tmp_path: Path, words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sweep(tmp_path, *words) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert sentence in line
    assert not (tmp_path / "q").exists()


def test_a_file_has_the_same_names_and_options_go_first(tmp_path: Path) -> None:
    file = tmp_path / "sweep.toml"
    file.write_text(
        'recipes = ["a2c"]\ngames = ["pong"]\nseeds = 3\nlearning-rate = [1e-4, 1]\n'
        "betas = [[0.9, 0.99]]\nanneal = 'none'\n"
    )
    assert sweep(tmp_path, "--file", str(file), "--seeds", "1") == 0
    queue = Queue.open(tmp_path / "q")
    cells = [queue.cell(name) for name in queue.cell_ids()]
    assert sorted(cell.settings["learning_rate"] for cell in cells) == [1e-4, 1.0]
    assert cells[0].plan().recipe.optimiser.betas == (0.9, 0.99)
    file.write_text("[axes]\nx = 1\n")
    assert sweep(tmp_path, "--file", str(file)) == 2


def test_a_dry_run_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert sweep(tmp_path, "--recipes", "a2c", "--games", "pong", "--dry-run") == 0
    assert "1 cells" in capsys.readouterr().out and not (tmp_path / "q").exists()


def test_a_recipe_file_is_recorded_by_path_and_hash(tmp_path: Path) -> None:
    own = Path(__file__).parents[2] / "examples" / "own_recipe.py"
    assert sweep(tmp_path, "--recipes", str(own), "--games", "pong") == 0
    (path,) = (tmp_path / "q" / "cells").iterdir()
    record = json.loads(path.read_text())
    assert record["recipe"] == str(own.resolve()) and len(record["recipe_sha256"]) == 64


def test_a_short_run_predicts_hours_and_disk(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scanline.queue.predict.SECONDS", 0.2)
    words = ["--recipes=a2c", f"--games={CATCH}", "--network=mlp", "--num-workers=0"]
    command = ["sweep", str(tmp_path / "q"), *words, "--dry-run", "--agent-steps"]
    assert cli.main([*command, "1000"]) == 0
    said = capsys.readouterr().out
    assert "Timing a2c" in said and "hours on this machine" in said and "kB of disk" in said
    assert cli.main([*command, "2000"]) == 0
    assert "Timing" not in capsys.readouterr().out  # the rate was kept
