"""A run that begins with another run's weights."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

import scanline
from scanline import cli
from scanline.errors import RefusedError
from scanline.runs.checkpoint import CheckpointError, load_latest

CATCH = "scanline/Catch-v0"
SMALL: dict[str, Any] = {
    "network": "mlp",
    "agent_steps": 400,
    "num_workers": 0,
    "torch_threads": 1,
    "live": False,
    "tensorboard": False,
    "say": lambda sentence: None,
}


def train(out: Path, recipe: str = "a2c", game: str = CATCH, **changes: Any) -> Path:
    return scanline.train(recipe, game, out=out, **{**SMALL, **changes}).folder


def weights(run: Path) -> dict[str, torch.Tensor]:
    found: dict[str, torch.Tensor] = load_latest(run / "checkpoints").state["parameters"]["network"]
    return found


def test_a_run_begins_with_the_weights_of_another(tmp_path: Path) -> None:
    first = train(tmp_path / "first", seed=1)
    still = {"learning_rate": 1e-30, "anneal": "none"}  # moves no weight
    second = train(tmp_path / "second", init=str(first), **still)
    plain = train(tmp_path / "plain", **still)
    begun, expected, other = weights(second), weights(first), weights(plain)
    assert all(torch.equal(begun[name], expected[name]) for name in expected)
    assert any(not torch.equal(begun[name], other[name]) for name in expected)
    record = json.loads((second / "settings.json").read_text())["settings"]
    assert record["run"]["init"] == str(first)
    again = train(tmp_path / "again", init=str(first), **still)
    assert (again / "progress.jsonl").read_bytes() == (second / "progress.jsonl").read_bytes()


def test_it_is_resumed_when_the_other_run_is_gone(tmp_path: Path) -> None:
    first = train(tmp_path / "first")
    second = train(tmp_path / "second", init=str(first))
    shutil.rmtree(first)
    assert cli.main(["train", "--resume", str(second), "--agent-steps", "800"]) == 0
    assert load_latest(second / "checkpoints").agent_steps == 800
    scanline.evaluate(second, episodes=1)
    with pytest.raises(CheckpointError, match="no checkpoint in"):
        train(tmp_path / "third", init=str(first))


def test_a_network_of_another_shape_is_refused_by_its_tensors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = train(tmp_path / "first")
    with pytest.raises(RefusedError, match="do not fit this network") as refused:
        train(tmp_path / "second", game="CartPole-v1", init=str(first))
    sentence = str(refused.value)
    assert "head.stream.0.weight is [" in sentence
    assert "head.policy.bias is [3] there and [2] here" in sentence
    assert "head.value" not in sentence  # fits
    words = ["train", "a2c", "CartPole-v1", "--network", "mlp", "--num-workers", "0"]
    assert cli.main([*words, "--init", str(first), "--out", str(tmp_path / "third")]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not (tmp_path / "third").exists()
