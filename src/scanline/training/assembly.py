"""Assembly: a plan to the parts of a run.

Takes a `Plan`; gives engine, sampler, store, parameters and policy, wired into a loop.
Knows how parts are put together and nothing of how they work.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from .. import acting, engines, networks, parameters, protocols, settings
from ..engines import Engine, EngineSettings
from ..records import Saved, Slot, Spaces, Store
from ..runners import on_policy
from ..samplers import LockstepSampler
from ..stores import RolloutStore, WindowSettings, WindowStore
from .plan import Plan

Say = Callable[[str], None]


def engine_settings(plan: Plan, **changes: Any) -> EngineSettings:
    """What the engine of a plan is built from."""
    run, sampling = plan.run, plan.recipe.sampling
    return EngineSettings(
        **{
            "game": plan.game,
            "num_envs": sampling.num_envs,
            "num_groups": sampling.num_groups,
            "protocol": protocols.get(plan.recipe.protocol),
            "seed": run.seed,
            "num_threads": run.num_threads,
            "num_workers": run.num_workers,
            "reset": run.reset,
            "mode": run.mode,
            "difficulty": run.difficulty,
            **changes,
        }
    )


def fitting_engine(plan: Plan, say: Say) -> tuple[Engine, Plan]:
    """The engine of a plan, and the plan with the protocol that the engine can honour."""
    try:
        return engines.build(plan.engine, engine_settings(plan)), plan
    except engines.ProtocolRefusedError as refusal:
        if plan.run.strict_protocol:
            raise
        say(f"{refusal} This run uses it.")
        plan = settings.override(plan, {"protocol": refusal.nearest})
        return engines.build(plan.engine, engine_settings(plan)), plan


@dataclass(frozen=True)
class Parts:
    """The parts of a synchronous run, and the plan that they follow."""

    plan: Plan
    engine: Engine
    loop: on_policy.Loop

    @property
    def saved(self) -> Mapping[str, Saved]:
        """What a checkpoint holds of them."""
        loop = self.loop
        return {"sampler": loop.sampler, "store": loop.store, "parameters": loop.parameters}


def assemble(plan: Plan, mark: Callable[[str], Any], say: Say = print) -> Parts:
    """Settings to parts."""
    if plan.run.torch_threads:
        torch.set_num_threads(plan.run.torch_threads)
    engine, plan = fitting_engine(plan, say)
    try:
        return Parts(plan, engine, _loop(plan, engine, mark))
    except BaseException:
        engine.close()
        raise


def _loop(plan: Plan, engine: Engine, mark: Callable[[str], Any]) -> on_policy.Loop:
    recipe, run, sampling = plan.recipe, plan.run, plan.recipe.sampling
    algorithm, spaces = recipe.algorithm.spanning(recipe.agent_steps), engine.spaces
    network = networks.build(recipe.network, spaces, algorithm.head, seed=run.seed)
    learner = parameters.LocalParameters(
        network.to(run.device),
        recipe.optimiser,
        max_grad_norm=recipe.optimiser.max_grad_norm,
        algorithm_state=algorithm.init(spaces),
    )
    return on_policy.Loop(
        sampler=LockstepSampler(engine, run.seed, mark),
        policy=acting.NetworkPolicy(algorithm, lambda: (learner.views, learner.version)),
        store=build_store(plan, spaces),
        algorithm=algorithm,
        parameters=learner,
        learning_rate=recipe.optimiser.schedule(recipe.agent_steps, sampling.num_envs),
    )


def build_store(plan: Plan, spaces: Spaces) -> Store:
    """The store that a recipe's settings name, with arrays of its own."""
    recipe, sampling = plan.recipe, plan.recipe.sampling
    columns, steps = recipe.algorithm.columns(spaces), sampling.horizon_agent_steps
    if isinstance(recipe.store, WindowSettings):
        arrays = Slot.allocate(spaces, recipe.store.num_kept_steps, sampling.num_envs, columns)
        return WindowStore(arrays, recipe.store, steps)
    slot = Slot.allocate(spaces, steps, sampling.num_envs, columns)
    return RolloutStore(slot, recipe.store, plan.run.seed)


def policy_of(
    plan: Plan, learner: parameters.LocalParameters, greedy: bool = False
) -> acting.NetworkPolicy:
    """A policy that acts with a learner's present weights."""
    source = lambda: (learner.views, learner.version)  # noqa: E731
    return acting.NetworkPolicy(plan.recipe.algorithm, source, greedy)
