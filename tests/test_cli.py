"""The command line as a user meets it."""

from __future__ import annotations

import itertools
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import scanline
from scanline import cli
from scanline.algorithms import ActorCritic
from scanline.errors import UserError
from scanline.records import Spaces
from scanline.runs.checkpoint import load_latest
from scanline.runs.clock import TimeSplit
from scanline.runs.signals import Interrupted
from scanline.training.models import build_network
from scanline.training.plan import make_plan

CATCH = "scanline/Catch-v0"
SHORT = ["--network", "mlp", "--num-workers", "0", "--torch-threads", "1", "--no-tensorboard"]


def run(*words: str) -> int:
    return cli.main(list(words))


def test_train_evaluate_and_play_one_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
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
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    capsys.readouterr()
    assert run("play", str(out), "--live", "--most-agent-steps", "3") == 0
    assert "after 3 agent steps" in capsys.readouterr().out
    assert run("play", str(out), "--live", "--out", str(tmp_path)) == 2
    assert "leave out --out" in capsys.readouterr().err
    assert run(*words, *SHORT, "--out", str(out)) == 2
    assert "--resume" in capsys.readouterr().err
    assert run(*words, *SHORT, "--out", str(out), "--if-exists", "number") == 0
    assert (tmp_path / "run-2" / "settings.json").exists()


def go_on_line(words: str) -> list[str]:
    (line,) = [line for line in words.splitlines() if line.startswith("  go on")]
    return line.split()[3:]


def steps_of(run: Path) -> int:
    return load_latest(run / "checkpoints").agent_steps


@pytest.mark.parametrize(
    "limit",
    [
        ["--agent-steps", "800"],
        ["--seconds", "1"],
        ["--target-score", "-100", "--evaluation-games", "1"],
    ],
)
def test_the_line_after_a_limit_goes_on(
    limit: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out, ticks = tmp_path / "run", itertools.count(step=1_000_000)
    monkeypatch.setattr(TimeSplit.__init__, "__defaults__", (ticks.__next__,))  # 1 ms a reading
    most = [] if "--agent-steps" in limit else ["--agent-steps", "60_000"]
    assert run("train", "a2c", CATCH, *limit, *most, *SHORT, "--out", str(out)) == 0
    words, before = go_on_line(capsys.readouterr().out), steps_of(out)
    assert words[:3] == ["train", "--resume", str(out)] and words[3] == limit[0]
    assert run(*words) == 0
    assert steps_of(out) > before
    record = json.loads((out / "settings.json").read_text())
    assert len(record["resumed"]) == 1 and record["settings"]["recipe"]["network"] == "mlp"


def test_a_run_is_resumed_by_its_folder_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "run")
    assert run("train", "a2c", CATCH, "--agent-steps", "400", *SHORT, "--out", out) == 0
    assert run("train", "--resume", out) == 0  # nothing is left to do, which is said
    assert "All 400 agent steps are done" in capsys.readouterr().out
    for words, steps in (
        (["--resume", out, "--agent-steps", "800"], 800),
        ([f"--resume={out}", "--agent-steps=1200"], 1_200),
        (["a2c", CATCH, "--agent-steps", "1600", "--out", out, "--resume"], 1_600),
        (["a2c", CATCH, "--resume", "--out", out, "--agent-steps", "2000"], 2_000),
    ):
        assert run("train", *words) == 0
        assert steps_of(Path(out)) == steps
    capsys.readouterr()
    for words, sentence in (
        (["--resume"], "--resume needs the folder of a run"),
        (["--resume", out, "--out", "other"], "leave out --out other"),
        (["--resume", str(tmp_path)], "no run in"),
        (["--resume", out, "--num-envs", "8"], "cannot be resumed with other settings"),
        (["a2c", "CartPole-v1", "--resume", out], "plays scanline/Catch-v0, not CartPole-v1"),
    ):
        assert run("train", *words) == 2
        error = capsys.readouterr().err
        assert sentence in error and error.count("\n") == 1


def test_a_resumed_run_runs_no_file_that_was_not_trained_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SCANLINE_STATE", str(tmp_path / "state"))
    file, out = tmp_path / "mine.py", str(tmp_path / "run")
    file.write_text(
        "import dataclasses\nfrom scanline.recipes import find\n"
        "recipe = dataclasses.replace(find('a2c'), name='mine', network='mlp')\n"
    )
    assert run("train", str(file), CATCH, "--agent-steps", "400", *SHORT[2:], "--out", out) == 0
    assert run("train", "--resume", out, "--agent-steps", "480") == 0
    monkeypatch.setenv("SCANLINE_STATE", str(tmp_path / "another"))
    capsys.readouterr()
    assert run("train", "--resume", out, "--agent-steps", "560") == 2
    assert f"name it: --recipe {file}" in capsys.readouterr().err
    assert run("train", "--resume", out, "--agent-steps", "560", "--recipe", str(file)) == 0
    assert run("train", str(file), "--resume", out, "--agent-steps", "640") == 0
    assert steps_of(Path(out)) == 640


