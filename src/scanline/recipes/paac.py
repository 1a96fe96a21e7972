"""PAAC (Clemente 2017): many actors, one batch, one synchronous n-step update."""

from __future__ import annotations

import dataclasses

from ..algorithms import ActorCritic
from ..parameters import OptimiserSettings
from .recipe import Recipe

_RMSPROP = OptimiserSettings(
    kind="rmsprop",
    learning_rate=0.0007,
    scale_with_envs="linear",
    scale_base_envs=1,
    decay=0.99,
    epsilon=0.1,
    epsilon_inside_root=True,
    square_starts_at=1.0,
    max_grad_norm=40.0,
)

ROWS = (
    Recipe(
        name="paac",
        summary="Clemente 2017: many actors, one batch, one synchronous n-step update.",
        algorithm=ActorCritic(entropy_coef=0.01, value_coef=1.0),
        network="nips",
        protocol="paac",
        optimiser=_RMSPROP,
        agent_steps=115_000_000,
    ),
    Recipe(
        name="paac-repo",
        summary="PAAC as its released code has it: clip 3, entropy 0.02, annealed rate.",
        algorithm=ActorCritic(
            entropy_coef=0.02,
            value_coef=0.25,
            loss_scale=5.0,
            log_form="added",
            log_epsilon=1e-30,
        ),
        network="nips",
        protocol="paac-repo",
        optimiser=dataclasses.replace(_RMSPROP, max_grad_norm=3.0, anneal="linear"),
        agent_steps=80_000_000,
    ),
)
