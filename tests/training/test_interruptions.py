"""Limits and signals inside long work: it ends soon, and a resumed run ends as if it had not."""

from __future__ import annotations

import importlib
import itertools
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import scanline
from scanline.parameters import LocalParameters
from scanline.runs.checkpoint import load_latest
from scanline.runs.signals import Interrupted
from scanline.samplers import LockstepSampler
from training.test_determinism import BLOCKS, MEMORY, REPLAY, SETTINGS, STEADY, assert_equal_runs

training = importlib.import_module("scanline.training.train")
CATCH = "scanline/Catch-v0"
SHORT = {"agent_steps": 960, "save_every_agent_steps": 0, "log_every_agent_steps": 160}
BLOCK = {**BLOCKS, **SHORT}
"""Blocks of 400 steps in 10 rounds, with 20 updates each."""
FEW = {**REPLAY, **SHORT, "rollout_agent_steps": 20}
"""Turns of 160 steps with 5 updates each."""
TURNS: dict[str, dict[str, Any]] = {
    "ppo": {"rollout_agent_steps": 16, **STEADY},
    "accelerated-ppo": {"rollout_samples": 128, "decorrelation_agent_steps": 20, **STEADY},
    "cule-ppo": {"rollout_agent_steps": 16, **STEADY},
    "ppo-lstm": {"rollout_agent_steps": 16, **MEMORY, **STEADY},
    "ppo that holds ended environments": {
        "rollout_agent_steps": 16,
        "reset_mode": "hold",
        **STEADY,
    },
    "dqn": FEW,
    "accelerated-dqn": FEW,
    "accelerated-rainbow": FEW,
    "fast-dqn": BLOCK,
    "fast-dqn with threads": BLOCK | {"synchronised_execution": False},
    "fast-dqn that learns after playing": BLOCK | {"concurrent_training": False},
    "fast-dqn-repo": BLOCK,
}
ENDS_WITHIN_SECONDS = 10.0


def train(recipe: str, out: Path, **changes: Any) -> Any:
    settings = {**SETTINGS, **SHORT, **TURNS.get(recipe, {}), **changes}
    return scanline.train(recipe.split()[0], CATCH, out=out, say=lambda sentence: None, **settings)


def state(run: Path) -> Any:
    return load_latest(run / "checkpoints").state


def at_call(
    monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, number: int, do: Callable[[], Any]
) -> None:
    """Does something before one call of a method, counted from 1."""
    method, calls = getattr(owner, name), itertools.count(1)

    def called(*args: Any, **kwargs: Any) -> Any:
        if next(calls) == number:
            do()
        return method(*args, **kwargs)

    monkeypatch.setattr(owner, name, called)


def send() -> None:
    """Asks the run to stop; a thread of it waits until the main thread has taken notice."""
    os.kill(os.getpid(), signal.SIGTERM)
    if threading.current_thread() is not threading.main_thread():
        time.sleep(0.5)


