"""Learning: every recipe solves the toy game; the example of a user's own recipe does too."""

from __future__ import annotations

import importlib
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import scanline

CATCH = "scanline/Catch-v0"
EXAMPLE = Path(__file__).parents[2] / "examples" / "own_recipe.py"
CHANCE_SCORE = -3.0
"""Mean score of random play over five balls, rounded up."""


REPLAY = {
    "num_envs": 8,
    "capacity_agent_steps": 8_000,
    "batch_size": 32,
    "training_intensity": 4.0,
    "learning_starts_agent_steps": 500,
    "target_agent_steps": 400,
    "epsilon_agent_steps": 8_000,
    "epsilon_end": 0.02,
    "decorrelation_agent_steps": 10,
}
"""The replay recipes in small: a target and an exploration that fit a game of seconds."""
IMPALA = {"rollout_agent_steps": 5, "batch_trajectories": 16, "learning_rate": 3e-3}
GA3C = {"num_envs": 16, "learning_rate": 3e-3, "epsilon": 1e-3}
LEARNERS = {"learners": 2, "decorrelation_agent_steps": 0}
ONE_BALL = "one_ball:OneBall-v0"
ATTEMPTS_OF_RACES = 2
"""Learners that write over each other settle on one action now and then, one run in some twenty."""


@pytest.mark.parametrize(
    ("recipe", "changes"),
    [
        ("paac", {"learning_rate": 0.01}),
        ("paac-repo", {"learning_rate": 0.005}),  # at 0.01 the policy swings after it has learned
        ("a2c", {"learning_rate": 3e-3, "square_starts_at": 0.0, "anneal": "none"}),
        ("ppo", {"learning_rate": 2.5e-3, "rollout_agent_steps": 32}),
        ("accelerated-a2c", {"learning_rate": 3e-3}),
        ("accelerated-ppo", {"rollout_samples": 512}),
        ("cule-a2c", {"learning_rate": 3e-3}),
        ("cule-vtrace", {"learning_rate": 3e-3, "num_blocks": 4, "window_agent_steps": 8}),
        ("vtrace", {"learning_rate": 3e-3}),
        ("pqn", {"learning_rate": 1e-3, "rollout_agent_steps": 8, "num_minibatches": 4}),
        ("impala", IMPALA),
        ("cule-ppo", {"learning_rate": 2.5e-3, "rollout_agent_steps": 32}),
        ("dqn", REPLAY | {"learning_rate": 5e-4}),
        ("accelerated-dqn", REPLAY | {"learning_rate": 5e-4}),
        ("accelerated-categorical-dqn", REPLAY | {"learning_rate": 1e-3}),
        ("accelerated-rainbow", REPLAY | {"learning_rate": 1e-3}),
        ("cule-dqn", REPLAY | {"learning_rate": 1e-3}),
        ("fast-dqn", REPLAY | {"learning_rate": 5e-4, "rollout_agent_steps": 10}),
        ("fast-dqn-repo", REPLAY | {"learning_rate": 5e-4, "rollout_agent_steps": 10}),
    ],
)
def test_a_recipe_solves_the_toy_game(tmp_path: Path, recipe: str, changes: dict[str, Any]) -> None:
    solve(recipe, tmp_path, {"num_envs": 16, "decorrelation_agent_steps": 0, **changes})


