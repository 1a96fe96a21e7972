"""Pauses for evaluation: when they are due, what is kept, and what they must not change."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

import scanline
from scanline import cli
from scanline.runs.checkpoint import CheckpointError, load_latest
from scanline.runs.evaluating import Evaluations, EvaluationSettings

CATCH = "scanline/Catch-v0"
SMALL = {
    "network": "mlp",
    "agent_steps": 480,
    "rollout_agent_steps": 4,
    "num_envs": 4,
    "num_groups": 1,
    "decorrelation_agent_steps": 0,
    "capacity_agent_steps": 400,
    "batch_size": 16,
    "learning_starts_agent_steps": 64,
    "log_every_agent_steps": 160,
    "torch_threads": 1,
    "num_workers": 0,
    "live": False,
    "tensorboard": False,
}


def train(out: Path, **changes: Any) -> scanline.training.TrainedRun:
    return scanline.train(
        "accelerated-dqn", CATCH, out=out, say=lambda sentence: None, **{**SMALL, **changes}
    )


def test_it_is_due_once_per_interval_and_keeps_the_best() -> None:
    means = iter([1.0, 3.0, None, 3.0])
    settings = EvaluationSettings(evaluate_every_agent_steps=100)
    held = Evaluations(settings, lambda agent_steps: {"mean": next(means)})
    assert held.best is None
    for agent_steps in (0, 99, 100, 150, 330, 399, 400, 500):
        if held.due(agent_steps):
            held.hold(agent_steps)
    assert [r["agent_steps"] for r in held.records] == [100, 330, 400, 500]
    assert held.best == {"agent_steps": 330, "mean": 3.0}
    resumed = Evaluations(settings, lambda agent_steps: {})
    resumed.load(held.state())
    assert resumed.records == held.records and not resumed.due(599) and resumed.due(600)
    assert not Evaluations(EvaluationSettings(), lambda agent_steps: {}).due(10**9)


def test_a_run_that_evaluates_learns_what_one_that_does_not_learns(tmp_path: Path) -> None:
    pauses = {"evaluate_every_agent_steps": 160, "pause_games": 3, "pause_agent_steps": 0}
    run = train(tmp_path / "with", **pauses)
    train(tmp_path / "without", evaluate_every_agent_steps=0)
    with_, without = (
        load_latest(tmp_path / name / "checkpoints").state["parameters"]["network"]
        for name in ("with", "without")
    )
    assert all(torch.equal(with_[name], without[name]) for name in with_)
    text = (tmp_path / "with" / "evaluations.jsonl").read_text()
    records = [json.loads(line) for line in text.splitlines()]
    assert [r["agent_steps"] for r in records] == [160, 320, 480]
    assert all(len(r["scores"]) == 3 for r in records)
    assert run.best_evaluation is not None
    assert run.best_evaluation["mean"] == max(r["mean"] for r in records)
    assert not (tmp_path / "without" / "evaluations.jsonl").exists()


def test_a_resumed_run_keeps_its_evaluations(tmp_path: Path) -> None:
    pauses = {"evaluate_every_agent_steps": 160, "pause_games": 2, "pause_agent_steps": 0}
    train(tmp_path / "whole", **pauses)
    train(tmp_path / "halves", **pauses, agent_steps=240)
    train(tmp_path / "halves", **pauses, resume=True)
    whole, halves = (
        (tmp_path / name / "evaluations.jsonl").read_bytes() for name in ("whole", "halves")
    )
    assert whole == halves


def test_the_best_checkpoint_stays_and_every_checkpoint_can_be_chosen(tmp_path: Path) -> None:
    pauses = {"evaluate_every_agent_steps": 160, "pause_games": 3, "pause_agent_steps": 0}
    saves = {"save_every_agent_steps": 160, "keep_checkpoints": 2}
    run = train(tmp_path / "run", **pauses, **saves)
    assert run.best_evaluation is not None
    at, mean = run.best_evaluation["agent_steps"], run.best_evaluation["mean"]
    assert [path.name.rpartition("-")[2] for path in kept(run.folder / "checkpoints/best")] == [
        str(at)
    ]
    best = scanline.evaluate(run.folder, episodes=3, checkpoint="best")
    assert (best.agent_steps, best.mean) == (at, mean)
    assert scanline.load_policy(run.folder, checkpoint=at).agent_steps == at
    assert scanline.load_policy(run.folder, checkpoint="320").agent_steps == 320
    assert scanline.load_policy(run.folder).agent_steps == 480
    words = ["evaluate", str(run.folder), "--episodes", "1", "--checkpoint"]
    assert cli.main([*words, "best"]) == cli.main([*words, "320"]) == 0
    with pytest.raises(CheckpointError, match=r"no checkpoint after 7 agent steps.*320, 480"):
        scanline.evaluate(run.folder, checkpoint=7)
    none = train(tmp_path / "none", evaluate_every_agent_steps=0)
    with pytest.raises(CheckpointError, match="no best checkpoint"):
        scanline.evaluate(none.folder, checkpoint="best")


def kept(folder: Path) -> list[Path]:
    return list(folder.glob("*-agent-steps-*"))


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"evaluate_every_agent_steps": -1}, "negative"),
        ({"pause_games": 0}, "without an end"),
    ],
)
def test_impossible_pauses_are_refused(wrong: dict[str, int], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        EvaluationSettings(**wrong)


def test_the_papers_protocols_are_settings_of_their_recipes() -> None:
    fast = scanline.recipes.find("fast-dqn").evaluation
    assert (fast.evaluate_every_agent_steps, fast.pause_games) == (250_000, 30)
    accelerated = scanline.recipes.find("accelerated-rainbow").evaluation
    assert accelerated.evaluate_every_agent_steps == 1_000_000
    assert (accelerated.pause_games, accelerated.pause_agent_steps) == (0, 125_000)