@pytest.mark.usefixtures("pages")
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
        (["train", "zzz", "pong"], "There is no recipe 'zzz'; one of paac,"),
        (["train", "paac", "pong", "--engine", "zzz"], "There is no engine 'zzz'; one of native"),
        (["train", "paac", "pong", "--protocol", "zzz"], "no protocol 'zzz'; one of baselines"),
        (["train", "paac", "pong", "--network", "zzz"], "'zzz' is unknown; choose one of "),
        (["reproduce", "zzz"], "There is no experiment 'zzz'; one of "),
        (["train", "paac", "pong", "--device", "cuda:99"], "device='cuda:99' is not there"),
        (
            ["train", "paac", "pong", "--device", "tpu"],
            "device='tpu' is unknown; use auto, cpu, cuda",
        ),
        (["train", "paac", "pong", "--learning-rate", "1e400"], "learning_rate=inf overflows"),
        (["train", "ppo", "pong", "--learning-rate", "1e39"], "learning_rate=1e+39 overflows"),
        (["train", "a2c", "Blackjack-v1"], "give 'ALE/Blackjack-v5' for Atari's, or the engine"),
        (["train", "a2c", "pong", "--num-envs", "99999999"], "use a smaller num_envs"),
        (
            ["train", "a2c", CATCH, "--network", "mlp", "--num-envs", "99999999"],
            "use a smaller num_envs",
        ),
    ],
)
def test_a_mistake_is_answered_with_one_sentence(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*words) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("folder", ["nowhere", "empty", ""])
def test_a_wrong_folder_of_roms_is_answered_with_one_sentence(
    folder: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("SCANLINE_ROMS", folder and str(tmp_path / folder))
    assert run("train", "paac", "pong", "--out", str(tmp_path / "run")) == 2
    error = capsys.readouterr().err
    assert "SCANLINE_ROMS" in error and error.count("\n") == 1
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("rate", ["1e30", "1e10"])
def test_weights_that_overflow_end_the_run_with_one_sentence(
    rate: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("ale_py", reason="ale-py brings the ROMs")
    words = ["--learning-rate", rate, "--agent-steps", "2000", "--log-every-agent-steps", "500"]
    out = str(tmp_path / "run")
    assert run("train", "paac", "pong", *words, "--num-envs", "4", "--no-live", "--out", out) == 2
    error = capsys.readouterr().err
    assert "is no finite number after" in error and error.count("\n") == 1


OWN_NETWORK = """
import dataclasses
import torch
from scanline import recipes
from scanline.records import PolicyValue

class Small(torch.nn.Module):
    def __init__(self, spaces):
        super().__init__()
        self.body = torch.nn.{layer}
        self.policy = torch.nn.Linear({units}, spaces.num_actions)
        self.value = torch.nn.Linear({units}, 1)
    def forward(self, observations):
        features = self.body(observations.flatten(1).float()).relu()
        return PolicyValue(self.policy(features), self.value(features).squeeze(-1))

recipe = dataclasses.replace(recipes.find('a2c'), network=Small, protocol='as-is')
"""


def test_a_changed_network_and_a_lazy_one_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, out = tmp_path / "own.py", str(tmp_path / "run")
    short = ["--num-workers", "0", "--no-live", "--no-tensorboard", "--out"]
    words = ["train", str(file), CATCH, "--agent-steps", "160", *short, out]
    file.write_text(OWN_NETWORK.format(layer="Linear(25, 8)", units=8))
    assert run(*words) == 0
    file.write_text(OWN_NETWORK.format(layer="Linear(25, 9)", units=9))
    capsys.readouterr()
    assert run(*words[:4], "320", *words[5:], "--resume") == 2
    error = capsys.readouterr().err
    assert "body.weight of shape (8, 25), but this one (9, 25)" in error
    assert error.count("\n") == 1
    file.write_text(OWN_NETWORK.format(layer="LazyLinear(8)", units=8))
    assert run(*words[:-1], str(tmp_path / "lazy")) == 2
    error = capsys.readouterr().err
    assert "no shape yet in body.weight, body.bias" in error and error.count("\n") == 1


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


def test_help_has_the_usual_options_first_and_then_groups(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        run("train", "accelerated-rainbow", "pong", "--help")
    text = capsys.readouterr().out
    usual, rules = text.index("--help"), text.index("rules options")
    assert rules < text.index("algorithm options")
    for word in ("--agent-steps", "--seed", "--num-envs", "--learning-rate", "--device", "--out"):
        assert usual < text.index(word) < rules
    for word in ("--sticky", "--frame-skip", "--episodic-life", "--noop-max", "--num-atoms"):
        assert text.index(word) > rules
    for word in ("--reset-cache-states", "--wait-seconds", "--frameskip"):
        assert word in text


def test_rules_of_the_protocol_are_options_and_are_recorded(tmp_path: Path) -> None:
    pytest.importorskip("ale_py", reason="ale-py brings the ROMs")
    out = tmp_path / "run"
    rules = ["--sticky", "0.25", "--frameskip", "3", "--episodic-life", "--noop-max", "7"]
    short = ["--agent-steps", "80", "--num-envs", "2", "--reset-cache-states", "5", "--no-live"]
    assert run("train", "paac", "pong", *rules, *short, "--out", str(out)) == 0
    record = json.loads((out / "settings.json").read_text())["settings"]
    wanted = {"sticky": 0.25, "frame_skip": 3, "noop_max": 7}
    assert wanted.items() <= record["protocol"].items()
    assert record["protocol"]["life_loss"] == "end-return"
    assert wanted.items() <= record["run"]["rules"].items()
    assert record["run"]["reset_cache_states"] == 5
    assert record["recipe"]["protocol"] == "paac"
    assert run("evaluate", str(out), "--episodes", "1") == 0


def test_the_number_of_atoms_is_a_setting() -> None:
    plan = make_plan("accelerated-categorical-dqn", "pong", num_atoms=21, network="nature")
    spaces = Spaces(frame_shape=(84, 84), frame_dtype="uint8", stack=4, num_actions=6)
    outputs = build_network(plan, spaces, 0)(torch.zeros(1, 4, 84, 84, dtype=torch.uint8))
    assert outputs.logits.shape == (1, 6, 21)


def test_no_words_give_the_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert run() == 0
    assert "scanline train RECIPE GAME" in capsys.readouterr().out


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--version") == 0
    assert capsys.readouterr().out == f"scanline {scanline.__version__}\n"


@pytest.mark.parametrize("command", ["list", "bench"])
def test_help_of_a_command_with_names_is_no_mistake(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(command, "--help") == 0
    assert f"usage: scanline {command}" in capsys.readouterr().out


def test_a_reader_that_leaves_is_met_with_silence() -> None:
    words = [sys.executable, "-m", "scanline", "list", "games"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    said = process.stderr.read()
    assert (process.wait(60), said) == (128 + signal.SIGPIPE, b"")
    process.stderr.close()


def test_a_run_that_fails_inside_is_a_traceback_and_exit_code_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also if it is a `ValueError`, which a mistake of the user would be as well."""

    def broken(self: ActorCritic, views: Any, batch: Any) -> Any:
        raise kind("deep inside")

    monkeypatch.setattr(ActorCritic, "loss", broken)
    words = ["train", "a2c", CATCH, "--agent-steps", "800", *SHORT, "--no-live"]
    for kind in (ValueError, ImportError):
        with pytest.raises(kind, match="deep inside") as caught:
            run(*words, "--out", str(tmp_path / kind.__name__))
        assert not isinstance(caught.value, UserError)
        assert "broken" in [entry.name for entry in caught.traceback]
        assert "deep inside" not in capsys.readouterr().err


def test_an_evaluation_that_fails_inside_is_a_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["a2c", CATCH, "--agent-steps", "80", *SHORT, "--no-live", "--out", str(tmp_path / "r")]
    assert run("train", *words) == 0

    def broken(self: ActorCritic, outputs: Any, context: Any) -> Any:
        raise ValueError("deep inside")

    monkeypatch.setattr(ActorCritic, "act", broken)
    with pytest.raises(ValueError, match="deep inside"):
        run("evaluate", str(tmp_path / "r"))


def test_the_exit_code_of_a_process_that_fails_inside_is_1(tmp_path: Path) -> None:
    """Seen from outside, with a recipe whose loss fails and with one that is refused."""
    failing = tmp_path / "failing.py"
    failing.write_text(
        "import dataclasses\nfrom scanline import recipes\n"
        "from scanline.algorithms import ActorCritic\n"
        "class Failing(ActorCritic):\n"
        "    def loss(self, views, batch):\n        raise ValueError('deep inside')\n"
        "recipe = dataclasses.replace(recipes.find('a2c'), algorithm=Failing(), protocol='as-is')\n"
    )
    command = [sys.executable, "-m", "scanline", "train", str(failing), CATCH, *SHORT, "--no-live"]
    done = subprocess.run(
        [*command, "--out", str(tmp_path / "run")], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1
    assert "Traceback" in done.stderr and "deep inside" in done.stderr


def test_a_disk_that_refuses_any_other_file_is_a_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(words: list[str]) -> int:
        with open("/dev/full", "w") as file:
            file.write("x")
        return 0

    monkeypatch.setattr(cli, "_list", full)
    assert run("list", "games") == 2
    assert "Could not write a file: the disk is full; " in capsys.readouterr().err
    monkeypatch.setattr(cli, "_list", lambda words: len(Path("/nowhere").read_bytes()))
    with pytest.raises(FileNotFoundError):
        run("list", "games")


def test_a_command_that_is_stopped_ends_with_its_signal_s_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for error, code, word in (
        (KeyboardInterrupt(), 130, "Stopped by Ctrl-C."),
        (Interrupted(signal.SIGTERM, "Stopped by SIGTERM."), 143, "Stopped by SIGTERM."),
    ):

        def stopped(words: list[str], error: BaseException = error) -> int:
            raise error

        monkeypatch.setattr(cli, "_list", stopped)
        assert run("list", "games") == code
        assert capsys.readouterr().err == f"scanline: {word}\n"
