"""IMPALA (Espeholt 2018): actors play with weights of a while ago, V-trace corrects the lag.

The settings are those of the paper's Atari experts with the shallow network, losses summed over a
batch, and RMSProp as TensorFlow 1 has it, epsilon 0.01 inside the root. Where actors
run is no matter of the recipe: in this process, or on a cluster with `--remote-actors`.
"""

from __future__ import annotations

from ..algorithms import Vtrace
from ..parameters import OptimiserSettings
from ..samplers import SamplingSettings
from ..stores import RolloutQueueSettings
from .recipe import Recipe

ROWS = (
    Recipe(
        name="impala",
        summary="Espeholt 2018: 32 trajectories of 20 steps, V-trace; actors here or on a cluster.",
        algorithm=Vtrace(
            entropy_coef=0.01,
            value_coef=0.25,  # the code's 0.5 of half the square
            reduction="sum",
        ),
        network="nips",
        optimiser=OptimiserSettings(
            kind="rmsprop",
            learning_rate=6e-4,
            decay=0.99,
            epsilon=0.01,
            epsilon_inside_root=True,
            square_starts_at=1.0,
            max_grad_norm=40.0,
            anneal="linear",
        ),
        sampling=SamplingSettings(num_envs=32, rollout_agent_steps=20),
        store=RolloutQueueSettings(batch_trajectories=32),
        agent_steps=50_000_000,
    ),
)
