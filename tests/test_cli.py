"""The command line as a user meets it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scanline import cli

CATCH = "scanline/Catch-v0"
SHORT = ["--network", "mlp", "--num-workers", "0", "--torch-threads", "1", "--no-tensorboard"]


def run(*words: str) -> int:
    return cli.main(list(words))


def test_train_evaluate_and_play_one_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    words = ["train", "a2c", CATCH, "--agent-steps", "800", "--log_every_agent_steps", "400"]
    assert run(*words, *SHORT, "--out", str(out)) == 0
    assert "This run uses it" in capsys.readouterr().out
    record = json.loads((out / "settings.json").read_text())["settings"]
    assert record["recipe"]["protocol"] == "as-is"
    assert record["recipe"]["agent_steps"] == 800
    assert record["protocol"]["name"] == "as-is"
    assert (out / "progress.csv").read_text().count("\n") == 3
    assert run("evaluate", str(out), "--episodes", "3") == 0
    assert "3 games" in capsys.readouterr().out
    assert run("play", str(out), "--most-agent-steps", "10") == 0
    assert list(out.glob("*.gif"))
    assert run(*words, *SHORT, "--out", str(out)) == 2
    assert "--resume" in capsys.readouterr().err
    assert run(*words, *SHORT, "--out", str(out), "--if-exists", "number") == 0
    assert (tmp_path / "run-2" / "settings.json").exists()


def test_a_reached_score_is_confirmed_filmed_and_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    limits = ["--target-score", "-100", "--evaluation-games", "2", "--film"]
    assert run("train", "paac", CATCH, *limits, *SHORT, "--out", str(tmp_path / "run")) == 0
    words = capsys.readouterr().out
    assert "Playing 2 whole games" in words and "Confirmed by evaluation: 2 games" in words
    assert "Filming a game" in words
    for kind in ("*.mp4", "*.gif", "report.html"):
        assert list((tmp_path / "run").glob(kind))


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["train", "pac", "pong"], "did you mean 'paac'"),
        (["train", "paac", "pongg"], "did you mean pong"),
        (["train", "paac", "pong", "--engine", "nativ"], "did you mean 'native'"),
        (["train", "paac"], "needs a recipe and a game"),
        (["train", "./nothing.py", "pong"], "no file"),
        (["trian"], "no command"),
        (["list", "stars"], "list needs one of"),
        (["bench", "nothing"], "bench needs one of"),
        (["evaluate", "/nowhere"], "no run"),
        (["train", "a2c", CATCH, "--num-envs", "0"], "at least 1"),
        (["train", "paac", "pong", "--engine", "gymnasium", "--protocol", "paac"], "as-is"),
    ],
)
def test_a_mistake_is_answered_with_one_sentence(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*words) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("what", ["recipes", "games", "protocols", "engines", "networks"])
def test_lists_have_a_line_for_each(what: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("list", what) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) >= 3


def test_help_names_every_setting_with_its_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        run("train", "paac", "pong", "--help")
    assert ended.value.code == 0
    text = " ".join(capsys.readouterr().out.split())
    for words in ("--learning-rate", "--num-envs", "--seed", "--save-every-minutes", "--out"):
        assert words in text
    assert "Factor per agent step on the future" in text


def test_no_words_give_the_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert run() == 0
    assert "scanline train RECIPE GAME" in capsys.readouterr().out
