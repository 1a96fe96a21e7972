"""CuLE (Dalton 2020): A2C, A2C with V-trace, PPO and DQN with many environments.

`cule-vtrace` is the paper's 120 environments, 20 batches, 20 steps and an update every step; the
other rows of its Table 3 are named by their numbers. `vtrace` is that row retuned for a CPU.
"""

from __future__ import annotations

from ..algorithms import ActorCritic, Dqn, EpsilonGreedy, Ppo, Vtrace
from ..parameters import OptimiserSettings
from ..runners.synchronous import Alternate
from ..samplers import SamplingSettings
from ..stores import NStep, ReplaySettings, RolloutSettings, WindowSettings
from .recipe import Recipe

Knobs = tuple[int, int, int, int]
"""Environments E, batches B, N-steps N, steps per update SPU."""

_WARM_START_AGENT_STEPS = 100
"""400 raw frames of random play in every environment before training."""

_RMSPROP = OptimiserSettings(
    kind="rmsprop", learning_rate=6.5e-4, decay=0.99, epsilon=1e-5, max_grad_norm=0.5
)


def _sampling(num_envs: int, rollout_agent_steps: int) -> SamplingSettings:
    return SamplingSettings(
        num_envs=num_envs,
        rollout_agent_steps=rollout_agent_steps,
        decorrelation_agent_steps=_WARM_START_AGENT_STEPS,
        decorrelation_draw="all",
    )


SOONEST: Knobs = (120, 20, 20, 1)
"""What reached 18 on Pong soonest on CPU environments: the row without numbers in its name."""

KNOBS: tuple[Knobs, ...] = (
    SOONEST,
    (120, 1, 5, 5),
    (120, 5, 5, 1),
    (1200, 1, 5, 5),
    (1200, 5, 5, 1),
    (1200, 20, 20, 1),
    (4800, 20, 20, 1),
)
"""The paper's configurations of Table 3; the last one is for four learners."""


def numbered(knobs: Knobs) -> str:
    return "cule-vtrace-" + "-".join(map(str, knobs))


def vtrace_name(knobs: Knobs) -> str:
    """The recipe of these knobs."""
    return "cule-vtrace" if knobs == SOONEST else numbered(knobs)


def _vtrace(knobs: Knobs) -> Recipe:
    num_envs, num_blocks, window, rollout = knobs
    words = f"{num_envs} environments, {num_blocks} blocks, {window} steps, update every {rollout}"
    return Recipe(
        name=vtrace_name(knobs),
        summary=f"Dalton 2020: A2C with V-trace on a rolling window; {words}.",
        algorithm=Vtrace(entropy_coef=0.01, value_coef=0.5, normalise_pixels=True),
        network="cule",
        protocol="cule",
        optimiser=_RMSPROP,
        sampling=_sampling(num_envs, rollout),
        store=WindowSettings(window_agent_steps=window, num_blocks=num_blocks),
        agent_steps=20_000_000,
    )


VTRACE = _vtrace(SOONEST).replace(
    name="vtrace",
    summary="`cule-vtrace` retuned for a CPU: few environments, small network; wins Pong soon.",
    network="nips-orthogonal",
    entropy_coef=0.003,
    learning_rate=1e-3,
    anneal="linear",
    num_envs=24,
    num_blocks=4,
    window_agent_steps=20,
    rollout_agent_steps=5,
    decorrelation_draw="up-to",
    agent_steps=2_500_000,
)

ROWS = (
    VTRACE,
    *map(_vtrace, KNOBS),
    Recipe(
        name="cule-a2c",
        summary="Dalton 2020: A2C with 120 environments and 5 steps.",
        algorithm=ActorCritic(entropy_coef=0.01, value_coef=0.5, normalise_pixels=True),
        network="cule",
        protocol="cule",
        optimiser=_RMSPROP,
        sampling=_sampling(120, 5),
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
        sampling=_sampling(16, 128),
        store=RolloutSettings(epochs=3, num_minibatches=8),
        agent_steps=20_000_000,
    ),
    Recipe(
        name="cule-dqn",
        summary="Dalton 2020: DQN with three-step returns and Adam on many environments.",
        algorithm=Dqn(
            loss_form="squared",
            exploration=EpsilonGreedy(epsilon_agent_steps=15_000_000, evaluation_epsilon=0.0),
            normalise_pixels=True,
        ),
        network="cule-dqn",
        protocol="cule",
        optimiser=OptimiserSettings(
            kind="adam",
            learning_rate=6.25e-5,
            epsilon=0.75e-4,  # the code's 1.5e-4 and 1, of a whole square
            max_grad_norm=0.5,
            amsgrad=True,
        ),
        sampling=SamplingSettings(
            num_envs=32,
            rollout_agent_steps=1,
            decorrelation_agent_steps=1_000,
            decorrelation_draw="all",
        ),
        store=ReplaySettings(learning_starts_agent_steps=40_000, accumulator=NStep(n_step=3)),
        pace=Alternate(target_agent_steps=32_000),
        agent_steps=50_000_000,
    ),
)
