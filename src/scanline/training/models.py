"""The network of a plan, and room for what it computes while it acts.

Takes a plan and spaces; gives a network with the head that the algorithm needs, and its memory.
Knows no engine, sampler or store.
"""

from __future__ import annotations

import torch

from .. import networks
from ..parameters import LocalParameters
from ..recipes import Recipe
from ..records import Spaces
from ..stores import RolloutSettings
from .plan import Plan


def build_network(plan: Plan, spaces: Spaces, seed: int) -> torch.nn.Module:
    """The recipe's network with the head that its algorithm needs."""
    recipe = plan.recipe
    head = networks.HeadSettings(
        kind=recipe.algorithm.head, conv_gradient_scale=recipe.conv_gradient_scale
    )
    losses = getattr(recipe.algorithm, "losses", ("all",))
    return networks.build(
        recipe.network, spaces, head, seed=seed, kernels=plan.run.kernels, losses=losses
    )


def build_memory(recipe: Recipe, learner: LocalParameters) -> networks.Memory:
    """Room for a rollout that is learned from once and whole, from the inputs it was acted on."""
    store, sampling = recipe.store, recipe.sampling
    once = isinstance(store, RolloutSettings) and store.epochs == store.num_minibatches == 1
    same_inputs = not learner.views.state
    rows = sampling.num_envs * sampling.horizon_agent_steps
    return networks.Memory(learner.network, rows if once and same_inputs else 0)
