"""The network of a plan, the parameters around it, and policies that play with them.

Takes a plan and spaces; gives a network with the head that the algorithm needs, its parameters with
optimiser, schedule and instruments, and policies that play as the run's evaluations do.
Knows no engine, sampler or store.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from .. import networks
from ..acting import EvaluationPolicy, Source
from ..parameters import LocalParameters
from ..random import GREEDY, SAMPLED
from ..recipes import Recipe
from ..records import Spaces
from ..runs.checkpoint import load_chosen
from ..runs.instruments import Instruments
from .attachments import unless_paused
from .placement import Place, device_of
from .plan import Plan


def build_network(plan: Plan, spaces: Spaces, seed: int) -> torch.nn.Module:
    """The recipe's network with the head that its algorithm needs."""
    recipe = plan.recipe
    head, losses = _head(recipe), recipe.algorithm.losses
    network = networks.build(
        recipe.network, spaces, head, seed=seed, kernels=plan.kernels, losses=losses
    )
    networks.in_precision(network, plan.run.precision)
    return network


def _head(recipe: Recipe) -> networks.HeadSettings | networks.Head:
    """The algorithm's own, or the named one with what recipe and algorithm say of it."""
    head = recipe.algorithm.head
    if not isinstance(head, str):
        return head
    return networks.HeadSettings(
        kind=head,
        num_atoms=getattr(recipe.algorithm, "num_atoms", networks.HeadSettings.num_atoms),
        conv_gradient_scale=recipe.conv_gradient_scale,
    )


def load_initial(network: torch.nn.Module, run: Path) -> None:
    """Gives the network the newest weights of another run; one of another shape is refused."""
    theirs = load_chosen(run / "checkpoints", None).state["parameters"]["network"]
    mine = network.state_dict()
    shapes = [{n: list(t.shape) for n, t in each.items()} for each in (theirs, mine)]
    there, here = ({name: str(shape) for name, shape in each.items()} for each in shapes)
    differing = [
        f"{name} is {there.get(name, 'not')} there and {here.get(name, 'not')} here"
        for name in dict.fromkeys((*there, *here))
        if there.get(name) != here.get(name)
    ]
    if differing:
        raise ValueError(
            f"The weights of {run} do not fit this network: {', '.join(differing)}; take the run's "
            "--network and algorithm, and a game with as many actions."
        )
    network.load_state_dict(theirs)


def build_learner(plan: Plan, spaces: Spaces, seed: int) -> LocalParameters:
    """Network, optimiser and, where the recipe has one, target, of a learner alone."""
    network = device_of(plan).place(build_network(plan, spaces, seed))
    options = learning_options(plan, spaces, network)
    return LocalParameters(network, plan.recipe.optimiser, **options)


def learning_options(
    plan: Plan,
    spaces: Spaces,
    network: torch.nn.Module,
    is_paused: Callable[[], bool] | None = None,
) -> dict[str, Any]:
    """What parameters are made of besides network and optimiser, whatever the exchange."""
    recipe, pace = plan.recipe, plan.recipe.pace
    num_envs = Place(num_learners=plan.learners).num_envs(recipe)
    instruments = Instruments(plan.run.instruments, network)
    return {
        "max_grad_norm": recipe.optimiser.max_grad_norm,
        "with_target": bool(pace.target_agent_steps or pace.target_rate),
        "target_rate": pace.target_rate,
        "algorithm_state": recipe.algorithm.init(spaces, num_envs),
        "learning_rate": unless_paused(recipe.schedules()[1], is_paused),
        "watch_at": instruments.norms_at,
    }


def policy_of(
    plan: Plan, source: Source, agent_steps: int, greedy: bool | None = None
) -> EvaluationPolicy:
    """A policy that plays with the present weights of a source.

    Every schedule stands at `agent_steps`. Actions are chosen as the algorithm declares for its
    evaluations, or as the user wants: the best one (`greedy`), or as in training (not `greedy`).
    """
    algorithm = plan.recipe.algorithm.spanning(plan.recipe.agent_steps)
    wanted = GREEDY if greedy else SAMPLED
    choice = algorithm.evaluation_choice if greedy is None else wanted
    return EvaluationPolicy(algorithm, source, choice, agent_steps, device_of(plan))
