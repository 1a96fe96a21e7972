"""The network of a plan, the learner around it, and room for what it computes while it acts.

Takes a plan and spaces; gives a network with the head that the algorithm needs, its parameters with
optimiser, schedule and instruments, and its activation cache.
Knows no engine, sampler or store.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .. import networks
from ..parameters import Learners, LocalParameters
from ..recipes import Recipe
from ..records import Spaces
from ..runs.instruments import Instruments
from ..stores import RolloutSettings
from .attachments import unless_paused
from .learners import device_of
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


def build_learner(
    plan: Plan,
    spaces: Spaces,
    seed: int,
    learners: Learners | None = None,
    is_paused: Callable[[], bool] | None = None,
) -> LocalParameters:
    """Network, optimiser and, where the recipe has one, target."""
    recipe, learners = plan.recipe, learners or Learners()
    network = build_network(plan, spaces, seed).to(device_of(plan, learners.rank))
    return LocalParameters(
        network,
        recipe.optimiser,
        all_reduce=learners.mean if learners.count > 1 else None,
        **learner_options(plan, spaces, network, is_paused),
    )


def learner_options(
    plan: Plan,
    spaces: Spaces,
    network: torch.nn.Module,
    is_paused: Callable[[], bool] | None = None,
) -> dict[str, Any]:
    """What the parameters of a local learner and of one with a central store have in common."""
    recipe = plan.recipe
    instruments = Instruments(plan.run.instruments, network)
    return {
        "max_grad_norm": recipe.optimiser.max_grad_norm,
        "with_target": recipe.pace.target_agent_steps > 0,
        "algorithm_state": recipe.algorithm.init(spaces),
        "learning_rate": unless_paused(recipe.schedules()[1], is_paused),
        "watch_at": instruments.norms_at,
    }


def build_activation_cache(recipe: Recipe, learner: LocalParameters) -> networks.ActivationCache:
    """Room for a rollout that is learned from once and whole, from the inputs it was acted on."""
    store, sampling = recipe.store, recipe.sampling
    once = isinstance(store, RolloutSettings) and store.epochs == store.num_minibatches == 1
    same_inputs = not learner.views.state
    rows = sampling.num_envs * sampling.horizon_agent_steps
    return networks.ActivationCache(learner.network, rows if once and same_inputs else 0)
