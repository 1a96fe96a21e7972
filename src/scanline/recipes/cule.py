"""CuLE (Dalton 2020): A2C and PPO with many environments."""

from __future__ import annotations

from ..algorithms import ActorCritic, Ppo
from ..parameters import OptimiserSettings
from ..samplers import SamplingSettings
from ..stores import RolloutSettings
from .recipe import Recipe

_WARM_START_AGENT_STEPS = 100
"""400 raw frames of random play before training."""

_RMSPROP = OptimiserSettings(
    kind="rmsprop", learning_rate=6.5e-4, decay=0.99, epsilon=1e-5, max_grad_norm=0.5
)

ROWS = (
    Recipe(
        name="cule-a2c",
        summary="Dalton 2020: A2C with 120 environments and 5 steps.",
        algorithm=ActorCritic(entropy_coef=0.01, value_coef=0.5),
        network="cule",
        protocol="cule",
        optimiser=_RMSPROP,
        sampling=SamplingSettings(
            num_envs=120,
            rollout_agent_steps=5,
            decorrelation_agent_steps=_WARM_START_AGENT_STEPS,
        ),
        agent_steps=20_000_000,
    ),
    Recipe(
        name="cule-ppo",
        summary="Dalton 2020: PPO with 3 epochs, advantages normalised over the rollout.",
        algorithm=Ppo(
            clip_coef=0.1,
            gae_lambda=1.0,
            normalise_advantages="rollout",
            entropy_coef=0.01,
            value_coef=0.25,  # the code's 0.5 of half the square
        ),
        network="cule",
        protocol="cule",
        optimiser=OptimiserSettings(
            kind="adam",
            learning_rate=2.5e-4,
            epsilon=1e-8,
            amsgrad=True,
            max_grad_norm=0.5,
            anneal="linear",
        ),
        sampling=SamplingSettings(
            num_envs=16,
            rollout_agent_steps=128,
            decorrelation_agent_steps=_WARM_START_AGENT_STEPS,
        ),
        store=RolloutSettings(epochs=3, num_minibatches=8),
        agent_steps=20_000_000,
    ),
)
