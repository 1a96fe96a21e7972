"""Accelerated Methods (Stooke and Abbeel 2018): synchronous forms of A2C and PPO.

Where the paper is silent the released code decides: Lasagne's RMSProp, a whole squared value error,
advantages that are not normalised, up to 2,000 random steps before training.
"""

from __future__ import annotations

from ..algorithms import ActorCritic, Ppo
from ..parameters import OptimiserSettings
from ..samplers import SamplingSettings
from ..stores import RolloutSettings
from .recipe import Recipe

_DECORRELATION_AGENT_STEPS = 2_000

ROWS = (
    Recipe(
        name="accelerated-a2c",
        summary="Stooke and Abbeel 2018: A2C with two groups in turn and a rate of sqrt(envs).",
        algorithm=ActorCritic(entropy_coef=0.01, value_coef=0.25),
        network="nips-104x80",
        protocol="accelerated",
        optimiser=OptimiserSettings(
            kind="rmsprop",
            learning_rate=7e-4,
            scale_with_envs="sqrt",
            scale_base_envs=16,
            decay=0.9,
            epsilon=1e-6,
            epsilon_inside_root=True,
            max_grad_norm=0.5,
        ),
        sampling=SamplingSettings(
            num_envs=16,
            rollout_agent_steps=5,
            num_groups=2,
            decorrelation_agent_steps=_DECORRELATION_AGENT_STEPS,
        ),
        agent_steps=50_000_000,
    ),
    Recipe(
        name="accelerated-ppo",
        summary="Stooke and Abbeel 2018: PPO on 2,048 samples, whatever the number of envs.",
        algorithm=Ppo(
            clip_coef=0.2,
            clip_anneal="linear",
            normalise_advantages="none",
            entropy_coef=0.01,
            value_coef=1.0,
        ),
        network="nips-104x80",
        protocol="accelerated",
        optimiser=OptimiserSettings(kind="adam", learning_rate=1e-3, epsilon=1e-5, anneal="linear"),
        sampling=SamplingSettings(
            num_envs=8,
            rollout_agent_steps=0,
            rollout_samples=2_048,
            num_groups=2,
            decorrelation_agent_steps=_DECORRELATION_AGENT_STEPS,
        ),
        store=RolloutSettings(epochs=4, num_minibatches=4, shuffle="per-env"),
        agent_steps=50_000_000,
    ),
)
