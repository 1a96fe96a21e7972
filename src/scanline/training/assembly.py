"""Assembly: a plan to the parts of a run.

Takes a `Plan`; gives engine, sampler, store, parameters and policy, wired into a loop.
Knows how parts are put together and nothing of how they work.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import torch

from .. import acting, engines, networks, parameters, protocols, settings
from ..engines import Engine, EngineSettings
from ..recipes import Recipe
from ..records import Saved, Slot, Spaces, Store
from ..runners import concurrent, off_policy, on_policy
from ..runners.concurrent import Concurrent
from ..runners.free_running import FreeRunning
from ..runners.off_policy import Alternate
from ..runners.replay_rows import ReplayRows
from ..runners.session import Session
from ..samplers import LockstepSampler, SamplingSettings
from ..stores import (
    Replay,
    ReplaySettings,
    ReplayShape,
    RolloutSettings,
    RolloutStore,
    WindowSettings,
    WindowStore,
)
from .plan import Plan

Say = Callable[[str], None]
Built = TypeVar("Built")
Pace = Alternate | Concurrent | FreeRunning


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


def fitting_engines(plan: Plan, say: Say) -> tuple[list[Engine], Plan]:
    """The engines of a plan, and the plan with the protocol that they can honour."""
    return fitting(plan, say, build_engines)


def fitting(plan: Plan, say: Say, build: Callable[[Plan], Built]) -> tuple[Built, Plan]:
    """What is built by a plan, and the plan with the protocol that the engine can honour."""
    try:
        return build(plan), plan
    except engines.ProtocolRefusedError as refusal:
        if plan.run.strict_protocol:
            raise
        say(f"{refusal} This run uses it.")
        plan = settings.override(plan, {"protocol": refusal.nearest})
        return build(plan), plan


def build_engines(plan: Plan) -> list[Engine]:
    """One engine, or one per environment where each has a thread of its own."""
    num_envs, num = plan.recipe.sampling.num_envs, num_samplers(plan.recipe)
    if num == 1:
        return [engines.build(plan.engine, engine_settings(plan))]
    alone = {"num_envs": num_envs // num, "num_threads": 1}
    return [
        engines.build(plan.engine, engine_settings(plan, first_env_id=env, **alone))
        for env in range(0, num_envs, num_envs // num)
    ]


def num_samplers(recipe: Recipe) -> int:
    """Samplers that play side by side, each with an equal block of environments."""
    pace = recipe.pace
    return pace.num_samplers(recipe.sampling.num_envs) if isinstance(pace, Concurrent) else 1


@dataclass(frozen=True)
class Parts:
    """The parts of a run, and the plan that they follow."""

    plan: Plan
    loop: on_policy.Loop
    samplers: Sequence[LockstepSampler]
    blocks: concurrent.Blocks | None = None
    """What plays and learns where the pace is concurrent."""

    is_exact = True
    """Whether a resumed run ends bit for bit like one that was not stopped."""

    @property
    def engine(self) -> Engine:
        return self.loop.sampler.engine

    @property
    def protocol(self) -> protocols.Protocol:
        return self.engine.settings.protocol

    @property
    def parameters(self) -> parameters.LocalParameters:
        return self.loop.parameters

    def begin(self) -> None:
        """Starts the games of a run that was not resumed."""
        for sampler in self.samplers:
            sampler.reset(self.plan.recipe.sampling.decorrelation_agent_steps)
        if self.blocks is not None:
            self.blocks.prepopulate()

    def turn(self, session: Session) -> None:
        """What is repeated as long as the session goes on, by the kind of the recipe's pace."""
        if self.blocks is not None:
            self.blocks.turn(session)
        elif self.loop.parameters.views.target is None:
            on_policy.turn(self.loop, session)
        else:
            off_policy.turn(self.loop, session, self.plan.recipe.pace.target_agent_steps)

    def saved(self, session: Session) -> Mapping[str, Saved]:
        """What a checkpoint holds of them."""
        loop = self.loop
        others = {f"sampler_{n}": each for n, each in enumerate(self.samplers[1:], start=1)}
        numbers = {"games": self.blocks.numbers} if self.blocks is not None else {}
        return {
            "sampler": loop.sampler,
            **others,
            **numbers,
            "store": saved_store(loop.store, session, self.samplers),
            "parameters": loop.parameters,
        }

    def close(self) -> None:
        if self.blocks is not None:
            self.blocks.close()
        for sampler in self.samplers:
            sampler.engine.close()


def assemble(plan: Plan, mark: Callable[[str], Any], say: Say = print) -> Parts:
    """Settings to parts."""
    if plan.run.torch_threads:
        torch.set_num_threads(plan.run.torch_threads)
    built, plan = fitting_engines(plan, say)
    try:
        return wire(plan, built, mark, say)
    except BaseException:
        for engine in built:
            engine.close()
        raise


