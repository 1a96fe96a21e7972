"""CuLE (Dalton 2020): A2C, A2C with V-trace, and PPO with many environments."""

from __future__ import annotations

from ..algorithms import ActorCritic, Ppo, Vtrace
from ..parameters import OptimiserSettings
from ..samplers import SamplingSettings
from ..stores import RolloutSettings, WindowSettings
from .recipe import Recipe

_WARM_START_AGENT_STEPS = 100
"""400 raw frames of random play before training."""

_RMSPROP = OptimiserSettings(
    kind="rmsprop", learning_rate=6.5e-4, decay=0.99, epsilon=1e-5, max_grad_norm=0.5
)


def _vtrace(name: str, num_envs: int, num_blocks: int, window: int, rollout: int) -> Recipe:
    """CuLE's four knobs: environments, batches, N-steps, steps per update."""
    knobs = f"{num_envs} environments, {num_blocks} blocks, {window} steps, update every {rollout}"
    return Recipe(
        name=name,
        summary=f"Dalton 2020: A2C with V-trace on a rolling window; {knobs}.",
        algorithm=Vtrace(entropy_coef=0.01, value_coef=0.5, normalise_pixels=True),
        network="cule",
        protocol="cule",
        optimiser=_RMSPROP,
        sampling=SamplingSettings(
            num_envs=num_envs,
            rollout_agent_steps=rollout,
            decorrelation_agent_steps=_WARM_START_AGENT_STEPS,
        ),
        store=WindowSettings(window_agent_steps=window, num_blocks=num_blocks),
        agent_steps=20_000_000,
    )


KNOBS = (
    (120, 1, 5, 5),
    (120, 5, 5, 1),
    (120, 20, 20, 1),
    (1200, 1, 5, 5),
    (1200, 5, 5, 1),
    (1200, 20, 20, 1),
    (4800, 20, 20, 1),
)
"""The paper's configurations (E, B, N, SPU) of Table 3; the last one is for four learners."""


def _for_few_cores() -> Recipe:
    """The paper's soonest configuration on CPU environments, with what learns Pong soonest here."""
    recipe = _vtrace("cule-vtrace", 120, 20, 20, 1)
    return recipe.replace(
        network="nips-orthogonal",
        entropy_coef=0.003,
        summary=f"{recipe.summary} Small network, less entropy: for a CPU; variants as published.",
    )


ROWS = (
    _for_few_cores(),
    *(_vtrace("cule-vtrace-" + "-".join(map(str, knobs)), *knobs) for knobs in KNOBS),
    Recipe(
        name="cule-a2c",
        summary="Dalton 2020: A2C with 120 environments and 5 steps.",
        algorithm=ActorCritic(entropy_coef=0.01, value_coef=0.5, normalise_pixels=True),
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
            normalise_pixels=True,
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
