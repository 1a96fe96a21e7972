"""Learners that wait for nobody: A3C, Stooke and Abbeel's A3C, APPO and asynchronous DQN.

Each is a synchronous row with a central exchange: what is asynchronous is between learners only.
"""

from __future__ import annotations

import dataclasses

from ..algorithms import ActorCritic, Ppo
from ..parameters import CentralSettings, OptimiserSettings
from ..samplers import SamplingSettings
from . import accelerated, q_learning
from .recipe import Recipe

_ROWS = {row.name: row for row in (*accelerated.ROWS, *q_learning.ROWS)}
_A2C, _PPO = _ROWS["accelerated-a2c"], _ROWS["accelerated-ppo"]
assert isinstance(_PPO.algorithm, Ppo)

ROWS = (
    Recipe(
        name="a3c-agents",
        summary="Mnih 2016: an agent per core with weights of its own and a shared RMSProp.",
        algorithm=ActorCritic(entropy_coef=0.01, value_coef=0.5, reduction="sum"),
        network="nips",
        protocol="ga3c",
        optimiser=OptimiserSettings(
            kind="rmsprop",
            learning_rate=7e-4,
            decay=0.99,
            epsilon=0.1,
            epsilon_inside_root=True,
            max_grad_norm=40.0,
            anneal="linear",
        ),
        sampling=SamplingSettings(num_envs=1, rollout_agent_steps=5),
        exchange=CentralSettings(num_learners=0),
        agent_steps=80_000_000,
    ),
    dataclasses.replace(
        _A2C,
        name="accelerated-a3c",
        summary="Stooke and Abbeel 2018: A2C learners of 16 environments on a central store.",
        exchange=CentralSettings(num_learners=3, num_chunks=3),
    ),
    dataclasses.replace(
        _PPO,
        name="accelerated-appo",
        summary="Stooke and Abbeel 2018: PPO learners that merge their Adam steps.",
        algorithm=dataclasses.replace(_PPO.algorithm, clip_anneal="none"),
        optimiser=OptimiserSettings(
            kind="adam", learning_rate=2.5e-4, epsilon=1e-5, max_grad_norm=0.5
        ),
        exchange=CentralSettings(
            num_learners=8, rule="multi-step-adam", sync_updates=2, poll_steps=64
        ),
    ),
    dataclasses.replace(
        _ROWS["accelerated-dqn"],
        name="accelerated-dqn-async",
        summary="Stooke and Abbeel 2018: DQN learners with a replay each, on a central store.",
        exchange=CentralSettings(num_learners=4),
    ),
)