@pytest.mark.parametrize("recipe", TURNS)
def test_a_turn_that_a_signal_breaks_off_goes_on_after_a_resume_bit_for_bit(
    recipe: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train(recipe, tmp_path / "whole")
    parted = tmp_path / "parted"
    for number in (2, 19):  # updates from the beginning, and from the resume
        with monkeypatch.context() as patched:
            at_call(patched, LocalParameters, "apply", number, send)
            assert train(recipe, parted, resume=parted.exists()).stop.kind == "signal"
        assert state(parted)["progress"]["turn"] is not None
    train(recipe, parted, resume=True)
    assert_equal_runs(tmp_path / "whole", parted)
    assert state(parted)["progress"]["updates"] == state(tmp_path / "whole")["progress"]["updates"]


@pytest.mark.parametrize(
    ("recipe", "number"),
    [
        ("fast-dqn", 8),
        ("fast-dqn with threads", 60),
        ("fast-dqn that learns after playing", 8),
    ],
)
def test_a_block_that_is_broken_off_while_it_is_played_goes_on_after_a_resume(
    recipe: str, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train(recipe, tmp_path / "whole")
    parted = tmp_path / "parted"
    for call in (number, 2):  # the first ones prepopulate
        with monkeypatch.context() as patched:
            at_call(patched, LockstepSampler, "collect", call, send)
            train(recipe, parted, resume=parted.exists())
        saved = state(parted)
        assert 0 < sum(saved["block"]["played_rounds"]) < 10 * len(saved["block"]["played_rounds"])
        assert saved["progress"]["agent_steps"] % 400
    train(recipe, parted, resume=True)
    assert_equal_runs(tmp_path / "whole", parted)


def test_the_seconds_of_a_run_end_a_block_in_its_midst(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    apply = LocalParameters.apply

    def slow(*args: Any, **kwargs: Any) -> Any:
        time.sleep(0.02)
        return apply(*args, **kwargs)

    monkeypatch.setattr(LocalParameters, "apply", slow)
    long = BLOCK | {"target_agent_steps": 8_000, "agent_steps": 16_000}  # 400 updates, 8 s
    run = train("fast-dqn", tmp_path / "run", seconds=1.5, live=True, **long)
    assert run.stop.kind == "seconds"
    assert 1.5 <= run.training_seconds < 3.5
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "fast-dqn on scanline/Catch-v0, seed 0: training."
    assert " agent steps " in shown[1]  # after a second
    assert 0 < state(tmp_path / "run")["progress"]["updates"] < 400


def test_a_signal_ends_evaluation_games_at_once_and_they_are_played_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses = {"evaluate_every_agent_steps": 320, "pause_games": 2, "pause_agent_steps": 0}
    train("accelerated-dqn", tmp_path / "whole", **pauses)
    parted = tmp_path / "parted"
    begun = time.monotonic()
    with monkeypatch.context() as patched:
        # The run's own rollouts are longer than one step: this is the games' sampler.
        at_call(patched, LockstepSampler, "collect", 7, lambda: (send(), time.sleep(60)))
        assert train("accelerated-dqn", parted, **pauses).stop.kind == "signal"
    assert time.monotonic() - begun < ENDS_WITHIN_SECONDS
    assert not (parted / "evaluations.jsonl").exists()
    train("accelerated-dqn", parted, resume=True, **pauses)
    assert_equal_runs(tmp_path / "whole", parted)
    scores = [(run / "evaluations.jsonl").read_bytes() for run in (tmp_path / "whole", parted)]
    assert scores[0] == scores[1]


@pytest.mark.parametrize(
    ("recipe", "settings"),
    [
        ("accelerated-a2c", {"decorrelation_agent_steps": 10**7}),
        ("fast-dqn", {**BLOCK, "learning_starts_agent_steps": 10**9}),
        ("accelerated-a3c", {"decorrelation_agent_steps": 10**7, "learners": 2}),
    ],
)
def test_a_signal_ends_a_warm_start(recipe: str, settings: dict[str, Any], tmp_path: Path) -> None:
    sent: list[float] = []
    timer = threading.Timer(1.0, lambda: (sent.append(time.monotonic()), send())[1])
    timer.start()
    with pytest.raises(Interrupted, match="nothing had to be saved") as caught:
        train(recipe, tmp_path / "run", **settings)
    assert time.monotonic() - sent[0] < ENDS_WITHIN_SECONDS
    assert caught.value.exit_code == 143


def test_a_run_that_was_stopped_while_it_started_begins_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train("accelerated-ppo", tmp_path / "whole")
    with monkeypatch.context() as patched:
        at_call(patched, LockstepSampler, "_decorrelate", 1, send)
        with pytest.raises(Interrupted):
            train("accelerated-ppo", tmp_path / "parted")
    train("accelerated-ppo", tmp_path / "parted", resume=True)
    assert_equal_runs(tmp_path / "whole", tmp_path / "parted")


def test_a_signal_ends_the_games_that_confirm_a_score_of_a_run_that_is_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training, "score", lambda *args, **kwargs: (send(), time.sleep(60)))
    run = train("a2c", tmp_path / "run", target_score=-100.0, score_window_episodes=1)
    assert run.stop.kind == "target_score"
    assert run.confirmation is None
    assert state(tmp_path / "run")["progress"]["turn"] is None