@pytest.mark.parametrize(
    ("recipe", "changes"),
    [
        ("ga3c", GA3C),
        ("ga3c", GA3C | {"num_workers": 2, "envs_per_agent": 2, "normalise_pixels": True}),
        ("ga3c", GA3C | {"torn_reads": True, "separate_losses": True, "min_policy": 1e-3}),
        (
            "a3c-agents",
            {"learners": 2, "learning_rate": 5e-3, "anneal": "none", "epsilon": 1e-3},
        ),
        ("accelerated-a3c", LEARNERS | {"learning_rate": 3e-3}),
        (
            "accelerated-appo",
            LEARNERS | {"learning_rate": 1e-3, "rollout_samples": 512, "poll_steps": 16},
        ),
        ("accelerated-dqn-async", LEARNERS | REPLAY | {"learning_rate": 5e-4}),
    ],
)
def test_an_asynchronous_recipe_solves_the_toy_game(
    tmp_path: Path, recipe: str, changes: dict[str, Any]
) -> None:
    """And its log keeps apart what depends on the clock."""
    changes = {"log_every_agent_steps": 500, **changes}
    solve(recipe, tmp_path, changes, num_attempts=ATTEMPTS_OF_RACES)
    own = "perf/predictions_per_second" if recipe == "ga3c" else "perf/lock_wait_share"
    folder = tmp_path / "run-0"
    progress, rates = (rows(folder / name) for name in ("progress.jsonl", "rates.jsonl"))
    assert any("perf/policy_lag" in row for row in progress)
    for row, rate in zip(progress, rates, strict=True):
        assert own in rate
        assert not any("second" in name or "share" in name or "time" in name for name in row)


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_reward_at_the_end_is_learned_and_with_the_released_code_s_flag_it_is_not(
    tmp_path: Path,
) -> None:
    """One ball per game, and the only reward comes with the last step."""
    learned = solve("ga3c", tmp_path, GA3C | {"agent_steps": 25_000}, ONE_BALL, target_score=0.6)
    settings = GA3C | {"agent_steps": learned.agent_steps, "learn_terminal_reward": False}
    run = train("ga3c", tmp_path, settings, ONE_BALL, target_score=0.6)
    assert run.stop.kind == "agent_steps"
    assert run.score is not None and run.score < 0.0


def train(
    recipe: str, folder: Path, changes: dict[str, Any], game: str, target_score: float
) -> scanline.Run:
    small = {"network": "mlp", "agent_steps": 150_000, "num_workers": 0, "torch_threads": 1}
    quiet = {"live": False, "say": lambda sentence: None, "tensorboard": False}
    quiet |= {"target_score": target_score, "score_window_episodes": 40}
    name = f"run-{len(list(folder.iterdir()))}"
    return scanline.train(recipe, game, out=folder / name, **{**small, **quiet, **changes})


def solve(
    recipe: str,
    folder: Path,
    changes: dict[str, Any],
    game: str = CATCH,
    target_score: float = 2.0,
    num_attempts: int = 1,
) -> scanline.Run:
    """Trains until the score is reached, and plays to confirm it."""
    for attempt in range(num_attempts):
        another = {"seed": 100 + attempt} if attempt else {}
        run = train(recipe, folder, changes | another, game, target_score)
        if run.confirmation is not None and run.confirmation.mean > target_score - 1.0:
            break
    assert run.stop.kind == "target_score", f"stopped at {run.score} after {run.agent_steps} steps"
    assert run.confirmation is not None
    assert run.confirmation.mean > target_score - 1.0
    return run


def test_the_games_that_confirm_a_score_are_no_training_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = importlib.import_module("scanline.training.train")
    score = module.score

    def slow(plan: Any, player: Any, games: int) -> Any:
        time.sleep(2.0)
        return score(plan, player, games=1)

    monkeypatch.setattr(module, "score", slow)
    begun = time.perf_counter()
    run = train("paac", tmp_path, {}, CATCH, target_score=-100.0)
    assert run.stop.kind == "target_score"
    assert run.training_seconds < time.perf_counter() - begun - 2.0


@pytest.mark.parametrize(("recipe", "changes"), [("ga3c", GA3C), ("accelerated-a3c", LEARNERS)])
def test_nobody_learns_while_games_confirm_a_score(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recipe: str, changes: dict[str, Any]
) -> None:
    module = importlib.import_module("scanline.training.train")
    versions, score = [], module.score

    def judged(plan: Any, player: Any, games: int) -> Any:
        for _ in range(2):
            versions.append(player.version)
            time.sleep(0.3)
        return score(plan, player, games=1)

    monkeypatch.setattr(module, "score", judged)
    assert train(recipe, tmp_path, changes, CATCH, target_score=-100.0).stop.kind == "target_score"
    assert versions[0] == versions[1] > 0


def test_a_recipe_of_ones_own_in_one_file_learns(tmp_path: Path) -> None:
    run = scanline.train(
        str(EXAMPLE),
        CATCH,
        out=tmp_path / "run",
        num_workers=0,
        torch_threads=1,
        live=False,
        target_score=3.0,
        largest_advantage=2.0,
    )
    assert run.stop.kind == "target_score", f"stopped at {run.score} after {run.agent_steps} steps"
    assert scanline.evaluate(run.folder, episodes=10).mean > CHANCE_SCORE + 3
    policy = scanline.load_policy(run.folder)
    observation = np.zeros((1, 5, 5), "uint8")
    assert policy.act(observation) in (0, 1, 2)
