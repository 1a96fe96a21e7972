"""Remote actors: what each of them is on its node, and the sampler that the learner asks.

Takes a plan as data and an actor's share of the environments; gives rollouts as arrays. Nothing but
numbers, names and arrays travels. Knows how parts are put together and nothing of how they work.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

import numpy as np
import torch

from .. import acting, engines, networks, recipes, settings
from ..cluster import RayActors
from ..errors import RefusedError
from ..recipes import fit
from ..records import Array, Slot, Views
from ..samplers.remote import RemoteSampler, ends_message, state_and_network
from ..samplers.wire import Message, SlotSender
from .context import Context, engine_settings, resumed
from .models import build_network
from .placement import Place
from .plan import Plan, plan_from


def refuse_remote(plan: Plan) -> None:
    """Refuses remote actors that the recipe or its numbers cannot have."""
    recipe, num = plan.recipe, plan.run.remote.remote_actors
    if not num:
        return
    choices = (recipe.pace, recipe.exchange, recipe.sampling, recipe.store, recipe.algorithm)
    fit.refuse_unmet_needs((plan.run.remote, *choices, recipe.optimiser))
    is_one = "turns" in recipe.pace.gives and not recipe.exchange.is_central and plan.learners == 1
    if not is_one or recipe.sampling.reset_mode != "inline":
        raise ValueError(
            f"remote_actors={num} serve one learner that takes turns with them, and start new "
            "games at once; use learners=1, reset_mode='inline' and a recipe such as impala or dqn."
        )
    if not recipe.source:
        raise ValueError("Remote actors find a recipe by its name or file; put it into a file.")
    if recipe.sampling.num_envs % (num * recipe.sampling.num_groups):
        raise ValueError(
            f"num_envs={recipe.sampling.num_envs} do not divide among {num} remote actors with "
            f"num_groups={recipe.sampling.num_groups} each; use a multiple of "
            f"{num * recipe.sampling.num_groups}."
        )


def remote_samplers(context: Context) -> list[RemoteSampler]:
    """Actors of the context's plan on a cluster, behind the interface of one sampler."""
    plan, remote = context.plan, context.plan.run.remote
    record = json.dumps(settings.to_dict(plan))
    engine = engines.version(plan.engine)

    def arguments(number: int, generation: int) -> tuple[Any, ...]:
        return record, engine, number, generation

    actors = RayActors(RemoteActor, arguments, remote, context.announce)
    weights, store = context.acting_weights, cast(Any, context.store)
    return [RemoteSampler(actors, remote, store, weights, context.spaces, context.mark)]


class RemoteActor:
    """One actor: engine, sampler, network and policy for its share of the environments."""

    def __init__(self, record: str, engine: str, number: int, generation: int) -> None:
        """`engine`: the learner's, with its version; `generation`: how often this actor was begun
        before, so that its games are others."""
        plan = resumed(_plan_of(record), generation)
        if engines.version(plan.engine) != engine:
            raise RefusedError(
                f"The learner plays with {engine!r}, this node with "
                f"{engines.version(plan.engine)!r}; install the same version of scanline on both."
            )
        remote, count = plan.run.remote, plan.run.remote.remote_actors
        networks.own_process()
        is_native = plan.run.kernels == "native" and isinstance(plan.recipe.network, str)
        networks.share_cores(remote.actor_cores, is_native)
        num_envs = plan.recipe.sampling.num_envs // count
        workers = 0 if remote.actor_cores == 1 else remote.actor_cores
        own = engine_settings(
            plan,
            num_envs=num_envs,
            first_env_id=number * num_envs,
            num_threads=remote.actor_cores,
            num_workers=workers if plan.run.num_workers is None else plan.run.num_workers,
        )
        context = Context(
            plan=plan, engines=[engines.build(plan.engine, own)], place=Place(number, count)
        )
        algorithm = plan.recipe.schedules()[0]
        self._views = Views(build_network(plan, context.spaces, plan.run.seed))
        self._version = 0
        self._policy = acting.NetworkPolicy(algorithm, lambda: (self._views, self._version))
        self._slot = Slot.allocate(
            context.spaces, context.rollout_agent_steps, num_envs, context.columns
        )
        self._slot.num_learners = count  # they all play at the same time
        self._sampler = plan.recipe.sampling.build(context)
        self._sender = SlotSender(remote.deflate)
        self._sampler.begin()

    def play(self, weights: Mapping[str, Array] | None, version: int, agent_steps: int) -> Message:
        """A rollout with these weights, or with those of the last call, which begins when all
        actors have played so many agent steps."""
        if weights is not None:
            self._load(weights)
        self._version, self._slot.agent_steps = version, agent_steps
        slot = self._sampler.collect(self._policy, into=self._slot)
        return self._sender.pack(slot) | ends_message(self._sampler.drain_episodes())

    def _load(self, weights: Mapping[str, Array]) -> None:
        state, network = state_and_network(weights)
        live = self._views.live
        live.load_state_dict({name: torch.from_numpy(np.array(a)) for name, a in network.items()})
        own = {name: torch.from_numpy(np.array(array)) for name, array in state.items()}
        self._views = Views(live, state=own)


def _plan_of(record: str) -> Plan:
    """The learner's plan, for a node: on its CPU, with weights that come by the wire."""
    given = json.loads(record)
    row = given["recipe"]
    plan = plan_from(given, recipes.find(row["source"], row["source_sha256"]))
    return settings.override(plan, {"device": "cpu", "init": None})
