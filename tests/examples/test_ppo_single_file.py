"""The example in one file runs as it is written."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import torch

EXAMPLE = Path(__file__).parents[2] / "examples" / "ppo_single_file.py"


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("ppo_single_file", EXAMPLE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["ppo_single_file"] = module
    spec.loader.exec_module(module)
    return module


def test_it_trains() -> None:
    ppo = load()
    args = ppo.Args(
        game="pong", total_steps=64, num_envs=2, num_steps=16, num_minibatches=2, num_epochs=1
    )
    assert ppo.main(args) is None  # no game of Pong ends so soon


def test_advantages_are_cut_at_ends() -> None:
    ppo = load()
    args = ppo.Args(gamma=0.5, gae_lambda=1.0)
    rewards = torch.tensor([[1.0], [2.0], [4.0]])
    ends = torch.tensor([[0.0], [1.0], [0.0]])
    found = ppo.advantages_of(rewards, torch.zeros(3, 1), ends, torch.tensor([8.0]), args)
    assert found.squeeze(1).tolist() == [2.0, 2.0, 8.0]
