"""GA3C (Babaeizadeh 2017): one model, queues of predictions and of segments between threads.

`ga3c` is the paper's form with bounded queues, `ga3c-repo` what the released code does: 32 agents
on sticky environments, half the value error, a floor in the logarithm, one segment per update, and
no learning from the last step of a game. Learning rate and entropy bonus are constant in both: the
released code anneals them by episodes, from a number to the same number.
"""

from __future__ import annotations

import dataclasses

from ..algorithms import ActorCritic
from ..parameters import OptimiserSettings
from ..runners.free_running import FreeRunning
from ..samplers import DynamicSettings
from ..stores import SegmentSettings
from .recipe import Recipe

_LOSS = ActorCritic(
    entropy_coef=0.01,
    value_coef=1.0,
    reduction="sum",
    log_form="added",
    log_epsilon=1e-6,
    bootstrap="acting",
)

_GA3C = Recipe(
    name="ga3c",
    summary="Babaeizadeh 2017: predictors and trainers around one model, served by queues.",
    algorithm=_LOSS,
    network="ga3c",
    protocol="ga3c",
    optimiser=OptimiserSettings(
        kind="rmsprop",
        learning_rate=3e-4,
        decay=0.99,
        epsilon=0.1,
        epsilon_inside_root=True,
        square_starts_at=1.0,
    ),
    sampling=DynamicSettings(num_envs=128, rollout_agent_steps=5),
    store=SegmentSettings(min_batch_agent_steps=40),
    pace=FreeRunning(num_predictors=2, num_trainers=2),
    agent_steps=100_000_000,
)

ROWS = (
    _GA3C,
    dataclasses.replace(
        _GA3C,
        name="ga3c-repo",
        summary="GA3C as its released code has it: a floor in the logarithm, no terminal reward.",
        algorithm=dataclasses.replace(_LOSS, value_coef=0.5, log_form="floor"),
        protocol="ga3c-repo",
        sampling=DynamicSettings(num_envs=32, rollout_agent_steps=5),
        store=SegmentSettings(min_batch_agent_steps=0, learn_terminal_reward=False),
    ),
)
