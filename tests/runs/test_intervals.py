"""The target is copied at every multiple of its period, however long a rollout is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import scanline
from scanline.algorithms import Dqn
from scanline.parameters import LocalParameters, OptimiserSettings
from scanline.recipes import Recipe
from scanline.runners.alternate import Alternate
from scanline.runs.progress import Every
from scanline.stores import ReplaySettings

CATCH = "scanline/Catch-v0"


@pytest.mark.parametrize("rollout", [1, 3, 7, 25])
def test_a_multiple_is_reached_once(rollout: int) -> None:
    counts = range(0, 100, rollout)
    times: list[int] = []
    for now in counts:
        Every(10, lambda at=now: times.append(at)).reached(now, now + rollout)
    assert times == [n for n in counts if any((n < k <= n + rollout) for k in range(10, 200, 10))]


def test_the_target_lags_by_its_period_and_the_updates_follow_the_intensity(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied: list[int] = []
    sync = LocalParameters.sync_target

    def watched(self: LocalParameters) -> None:
        sync(self)
        copied.append(self.target_version)

    monkeypatch.setattr(LocalParameters, "sync_target", watched)
    scanline.train(
        "dqn",
        CATCH,
        out=tmp_path / "run",
        network="mlp",
        agent_steps=200,
        capacity_agent_steps=100,
        batch_size=8,
        training_intensity=2.0,
        learning_starts_agent_steps=40,
        target_agent_steps=50,
        num_workers=0,
        torch_threads=1,
        live=False,
        tensorboard=False,
        say=lambda sentence: None,
    )
    # One update per 4 steps after the first 40; rollouts of 4 reach 50 at 52, 150 at 152.
    assert copied == [3, 15, 28, 40]


@pytest.mark.parametrize(
    ("choices", "words"),
    [
        ({"store": ReplaySettings()}, "needs a target network"),
        ({"pace": Alternate(target_agent_steps=10)}, "store=ReplaySettings"),
    ],
)
def test_a_value_learner_without_replay_or_target_is_refused(
    choices: dict[str, Any], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        Recipe(name="x", summary="", algorithm=Dqn(), optimiser=OptimiserSettings(), **choices)


def test_a_negative_period_is_refused() -> None:
    with pytest.raises(ValueError, match="target_agent_steps=-1"):
        Alternate(target_agent_steps=-1)
