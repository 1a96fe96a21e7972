"""Bare names: the settings that the field uses, with known curves."""

from __future__ import annotations

from ..algorithms import ActorCritic
from ..parameters import OptimiserSettings
from ..samplers import SamplingSettings
from .recipe import Recipe

ROWS = (
    Recipe(
        name="a2c",
        summary="OpenAI baselines' A2C: 16 environments, 5 steps, annealed RMSProp.",
        algorithm=ActorCritic(),
        optimiser=OptimiserSettings(
            kind="rmsprop",
            learning_rate=7e-4,
            decay=0.99,
            epsilon=1e-5,
            epsilon_inside_root=True,
            square_starts_at=1.0,
            max_grad_norm=0.5,
            anneal="linear",
        ),
        sampling=SamplingSettings(num_envs=16, rollout_agent_steps=5),
    ),
)
