"""Q-learning with a replay: Mnih 2015, Stooke and Abbeel 2018, and CuLE's DQN.

Updates follow the training intensity: 8 draws of every step are one update of 32 per 4 steps.
"""

from __future__ import annotations

import dataclasses

from ..algorithms import CategoricalDqn, Dqn, EpsilonGreedy
from ..parameters import OptimiserSettings
from ..runners.alternate import Alternate
from ..runs.evaluating import EvaluationSettings
from ..samplers import SamplingSettings
from ..stores import NStep, PrioritisedSampling, ReplaySettings, UniformSampling
from .recipe import Recipe

_MNIH = Recipe(
    name="dqn",
    summary="Mnih 2015: one environment, an update every 4 steps, target copied every 10,000.",
    algorithm=Dqn(loss_form="huber", reduction="sum"),
    network="nature-uniform",
    protocol="nature",
    optimiser=OptimiserSettings(
        kind="rmsprop",
        learning_rate=2.5e-4,
        decay=0.95,
        epsilon=0.01,
        epsilon_inside_root=True,
        centred=True,
    ),
    sampling=SamplingSettings(num_envs=1, rollout_agent_steps=4),
    store=ReplaySettings(),
    pace=Alternate(target_agent_steps=10_000),
    agent_steps=50_000_000,
)

_PER_ENV = UniformSampling(spread="per-env")
"""Several learners draw what one would draw."""

_ACCELERATED = Recipe(
    name="accelerated-dqn",
    summary="Stooke and Abbeel 2018: DQN on batches of 512, two groups of environments in turn.",
    algorithm=Dqn(loss_form="huber"),
    network="nature-104x80",
    protocol="accelerated",
    # As published but for the rate (A.3). The original sums over its batch; its 0.01 is that of a
    # sum, which for a mean of 512 is divided by 512 squared.
    optimiser=dataclasses.replace(_MNIH.optimiser, learning_rate=7.5e-4, epsilon=0.01 / 512**2),
    sampling=SamplingSettings(
        num_envs=32, rollout_agent_steps=4, num_groups=2, decorrelation_agent_steps=2_000
    ),
    store=ReplaySettings(batch_size=512, sampling=_PER_ENV),
    pace=Alternate(target_agent_steps=10_000),
    evaluation=EvaluationSettings(
        evaluate_every_agent_steps=1_000_000, pause_games=0, pause_agent_steps=125_000
    ),
    agent_steps=50_000_000,
)

_RARELY = EpsilonGreedy(epsilon_end=0.01, evaluation_epsilon=0.001)

ROWS = (
    _MNIH,
    _ACCELERATED,
    dataclasses.replace(
        _ACCELERATED,
        name="accelerated-categorical-dqn",
        summary="Stooke and Abbeel 2018: Categorical DQN, 51 atoms, batches of 2,048.",
        algorithm=CategoricalDqn(exploration=_RARELY),
        optimiser=OptimiserSettings(kind="adam", learning_rate=4.2e-4, epsilon=0.01 / 2_048),
        sampling=dataclasses.replace(_ACCELERATED.sampling, num_envs=64),
        store=ReplaySettings(batch_size=2_048, sampling=_PER_ENV),
    ),
    dataclasses.replace(
        _ACCELERATED,
        name="accelerated-rainbow",
        summary="Stooke and Abbeel 2018: Rainbow without noisy layers, epsilon-greedy instead.",
        algorithm=CategoricalDqn(
            exploration=dataclasses.replace(_RARELY, epsilon_agent_steps=62_500),
            double=True,
            dueling=True,
        ),
        conv_gradient_scale=0.5**0.5,
        optimiser=OptimiserSettings(
            kind="adam", learning_rate=6.25e-5, epsilon=0.005 / 512, max_grad_norm=10.0
        ),
        store=ReplaySettings(
            batch_size=512,
            learning_starts_agent_steps=20_000,
            sampling=PrioritisedSampling(),
            accumulator=NStep(n_step=3),
        ),
        pace=Alternate(target_agent_steps=8_000),
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
