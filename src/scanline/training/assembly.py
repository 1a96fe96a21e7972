"""Assembly: a plan to the parts of a run.

Takes a `Plan`; gives engine, sampler, store, parameters and policy, wired into a loop.
Knows how parts are put together and nothing of how they work.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar, cast

from .. import acting, engines, interfaces, networks, parameters, processes, protocols, settings
from ..engines import Engine, EngineSettings
from ..interfaces import Saved, Store
from ..parameters import Learners
from ..recipes import Recipe
from ..records import Slot
from ..runners import concurrent, synchronous
from ..runners.alternate import Alternate
from ..runners.concurrent import Concurrent
from ..runners.free_running import FreeRunning
from ..runs import wrappers
from ..runs.game_numbers import GameNumbers
from ..runs.instruments import Instruments
from ..runs.leader import LeaderRun
from ..runs.learners import Exchange, Following, Leading, PerLearner, Shared
from ..runs.limits import Every
from ..runs.replay_segments import ReplayRows
from ..samplers import DeferredResetEngine, LockstepSampler, SamplingSettings, inner_settings
from ..stores import (
    Replay,
    ReplaySettings,
    ReplayShape,
    RolloutSettings,
    RolloutStore,
    WindowSettings,
    WindowStore,
)
from . import exact
from .attachments import Attachments, Mark, Pause
from .learners import cores_of_one
from .models import build_activation_cache, build_learner
from .plan import Plan
from .policies import policy_of

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
            "uneven_seconds": run.uneven_seconds,
            **changes,
        }
    )


def fitting_engines(
    plan: Plan, say: Say, learners: Learners, pause: Pause | None
) -> tuple[list[Engine], Plan]:
    """The engines of one learner, and the plan with the protocol that they can honour."""
    return fitting(plan, say, lambda fitted: build_engines(fitted, learners, pause))


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


def build_engines(plan: Plan, learners: Learners, pause: Pause | None) -> list[Engine]:
    """One engine, or one per environment where each has a thread of its own."""
    num_envs, num = plan.recipe.sampling.num_envs, num_samplers(plan.recipe)
    if num == 1:
        return [build_engine(plan, learners, pause)]
    alone = {"num_envs": num_envs // num, "num_threads": 1, "is_paused": pause}
    return [
        engines.build(plan.engine, engine_settings(plan, first_env_id=env, **alone))
        for env in range(0, num_envs, num_envs // num)
    ]


def build_engine(plan: Plan, learners: Learners, pause: Pause | None) -> Engine:
    """The engine of one learner, with what its resets need around it."""
    wanted = engine_settings(plan, **share(plan, learners), is_paused=pause)
    sampling = plan.recipe.sampling
    if sampling.reset_mode == "inline":
        return engines.build(plan.engine, wanted)
    inner = inner_settings(wanted, sampling.reserves, learners.rank)
    return DeferredResetEngine(engines.build(plan.engine, inner), wanted)


def share(plan: Plan, learners: Learners) -> dict[str, Any]:
    """What of a plan's environments and cores is one learner's."""
    if learners.count == 1:
        return {}
    num_envs, cores = plan.recipe.sampling.num_envs // learners.count, cores_of_one(plan)
    return {
        "num_envs": num_envs,
        "first_env_id": learners.rank * num_envs,
        "num_threads": plan.run.num_threads or cores,
        "num_workers": cores if plan.run.num_workers is None else plan.run.num_workers,
    }


def num_samplers(recipe: Recipe) -> int:
    """Samplers that play side by side, each with an equal block of environments."""
    pace = recipe.pace
    return pace.num_samplers(recipe.sampling.num_envs) if isinstance(pace, Concurrent) else 1


@dataclass(frozen=True)
class Parts:
    """The parts of a run, and the plan that they follow."""

    plan: Plan
    wired: interfaces.Parts
    parameters: parameters.LocalParameters
    samplers: Sequence[LockstepSampler]
    blocks: concurrent.Blocks | None = None
    """What plays and learns where the pace is concurrent."""
    learners: Learners = field(default_factory=Learners)

    @property
    def inexact(self) -> list[str]:
        """Why a resumed run cannot end bit for bit like one that was never stopped."""
        return exact.reasons(self.plan, self.engine)

    @property
    def engine(self) -> Engine:
        return self.samplers[0].engine

    @property
    def protocol(self) -> protocols.Protocol:
        return self.engine.settings.protocol

    def policy(self, agent_steps: int) -> acting.EvaluationPolicy:
        """Plays with the present weights, schedules at so many agent steps."""
        return policy_of(self.plan, self.parameters, agent_steps)

    def note(self) -> dict[str, Any]:
        """What a measurement of this run should tell besides its rates."""
        return {}

    def begin(self, is_resumed: bool) -> None:
        """Starts the games of a run that was not resumed."""
        if is_resumed:
            return
        sampling = self.plan.recipe.sampling
        for sampler in self.samplers:
            sampler.reset(sampling.decorrelation_agent_steps, sampling.decorrelation_draw)
        if self.blocks is not None:
            self.blocks.prepopulate()

    @cached_property
    def numbers(self) -> GameNumbers | None:
        """The games of a run whose samplers or learners count on their own."""
        if self.blocks is not None:
            return self.blocks.numbers
        several = self.learners.count > 1
        return GameNumbers(self.plan.recipe.sampling.num_envs) if several else None

    @cached_property
    def exchange(self) -> Exchange:
        """What this learner tells the others."""
        num_envs = self.engine.settings.num_envs
        return Exchange(self.learners, self.parameters, num_envs)

    @property
    def peers(self) -> Leading | None:
        """The other learners, for the session of the leading one."""
        if self.learners.count == 1 or self.numbers is None:
            return None
        return Leading(self.exchange, self.numbers)

    def loop(self, run: wrappers.LeavableRun) -> None:
        """Acts and learns as long as the run goes on."""
        if self.blocks is not None:
            self.blocks.loop(cast(LeaderRun, run))  # `learners` refuses blocks for several
        else:
            take_turns(self.plan, self.wired, self.parameters, run)

    def saved(self, session: LeaderRun | Following) -> Mapping[str, Saved]:
        """What a checkpoint holds of them, in the order in which learners save and load."""
        others = {f"sampler_{n}": each for n, each in enumerate(self.samplers[1:], start=1)}
        store = saved_store(self.wired.store, session, self.samplers, self.learners)
        own: dict[str, Saved] = {"sampler": self.samplers[0], **others, "store": store}
        shared: Saved = self.parameters
        if self.learners.count > 1:
            sampler = self.samplers[0]
            own = {
                "sampler": PerLearner(sampler, self.learners, anew=sampler.abandon),
                "store": PerLearner(store, self.learners, anew=lambda: None),
            }
            shared = Shared(shared, self.learners)
        if self.learners.leads and self.numbers is not None:
            own["games"] = self.numbers
        if self.blocks is not None:
            own["block"] = self.blocks
        return {**own, "parameters": shared}

    def halt(self) -> None:
        """Ends what learns by itself, before the weights are judged: here nothing does."""

    def close(self) -> None:
        if self.blocks is not None:
            self.blocks.close()
        for sampler in self.samplers:
            sampler.engine.close()


def assemble(
    plan: Plan,
    mark: Mark,
    say: Say = print,
    attachments: Attachments | None = None,
    learners: Learners | None = None,
) -> Parts:
    """Settings to the parts of one learner."""
    learners, attachments = learners or Learners(), attachments or Attachments()
    share_cores(plan, learners)
    with processes.pinned(plan.run.pin_cores):
        built, plan = fitting_engines(plan, say, learners, attachments.pause)
    try:
        return wire(plan, built, mark, say, attachments, learners)
    except BaseException:
        for engine in built:
            engine.close()
        raise


def share_cores(plan: Plan, learners: Learners) -> None:
    """Threads for the network's work, be it done by PyTorch or by the native kernels.

    As many as asked for, or a fair share of the cores where learners would fight for them.
    """
    native = plan.run.kernels == "native" and plan.run.device == "cpu"
    named = isinstance(plan.recipe.network, str)
    granted = cores_of_one(plan) if learners.count > 1 else processes.granted_cores()
    networks.share_cores(plan.run.torch_threads or granted, native and named)


def wire(
    plan: Plan,
    built: Sequence[Engine],
    mark: Mark,
    say: Say,
    attachments: Attachments,
    learners: Learners,
) -> Parts:
    """The engines of a learner with everything around them."""
    recipe, pace = plan.recipe, plan.recipe.pace
    learner = build_learner(plan, built[0].spaces, plan.run.seed, learners, attachments.pause)
    side_by_side = isinstance(pace, Concurrent)
    samplers = [
        LockstepSampler(engine, plan.run.seed, attachments.mark_threads if side_by_side else mark)
        for engine in built
    ]
    algorithm = attachments.around(recipe.schedules()[0])
    wired = interfaces.Parts(
        sampler=samplers[0],
        policy=acting.NetworkPolicy(algorithm, source_of(learner, pace)),
        store=build_store(plan, built[0], say, learners),
        algorithm=algorithm,
        parameters=learner,
    )
    blocks = build_blocks(recipe, wired, learner, samplers)
    return Parts(plan, wired, learner, samplers, blocks, learners)


def take_turns(
    plan: Plan,
    wired: interfaces.Parts,
    learner: parameters.LocalParameters,
    run: wrappers.LeavableRun,
) -> None:
    """The synchronous loop with what the plan wants around its parts."""
    instruments = Instruments(plan.run.instruments, learner.network)
    surrounded = wrappers.reusing(wired, build_activation_cache(plan.recipe, learner))
    run.progress.intervals = [Every(plan.recipe.pace.target_agent_steps, learner.sync_target)]
    watched = wrappers.measured(surrounded, instruments)
    parts = wrappers.in_turns(watched, run, plan.run.instruments.log_intensity)
    run.drain_episodes = wired.sampler.drain_episodes
    if run.progress.turn is not None:  # left by an earlier process
        synchronous.learn(parts, run)
    synchronous.loop(parts, run)


def source_of(learner: parameters.LocalParameters, pace: Pace) -> acting.Source:
    """The weights that act: the live ones, or in blocks the target."""
    if not isinstance(pace, Concurrent):
        return lambda: (learner.views, learner.version)
    return lambda: (
        dataclasses.replace(learner.views, behaviour=learner.views.target),
        learner.target_version,
    )


def build_blocks(
    recipe: Recipe,
    wired: interfaces.Parts,
    learner: parameters.LocalParameters,
    samplers: Sequence[LockstepSampler],
) -> concurrent.Blocks | None:
    """Threads, where the pace asks for them."""
    if not isinstance(recipe.pace, Concurrent):
        return None
    assert isinstance(recipe.store, ReplaySettings)  # a recipe refuses others
    assert isinstance(recipe.sampling, SamplingSettings)
    sizes = concurrent.Blocking.of(recipe.pace, recipe.sampling, recipe.store)
    return concurrent.Blocks(wired, learner, samplers, recipe.pace, sizes)


def build_store(plan: Plan, engine: Engine, say: Say, learners: Learners) -> Store:
    """The store that the kind of its settings asks for, with arrays for one learner."""
    recipe, kind, spaces = plan.recipe, plan.recipe.store, engine.spaces
    if isinstance(kind, ReplaySettings):
        return build_replay(plan, kind, engine, say, learners)
    num_steps, num_envs = recipe.sampling.horizon_agent_steps, engine.settings.num_envs
    num_kept = kind.num_kept_steps if isinstance(kind, WindowSettings) else num_steps
    slot = Slot.allocate(spaces, num_kept, num_envs, recipe.algorithm.columns(spaces))
    slot.num_learners = learners.count
    if isinstance(kind, WindowSettings):
        return WindowStore(slot, kind, num_steps)
    assert isinstance(kind, RolloutSettings)  # segments are those of free-running recipes
    return RolloutStore(slot, kind, plan.run.seed, engine.settings.first_env_id)


def build_replay(
    plan: Plan, kind: ReplaySettings, engine: Engine, say: Say, learners: Learners
) -> Replay:
    """A replay for as many writers as there are samplers."""
    recipe, sampling, spaces = plan.recipe, plan.recipe.sampling, engine.spaces
    staged = recipe.pace.target_agent_steps if isinstance(recipe.pace, Concurrent) else 0
    shape = ReplayShape(
        num_envs=sampling.num_envs // learners.count,
        rollout_agent_steps=sampling.horizon_agent_steps,
        num_writers=num_samplers(recipe),
        staged_agent_steps=staged,
        first_env_id=engine.settings.first_env_id,
        num_learners=learners.count,
    )
    columns = recipe.algorithm.columns(spaces)
    settings_of_one = kind.shared(learners.count)
    return Replay(spaces, shape, settings_of_one, plan.run.seed, columns, announce=say)


def saved_store(
    store: Store,
    session: LeaderRun | Following,
    samplers: Sequence[LockstepSampler],
    learners: Learners,
) -> Saved:
    """The store as a checkpoint holds it: a replay's rows lie in segments."""
    if not isinstance(store, Replay):
        return store
    writers, envs = range(len(samplers)), sum(s.engine.settings.num_envs for s in samplers)
    streams = [session.segments(f"replay-{learners.rank + writer}") for writer in writers]
    rows = session.replay_segment_agent_steps // (envs * learners.count)
    return ReplayRows(store, streams, lambda: all(s.games_go_on for s in samplers), rows)
