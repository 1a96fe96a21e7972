"""Parallelised Q-network (Gallici 2024): its released Atari settings, `pqn_atari.yaml`."""

from __future__ import annotations

import torch

from ..algorithms import EpsilonGreedy, Pqn
from ..parameters import TorchSettings
from ..samplers import SamplingSettings
from ..stores import RolloutSettings
from .recipe import Recipe

ROWS = (
    Recipe(
        name="pqn",
        summary="Gallici 2024: Q-learning on fresh rollouts of 128 environments, no target.",
        algorithm=Pqn(
            # To 0.001 over the first tenth of the run; evaluation is greedy.
            exploration=EpsilonGreedy(epsilon_end=0.001, evaluation_epsilon=0.0),
        ),
        network="pqn",
        protocol="envpool",
        optimiser=TorchSettings(
            factory=torch.optim.RAdam, learning_rate=2.5e-4, max_grad_norm=10.0
        ),
        sampling=SamplingSettings(num_envs=128, rollout_agent_steps=32),
        store=RolloutSettings(epochs=2, num_minibatches=32),
        agent_steps=10_000_000,
    ),
)
