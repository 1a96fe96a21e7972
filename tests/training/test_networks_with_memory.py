"""Networks with memory in whole runs: what they are for, and that their state is carried."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import scanline
from scanline import networks
from scanline.carried import Carried, Column, State
from scanline.errors import RefusedError
from scanline.records import PolicyValue, Spaces
from scanline.training import make_plan, prepared

RECALL = "scanline/Recall-v0"
SMALL: dict[str, Any] = {
    "protocol": "as-is",
    "num_envs": 32,
    "rollout_agent_steps": 16,
    "learning_rate": 5e-3,
    "anneal": "none",
    "agent_steps": 30_000,
    "num_workers": 0,
    "torch_threads": 1,
    "live": False,
    "tensorboard": False,
    "say": lambda sentence: None,
}


def train(recipe: Any, out: Path, **changes: Any) -> scanline.Run:
    network = {"network": "mlp-lstm" if recipe == "ppo-lstm" else "mlp"}
    named = network if isinstance(recipe, str) else {}
    return scanline.train(recipe, RECALL, out=out, **{**SMALL, **named, **changes})


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_ppo_with_a_memory_recalls_what_ppo_without_cannot_know(seed: int, tmp_path: Path) -> None:
    with_memory = train("ppo-lstm", tmp_path / "lstm", seed=seed, target_score=2.0)
    assert with_memory.stop.kind == "target_score", with_memory.score
    assert with_memory.confirmation is not None and with_memory.confirmation.mean > 1.5
    steps = {"agent_steps": with_memory.agent_steps}
    without = train("ppo", tmp_path / "plain", seed=seed, target_score=2.0, **steps)
    assert without.score is not None and without.score < 0.0


class OwnCell(torch.nn.Module):
    """A user's own network with memory, in few lines."""

    def __init__(self, spaces: Spaces) -> None:
        super().__init__()
        self.cell = torch.nn.GRUCell(spaces.observation_shape[1], 32)
        self.policy = torch.nn.Linear(32, spaces.num_actions)
        self.value = torch.nn.Linear(32, 1)
        self.carried = {"hidden": Column((32,))}

    def forward(self, observations: torch.Tensor, carried: Carried) -> tuple[PolicyValue, State]:
        rows, state = carried.unroll(self.step, observations[:, 0] / 255, self.carried)
        return PolicyValue(self.policy(rows), self.value(rows)[:, 0]), state

    def step(self, rows: torch.Tensor, state: State) -> tuple[torch.Tensor, State]:
        hidden = self.cell(rows, state["hidden"])
        return hidden, {"hidden": hidden}


def own_recipe(**changes: Any) -> scanline.Recipe:
    return scanline.recipes.find("ppo-lstm").replace(network=OwnCell, **changes)


def test_a_users_own_cell_learns_to_recall(tmp_path: Path) -> None:
    run = train(own_recipe(), tmp_path / "run", target_score=1.0)
    assert run.stop.kind == "target_score", run.score


@pytest.mark.parametrize(
    "changes",
    [
        {"store": scanline.stores.RolloutSettings(num_minibatches=4)},
        {"store": scanline.stores.SegmentSettings()},
    ],
)
def test_a_memory_that_only_the_built_network_shows_is_refused_where_it_cannot_work(
    changes: dict[str, Any], tmp_path: Path
) -> None:
    if "shuffle" not in vars(changes["store"]):
        with pytest.raises(ValueError, match="served as they come"):
            own_recipe_with(**changes)
        return
    recipe = own_recipe_with(**changes)
    with pytest.raises(RefusedError, match="learns from whole sequences"):
        train(recipe, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def own_recipe_with(**changes: Any) -> scanline.Recipe:
    return dataclasses.replace(own_recipe(), **changes)


def trained(out: Path, **changes: Any) -> Path:
    return train("ppo-lstm", out, **{"agent_steps": 512, **changes}).folder


def test_a_loaded_policy_acts_as_one_that_was_given_its_state(tmp_path: Path) -> None:
    """Row by row, forgetting where an episode ended, and after a reset."""
    policy = scanline.load_policy(trained(tmp_path / "run"), greedy=True)
    other = scanline.load_policy(tmp_path / "run", greedy=True)
    random = np.random.default_rng(0)
    seen = (random.random((6, 3, 1, 4)) * 255).astype(np.uint8)
    states: list[Any] = []
    for t, observations in enumerate(seen):
        ended = np.array([False, t == 3, False])
        policy.act(observations, ended)
        states.append({name: each.clone() for name, each in policy._carried.items()})
    for env in range(3):
        other.reset()
        for t in range(3 if env == 1 else 0, 6):
            assert other.act(seen[t, env]).shape == ()
            for name, each in states[t].items():
                torch.testing.assert_close(other._carried[name][0], each[env])
    with pytest.raises(ValueError, match=r"3 observations came after 1.*policy\.reset\(\)"):
        other.act(seen[0])


def test_a_game_is_evaluated_and_filmed_with_its_memory(tmp_path: Path) -> None:
    changes = {**SMALL, "network": "mlp-lstm", "agent_steps": 512}
    run = scanline.train("ppo-lstm", "scanline/Catch-v0", out=tmp_path / "run", **changes).folder
    scores = scanline.evaluate(run, episodes=1, seed=5, greedy=True).scores
    film = scanline.training.film(run, seed=5, greedy=True)
    assert (film.score,) == scores
    assert film.mp4.stat().st_size > 0


def test_a_run_begins_with_the_memory_of_another(tmp_path: Path) -> None:
    first = trained(tmp_path / "first", seed=1)
    still = {"learning_rate": 1e-30, "init": str(first)}
    found, expected = (
        scanline.load_policy(run).policy for run in (trained(tmp_path / "next", **still), first)
    )
    rows = torch.rand(2, 1, 4)
    state = Carried({name: torch.rand(2, 128) for name in found.carried})
    chance = torch.rand(2, 2)
    mine, other = (each(rows, chance, carried=state).carried for each in (found, expected))
    assert all(torch.equal(mine[name], other[name]) for name in mine)


@pytest.mark.parametrize(
    ("recipe", "changes", "sentence"),
    [
        ("ppo", {}, "shuffle='envs'"),
        ("ga3c", {}, "served as they come"),
        ("dqn", {}, "whole sequences"),
    ],
)
def test_a_memory_where_it_cannot_work_is_refused_in_one_sentence(
    recipe: str, changes: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(RefusedError, match=sentence):
        make_plan(recipe, RECALL, network="mlp-lstm", **changes)


def test_the_trunk_of_the_named_network_runs_natively() -> None:
    plan = make_plan("ppo-lstm", "pong", num_envs=4)
    run = prepared(plan, lambda part: None, say=lambda sentence: None)
    run.runtime.close()
    network = run.context.network
    assert isinstance(network, networks.Network)
    assert network.trunk.sizes is not None
    assert network.observation_shape == (1, 84, 84)
