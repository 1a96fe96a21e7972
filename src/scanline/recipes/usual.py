"""Bare names: the settings that the field uses, with known curves; and Mnih's A3C."""

from __future__ import annotations

from ..algorithms import ActorCritic, Dqn, Ppo
from ..parameters import CentralSettings, OptimiserSettings
from ..runners.synchronous import Alternate
from ..samplers import SamplingSettings
from ..stores import ReplaySettings, RolloutSettings
from .recipe import Recipe

DQN_RMSPROP = OptimiserSettings(
    kind="rmsprop",
    learning_rate=2.5e-4,
    decay=0.95,
    epsilon=0.01,
    epsilon_inside_root=True,
    centred=True,
)
"""That of Mnih 2015."""
DQN = Recipe(
    name="dqn",
    summary="Mnih 2015: one environment, an update every 4 steps, target copied every 10,000.",
    algorithm=Dqn(loss_form="huber", reduction="sum"),
    network="nature-uniform",
    protocol="nature",
    optimiser=DQN_RMSPROP,
    sampling=SamplingSettings(num_envs=1, rollout_agent_steps=4),
    store=ReplaySettings(),
    pace=Alternate(target_agent_steps=10_000),
    agent_steps=50_000_000,
)

PPO = Recipe(
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
)

PPO_LSTM = PPO.replace(
    name="ppo-lstm",
    summary="CleanRL's recurrent PPO: `ppo` with single frames and an LSTM of 128 units.",
    network="lstm",
    protocol="baselines-unstacked",
    shuffle="envs",
)

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
    PPO,
    PPO_LSTM,
    DQN,
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
        exchange=CentralSettings(),
        agent_steps=80_000_000,
    ),
)