def wire(plan: Plan, built: Sequence[Engine], mark: Callable[[str], Any], say: Say) -> Parts:
    """The engines of a plan with everything around them."""
    recipe, pace = plan.recipe, plan.recipe.pace
    algorithm = recipe.algorithm.spanning(recipe.agent_steps)
    learner = build_learner(plan, built[0].spaces, plan.run.seed)
    side_by_side = isinstance(pace, Concurrent)
    samplers = [
        LockstepSampler(engine, plan.run.seed, unmarked if side_by_side else mark)
        for engine in built
    ]
    loop = on_policy.Loop(
        sampler=samplers[0],
        policy=acting.NetworkPolicy(algorithm, source_of(learner, pace)),
        store=build_store(plan, built[0].spaces, say),
        algorithm=algorithm,
        parameters=learner,
        learning_rate=recipe.optimiser.schedule(recipe.agent_steps, recipe.sampling.num_envs),
    )
    return Parts(plan, loop, samplers, build_blocks(recipe, loop, samplers))


def unmarked(part: str) -> None:
    """For samplers in threads: a clock splits the time of one thread only."""


def source_of(learner: parameters.LocalParameters, pace: Pace) -> acting.Source:
    """The weights that act: the live ones, or in blocks the target."""
    if not isinstance(pace, Concurrent):
        return lambda: (learner.views, learner.version)
    return lambda: (
        dataclasses.replace(learner.views, behaviour=learner.views.target),
        learner.target_version,
    )


def build_blocks(
    recipe: Recipe, loop: on_policy.Loop, samplers: Sequence[LockstepSampler]
) -> concurrent.Blocks | None:
    """Threads, where the pace asks for them."""
    if not isinstance(recipe.pace, Concurrent):
        return None
    assert isinstance(recipe.store, ReplaySettings)  # a recipe refuses others
    assert isinstance(recipe.sampling, SamplingSettings)
    sizes = concurrent.Blocking.of(recipe.pace, recipe.sampling, recipe.store)
    return concurrent.Blocks(loop, samplers, recipe.pace, sizes)


def build_learner(plan: Plan, spaces: Spaces, seed: int) -> parameters.LocalParameters:
    """Network, optimiser and, where the recipe has one, target."""
    recipe, algorithm = plan.recipe, plan.recipe.algorithm
    network = networks.build(recipe.network, spaces, algorithm.head, seed=seed)
    return parameters.LocalParameters(
        network.to(plan.run.device),
        recipe.optimiser,
        max_grad_norm=recipe.optimiser.max_grad_norm,
        with_target=recipe.pace.target_agent_steps > 0,
        algorithm_state=algorithm.init(spaces),
    )


def build_store(plan: Plan, spaces: Spaces, say: Say, first_env_id: int = 0) -> Store:
    """The store that the kind of its settings asks for, with arrays of its own."""
    recipe, sampling, kind = plan.recipe, plan.recipe.sampling, plan.recipe.store
    columns = recipe.algorithm.columns(spaces)
    num_steps, num_envs = sampling.horizon_agent_steps, sampling.num_envs
    if isinstance(kind, ReplaySettings):
        return build_replay(plan, kind, spaces, say)
    if isinstance(kind, WindowSettings):
        arrays = Slot.allocate(spaces, kind.num_kept_steps, num_envs, columns)
        return WindowStore(arrays, kind, num_steps)
    assert isinstance(kind, RolloutSettings)  # segments are those of free-running recipes
    slot = Slot.allocate(spaces, num_steps, num_envs, columns)
    return RolloutStore(slot, kind, plan.run.seed, first_env_id)


def build_replay(plan: Plan, kind: ReplaySettings, spaces: Spaces, say: Say) -> Replay:
    """A replay for as many writers as there are samplers."""
    recipe, sampling = plan.recipe, plan.recipe.sampling
    staged = recipe.pace.target_agent_steps if isinstance(recipe.pace, Concurrent) else 0
    shape = ReplayShape(
        num_envs=sampling.num_envs,
        rollout_agent_steps=sampling.horizon_agent_steps,
        num_writers=num_samplers(recipe),
        staged_agent_steps=staged,
    )
    columns = recipe.algorithm.columns(spaces)
    return Replay(spaces, shape, kind, plan.run.seed, columns, announce=say)


def saved_store(store: Store, session: Session, samplers: Sequence[LockstepSampler]) -> Saved:
    """The store as a checkpoint holds it: a replay's rows lie in segments."""
    if not isinstance(store, Replay):
        return store
    streams = [session.segments(f"replay-{writer}") for writer in range(len(samplers))]
    return ReplayRows(store, streams, games_go_on=samplers[0].engine.can_snapshot)


def policy_of(
    plan: Plan, learner: parameters.LocalParameters, greedy: bool = False
) -> acting.NetworkPolicy:
    """A policy that plays with a learner's present weights.

    A value learner has no distribution to draw from: it always plays as its evaluation does.
    """
    source = lambda: (learner.views, learner.version)  # noqa: E731
    greedy = greedy or isinstance(plan.recipe.store, ReplaySettings)
    return acting.NetworkPolicy(plan.recipe.algorithm, source, greedy)
