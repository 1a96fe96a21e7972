"""`scanline bench`: words of the command line become a bench's own record."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from scanline_lab.benchmarks import command, emulation, learners, training

ROW = {"recipe": "paac", "game": "pong", "engine": "native", "reset": "ale"}
ROW |= {"raw_fps": 2.0, "times_best_peer": None}


def given(monkeypatch: pytest.MonkeyPatch, module: Any, *words: str) -> Any:
    """The record that the command makes of these words."""
    benches: list[Any] = []

    def run(bench: Any) -> list[dict[str, Any]]:
        benches.append(bench)
        return [ROW]

    monkeypatch.setattr(module, "run", run)
    name = module.__name__.rpartition(".")[2]
    assert command.run([name, *words], "bench") == 0
    return benches[0]


def test_lists_are_parted_by_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("--games", "pong, boxing", "--num-envs", "1,16", "--engines=ale")
    bench = given(monkeypatch, emulation, *words)
    assert (bench.games, bench.num_envs) == (("pong", "boxing"), (1, 16))
    assert (bench.engines, bench.num_threads) == (("ale",), ())
    assert given(monkeypatch, learners, "--learners", "2,4").learners == (2, 4)


def test_what_is_not_given_is_the_recipe_s(monkeypatch: pytest.MonkeyPatch) -> None:
    assert given(monkeypatch, training) == training.TrainingBench()
    assert given(monkeypatch, training).changes == {}
    bench = given(monkeypatch, training, "--num-envs", "8", "--peers", "sb3")
    assert (bench.changes, bench.peers) == ({"num_envs": 8}, ("sb3",))


def test_rows_are_kept_where_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    paths = [tmp_path / "rows.json", tmp_path / "rows.svg"]
    given(monkeypatch, emulation, "--json", str(paths[0]), "--plot", str(paths[1]))
    assert json.loads(paths[0].read_text())["rows"] == [ROW]
    assert paths[1].stat().st_size > 0


def test_help_names_every_option_but_no_inner_setting(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in command.BENCHES:
        with pytest.raises(SystemExit):
            command.run([name, "--help"], "bench")
        shown = capsys.readouterr().out
        assert "--json" in shown and "--settings" not in shown


def test_a_word_that_is_no_number_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.run(["emulation", "--num-envs", "many"], "bench")
    assert "num-envs" in capsys.readouterr().err
