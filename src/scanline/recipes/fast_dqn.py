"""Fast DQN (Daley and Amato 2021): the target acts, learning runs beside it in blocks.

Both forms play eight environments with one inference per round; `--num-envs`,
`--no-concurrent-training` and `--no-synchronised-execution` give the paper's other thirteen.
"""

from __future__ import annotations

import dataclasses

from ..algorithms import Dqn
from ..parameters import OptimiserSettings
from ..runners.concurrent import Concurrent
from ..runs.evaluating import EvaluationSettings
from ..samplers import SamplingSettings
from ..stores import ReplaySettings
from .recipe import Recipe

_PAPER = Recipe(
    name="fast-dqn",
    summary="Daley and Amato 2021: DQN that learns while its target plays, in blocks of 10,000.",
    algorithm=Dqn(loss_form="squared"),
    network="nature-uniform",
    protocol="fast-dqn",
    optimiser=OptimiserSettings(
        kind="rmsprop", learning_rate=2.5e-4, decay=0.95, epsilon=0.01, centred=True
    ),
    sampling=SamplingSettings(num_envs=8, rollout_agent_steps=50),
    store=ReplaySettings(),
    pace=Concurrent(),
    evaluation=EvaluationSettings(evaluate_every_agent_steps=250_000, pause_games=30),
    agent_steps=50_000_000,
)

ROWS = (
    _PAPER,
    dataclasses.replace(
        _PAPER,
        name="fast-dqn-repo",
        summary="Fast DQN as its released code has it: Huber loss, finished episodes, last frame.",
        algorithm=Dqn(loss_form="huber"),
        protocol="fast-dqn-repo",
        store=ReplaySettings(flush="completed"),
    ),
)
