"""Accelerated Methods (Stooke and Abbeel 2018): A2C, PPO and Q-learning, and asynchronous forms.

Where the paper is silent the released code decides: Lasagne's RMSProp, a whole squared value error,
advantages that are not normalised, up to 2,000 random steps before training.

An asynchronous form is a synchronous row with a central exchange: what is asynchronous is between
learners only. Of the replay, 8 draws of every step are one update of 32 per 4 steps.
"""

from __future__ import annotations

import dataclasses

from ..algorithms import ActorCritic, CategoricalDqn, Dqn, EpsilonGreedy, Ppo
from ..parameters import CentralSettings, OptimiserSettings
from ..runners.synchronous import Alternate
from ..runs.evaluating import EvaluationSettings
from ..samplers import SamplingSettings
from ..stores import NStep, PrioritisedSampling, ReplaySettings, RolloutSettings, UniformSampling
from . import usual
from .recipe import Recipe

_DECORRELATION_AGENT_STEPS = 2_000

_A2C = Recipe(
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
)

_CLIPPED = Ppo(
    clip_coef=0.2,
    clip_anneal="linear",
    normalise_advantages="none",
    entropy_coef=0.01,
    value_coef=1.0,
)

_PPO = Recipe(
    name="accelerated-ppo",
    summary="Stooke and Abbeel 2018: PPO on 2,048 samples, whatever the number of envs.",
    algorithm=_CLIPPED,
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
)

_PER_ENV = UniformSampling(spread="per-env")
"""Several learners draw what one would draw."""

_SAMPLING = SamplingSettings(
    num_envs=32, rollout_agent_steps=4, num_groups=2, decorrelation_agent_steps=2_000
)
_DQN = Recipe(
    name="accelerated-dqn",
    summary="Stooke and Abbeel 2018: DQN on batches of 512, two groups of environments in turn.",
    algorithm=Dqn(loss_form="huber"),
    network="nature-104x80",
    protocol="accelerated",
    # As published but for the rate (A.3). The original sums over its batch; its 0.01 is that of a
    # sum, which for a mean of 512 is divided by 512 squared.
    optimiser=dataclasses.replace(usual.DQN_RMSPROP, learning_rate=7.5e-4, epsilon=0.01 / 512**2),
    sampling=_SAMPLING,
    store=ReplaySettings(batch_size=512, sampling=_PER_ENV),
    pace=Alternate(target_agent_steps=10_000),
    evaluation=EvaluationSettings(
        evaluate_every_agent_steps=1_000_000, pause_games=0, pause_agent_steps=125_000
    ),
    agent_steps=50_000_000,
)

_RARELY = EpsilonGreedy(epsilon_end=0.01, evaluation_epsilon=0.001)

ROWS = (
    _A2C,
    _PPO,
    _DQN,
    dataclasses.replace(
        _DQN,
        name="accelerated-categorical-dqn",
        summary="Stooke and Abbeel 2018: Categorical DQN, 51 atoms, batches of 2,048.",
        algorithm=CategoricalDqn(exploration=_RARELY),
        optimiser=OptimiserSettings(kind="adam", learning_rate=4.2e-4, epsilon=0.01 / 2_048),
        sampling=dataclasses.replace(_SAMPLING, num_envs=64),
        store=ReplaySettings(batch_size=2_048, sampling=_PER_ENV),
    ),
    dataclasses.replace(
        _DQN,
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
    dataclasses.replace(
        _A2C,
        name="accelerated-a3c",
        summary="Stooke and Abbeel 2018: A2C learners of 16 environments on a central store.",
        exchange=CentralSettings(learners=3, num_chunks=3),
    ),
    dataclasses.replace(
        _PPO,
        name="accelerated-appo",
        summary="Stooke and Abbeel 2018: PPO learners that merge their Adam steps.",
        algorithm=dataclasses.replace(_CLIPPED, clip_anneal="none"),
        optimiser=OptimiserSettings(
            kind="adam", learning_rate=2.5e-4, epsilon=1e-5, max_grad_norm=0.5
        ),
        exchange=CentralSettings(learners=8, rule="multi-step-adam", sync_updates=2, poll_steps=64),
    ),
    dataclasses.replace(
        _DQN,
        name="accelerated-dqn-async",
        summary="Stooke and Abbeel 2018: DQN learners with a replay each, on a central store.",
        exchange=CentralSettings(learners=4),
    ),
)
