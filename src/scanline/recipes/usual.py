"""Bare names: the settings that the field uses, with known curves."""

from __future__ import annotations

from ..algorithms import ActorCritic, Ppo
from ..parameters import OptimiserSettings
from ..samplers import SamplingSettings
from ..stores import RolloutSettings
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
    Recipe(
        name="ppo",
        summary="CleanRL's Atari PPO: 8 environments, 128 steps, 4 epochs of 4 minibatches.",
        algorithm=Ppo(
            clip_coef=0.1,
            clip_value_loss=True,
            entropy_coef=0.01,
            value_coef=0.25,  # CleanRL's 0.5 of half the square
        ),
        optimiser=OptimiserSettings(
            kind="adam",
            learning_rate=2.5e-4,
            epsilon=1e-5,
            max_grad_norm=0.5,
            anneal="linear",
        ),
        sampling=SamplingSettings(num_envs=8, rollout_agent_steps=128),
        store=RolloutSettings(epochs=4, num_minibatches=4),
    ),
)
