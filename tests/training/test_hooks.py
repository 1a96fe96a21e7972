"""A user's loggers and callback: called at rows, changing nothing, able to end a run."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch

import scanline
from scanline.files import read_json_lines

SHORT: dict[str, Any] = {
    "agent_steps": 3_000,
    "log_every_agent_steps": 500,
    "network": "mlp",
    "num_threads": 1,
    "live": False,
    "tensorboard": False,
    "say": lambda sentence: None,
}


def weights_hash(run: scanline.Run) -> str:
    (path,) = (run.folder / "checkpoints").rglob("*.safetensors")
    return hashlib.sha256(path.read_bytes()).hexdigest()


class Rows:
    """A logger of one's own."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, dict[str, float]]] = []
        self.events: list[str] = []

    def open(self, settings: Mapping[str, Any], folder: Path) -> None:
        self.events.append(f"open {settings['game']} {folder.name}")

    def row(self, agent_steps: int, values: Mapping[str, float]) -> None:
        self.rows.append((agent_steps, dict(values)))

    def close(self) -> None:
        self.events.append("close")


def test_a_logger_gets_every_row_with_its_rates(tmp_path: Path) -> None:
    logger = Rows()
    scanline.train("paac", "scanline/Catch-v0", out=tmp_path / "x", loggers=[logger], **SHORT)
    assert logger.events == ["open scanline/Catch-v0 x", "close"]
    rows = read_json_lines(tmp_path / "x" / "progress.jsonl")
    assert [steps for steps, _ in logger.rows] == [row["agent_steps"] for row in rows]
    _, values = logger.rows[-1]
    assert values["losses/policy_loss"] == rows[-1]["losses/policy_loss"]
    assert values["charts/SPS"] > 0
    assert "agent_steps" not in values


@pytest.mark.parametrize("recipe", ["paac", "dqn", "a3c-agents", "ga3c"])
def test_a_callback_sees_progress_and_weights_and_may_end_the_run(
    tmp_path: Path, recipe: str
) -> None:
    seen: list[scanline.TrainingProgress] = []

    def callback(progress: scanline.TrainingProgress) -> bool:
        seen.append(progress)
        weights = list(progress.views().live.parameters())
        assert weights and all(torch.isfinite(each).all() for each in weights)
        return len(seen) < 2

    options = {**SHORT, "agent_steps": 1_000_000}
    run = scanline.train(
        recipe, "scanline/Catch-v0", out=tmp_path / "x", callback=callback, **options
    )
    assert len(seen) == 2
    assert run.stop.kind == "callback"
    assert run.stop.sentence == "The callback has ended the run."
    assert seen[0].agent_steps < seen[1].agent_steps <= run.agent_steps
    assert seen[1].row["agent_steps"] == seen[1].agent_steps
    assert seen[1].folder == run.folder
    assert list((run.folder / "checkpoints").iterdir())


def test_whatever_a_callback_does_the_weights_stay_the_same(tmp_path: Path) -> None:
    def wild(progress: scanline.TrainingProgress) -> None:
        views = progress.views()
        with torch.no_grad():
            for each in views.live.parameters():
                each.fill_(torch.rand(()).item())

    one, other = (
        scanline.train("paac", "scanline/Catch-v0", out=tmp_path / name, callback=each, **SHORT)
        for name, each in (("plain", None), ("wild", wild))
    )
    assert weights_hash(one) == weights_hash(other)
    rows = (tmp_path / "plain" / "progress.jsonl").read_bytes()
    assert rows == (tmp_path / "wild" / "progress.jsonl").read_bytes()


def test_a_run_that_a_callback_ended_can_go_on(tmp_path: Path) -> None:
    whole = scanline.train("paac", "scanline/Catch-v0", out=tmp_path / "whole", **SHORT)
    options = {"out": tmp_path / "x", **SHORT}
    scanline.train("paac", "scanline/Catch-v0", callback=lambda progress: False, **options)
    again = scanline.train("paac", "scanline/Catch-v0", resume=True, **options)
    assert again.agent_steps == whole.agent_steps
    files = [run.folder / "progress.jsonl" for run in (whole, again)]
    assert files[0].read_bytes() == files[1].read_bytes()


@pytest.mark.parametrize(
    ("recipe", "name", "low", "high"),
    [
        ("paac", "losses/explained_variance", -1.0, 1.0),
        ("ppo", "losses/explained_variance", -1.0, 1.0),
        ("vtrace", "losses/explained_variance", -1.0, 1.0),
        ("dqn", "charts/epsilon", 0.1, 1.0),
        ("accelerated-categorical-dqn", "charts/epsilon", 0.01, 1.0),
    ],
)
def test_rows_have_epsilon_or_explained_variance(
    tmp_path: Path, recipe: str, name: str, low: float, high: float
) -> None:
    logger = Rows()
    few = {"learning_starts_agent_steps": 500, "capacity_agent_steps": 4_000}
    options = SHORT | (few if "dqn" in recipe else {}) | {"agent_steps": 2_000}
    scanline.train(recipe, "scanline/Catch-v0", out=tmp_path / "x", loggers=[logger], **options)
    assert low <= logger.rows[-1][1][name] <= high
