"""Acting: which weights a policy acts with, and what it carries from step to step."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
import torch

import scanline
from scanline import acting
from scanline.algorithms import Ppo
from scanline.carried import Carried, allocated
from scanline.networks import build
from scanline.parameters import CentralSettings
from scanline.recipes import RECIPES
from scanline.records import Spaces, Views
from scanline.runs.checkpoint import load_latest

SPACES = Spaces(frame_shape=(5,), frame_dtype="float32", stack=1, num_actions=3)


def test_newer_weights_are_looked_for_once_in_so_many_steps_of_all_groups() -> None:
    pulled = list[int]()
    poll = acting.PollEvery(lambda: pulled.append(step), every_steps=3)
    for step in range(8):
        for _ in range(2):  # groups
            poll(4 * step)
    assert pulled == [2, 5]


@pytest.mark.parametrize("kind", [acting.NetworkPolicy, acting.EvaluationPolicy])
def test_a_policy_acts_with_the_weights_of_now_and_carries_its_networks_state(
    kind: type[acting.NetworkPolicy],
) -> None:
    algorithm = Ppo()
    networks = [build("mlp-lstm", SPACES, algorithm.head, seed=seed) for seed in (0, 1)]
    version = 0
    policy = kind(algorithm, lambda: (Views(live=networks[version]), version))
    observations, uniforms = torch.rand(2, 1, 5), torch.full((2, policy.draws_per_step), 0.5)
    state = Carried(allocated(policy.carried, 2))
    first, again = (policy(observations, uniforms, 0, state) for _ in range(2))
    version = 1
    newer = policy(observations, uniforms, 0, state)
    assert policy.version == 1 and first.carried.keys() == policy.carried.keys()
    for name, after in first.carried.items():
        assert torch.equal(after, again.carried[name])
        assert not torch.equal(after, newer.carried[name])


def test_a_network_with_memory_learns_in_a_central_store_that_is_polled(tmp_path: Path) -> None:
    recipe = dataclasses.replace(
        RECIPES["ppo-lstm"],
        name="central-lstm",
        exchange=CentralSettings(learners=1, poll_steps=4),
        optimiser=RECIPES["accelerated-a3c"].optimiser,
    )
    settings = {"network": "mlp-lstm", "num_envs": 4, "rollout_agent_steps": 8, "agent_steps": 200}
    quiet = {"live": False, "tensorboard": False, "say": lambda sentence: None}
    game = "scanline/Catch-v0"
    run = scanline.train(recipe, game, out=tmp_path / "run", num_workers=0, **settings, **quiet)
    assert run.agent_steps >= 200
    assert load_latest(run.folder / "checkpoints").state["parameters"]["version"] > 0
