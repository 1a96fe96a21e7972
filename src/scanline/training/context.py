"""The context of a build: what of a plan is one learner's, and the parts that its settings build.

Takes a plan, engines and this learner's place among the others; gives every settings object what it
needs to build its part (`interfaces.BuildContext`), and every pace its parts and what surrounds
them in a run (`interfaces.RuntimeContext`). Knows how parts are put together and nothing of how
they work, and asks no settings for their kind.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import torch

from .. import acting, engines, networks, processes, protocols, random, settings
from ..carried import columns_of
from ..devices import HOST, Device, Places
from ..engines import Engine, EngineSettings
from ..interfaces import Algorithm, Parts, Policy, Sampler, Store
from ..parameters import AllReduce, Learners, RateSettings
from ..recipes import Recipe
from ..records import Column, Spaces, Views
from ..runs import wrappers
from ..runs.instruments import Instruments
from ..runs.limits import Every
from ..samplers import DeferredResetEngine, inner_settings
from . import exact
from .attachments import Attachments, Mark, unmarked
from .models import build_network, learning_options, load_initial
from .placement import Place, cores_of_one, device_of
from .plan import Plan

Say = Callable[[str], None]
Built = TypeVar("Built")


def engine_settings(plan: Plan, **changes: Any) -> EngineSettings:
    """What the engine of a plan is built from."""
    run, sampling = plan.run, plan.recipe.sampling
    return EngineSettings(
        **{
            "game": plan.game,
            "num_envs": sampling.num_envs,
            "num_groups": sampling.num_groups,
            "protocol": plan.protocol,
            "seed": run.seed,
            "num_threads": run.num_threads,
            "num_workers": run.num_workers,
            "reset": run.reset,
            "reset_cache_states": run.reset_cache_states,
            "device": device_of(plan).name,
            "wait_seconds": run.wait_seconds,
            "mode": run.mode,
            "difficulty": run.difficulty,
            "uneven_seconds": run.uneven_seconds,
            **changes,
        }
    )


def local_samplers(context: Context) -> Sequence[Sampler]:
    """A sampler for every engine of this process."""
    is_threaded = context.recipe.pace.acts_with_target
    mark = context.attachments.mark_threads if is_threaded else context.mark
    return [
        context.recipe.sampling.build(dataclasses.replace(context, engines=[engine], mark=mark))
        for engine in context.engines
    ]


@dataclass(frozen=True, eq=False, kw_only=True)
class Context:
    """One learner of a plan; parts are built when they are first asked for."""

    plan: Plan
    engines: Sequence[Engine]
    """One, or one per sampler."""
    place: Place = field(default_factory=Place)
    """Which learner this is, and of how many."""
    group: Learners = field(default_factory=Learners)
    """The learners that divide batches with this one."""
    mark: Mark = unmarked
    announce: Say = print
    attachments: Attachments = field(default_factory=Attachments)
    samplers_of: Callable[[Context], Sequence[Sampler]] = local_samplers
    """Makes the samplers; they play in this process unless it says otherwise."""
    central_fds: tuple[int, int] | None = None
    """Shared memory and locks of the central store, in a learner's process."""

    @property
    def recipe(self) -> Recipe:
        return self.plan.recipe

    @property
    def engine(self) -> Engine:
        return self.engines[0]

    @property
    def spaces(self) -> Spaces:
        return self.engine.spaces

    @property
    def protocol(self) -> protocols.Protocol:
        return self.engine.settings.protocol

    @property
    def seed(self) -> int:
        return self.plan.run.seed

    @property
    def columns(self) -> Mapping[str, Column]:
        return self.recipe.algorithm.columns(self.spaces)

    @cached_property
    def device(self) -> Device:
        return device_of(self.plan, self.place.rank)

    @property
    def places(self) -> Places:
        is_local = not self.plan.run.remote.remote_actors
        is_there = is_local and self.engine.memory == self.device
        in_place = is_there and "device frames" in self.recipe.store.gives
        return Places(self.device, self.device if in_place else HOST)

    @property
    def carried(self) -> Mapping[str, Column]:
        known = isinstance(self.recipe.network, str)  # of a function only what it builds can say
        has_none = known and not networks.has_memory(self.recipe.network)
        return {} if has_none else columns_of(self.network)

    @property
    def num_envs(self) -> int:
        return self.place.num_envs(self.recipe)

    @property
    def first_env_id(self) -> int:
        return self.place.rank * self.num_envs

    @property
    def rollout_agent_steps(self) -> int:
        return self.recipe.sampling.horizon_agent_steps

    @property
    def num_learners(self) -> int:
        return self.place.num_learners

    @property
    def divides_batch(self) -> bool:
        return not self.recipe.exchange.is_central

    @property
    def num_samplers(self) -> int:
        remote = self.plan.run.remote.remote_actors
        return remote or self.recipe.pace.num_samplers(self.num_envs)

    @property
    def staged_agent_steps(self) -> int:
        return self.recipe.pace.staged_agent_steps

    @property
    def inexact(self) -> Sequence[str]:
        return exact.reasons(self.plan, self.engine)

    # What an exchange builds parameters from

    @cached_property
    def network(self) -> torch.nn.Module:
        # Learners of a central store take its weights, whatever they begin with.
        seed = self.seed if self.central_fds is None else 0
        network = build_network(self.plan, self.spaces, seed)
        self.recipe.check_fit(bool(columns_of(network)))
        # Gone is a folder that is no longer needed: a new run was refused without it.
        run = Path(self.plan.run.init or "")
        if self.plan.run.init is not None and self.central_fds is None and run.is_dir():
            load_initial(network, run)
        network = self.device.place(network)
        if self.plan.run.compile:
            networks.compile_forward(network, self._example())
        return network

    def _example(self) -> torch.Tensor:
        """One observation."""
        dtype = getattr(torch, self.spaces.frame_dtype)
        return self.device.zeros((1, *self.spaces.observation_shape), dtype)

    @property
    def optimiser(self) -> RateSettings:
        return self.recipe.optimiser

    @property
    def learning(self) -> Mapping[str, Any]:
        return learning_options(
            self.plan, self.spaces, self.network, self.engine.settings.is_paused
        )

    @property
    def all_reduce(self) -> AllReduce | None:
        return self.group.mean if self.group.count > 1 else None

    # The parts

    @cached_property
    def samplers(self) -> Sequence[Sampler]:
        return self.samplers_of(self)

    @cached_property
    def store(self) -> Store:
        store: Store = self.recipe.store.build(self)
        return store

    @cached_property
    def parameters(self) -> Any:
        """`Parameters`, with what the exchange adds to them."""
        built = self.recipe.exchange.build(self)
        target = built.read().target
        if self.plan.run.compile and target is not None:
            networks.compile_forward(target, self._example())
        return built

    @cached_property
    def algorithm(self) -> Algorithm:
        return self.attachments.around(self.recipe.schedules()[0])

    @cached_property
    def parts(self) -> Parts:
        return Parts(
            sampler=self.samplers[0],
            policy=self._policy(),
            store=self.store,
            algorithm=self.algorithm,
            parameters=self.parameters,
        )

    def _policy(self) -> Policy:
        policy, every_steps = acting.NetworkPolicy, self.recipe.exchange.poll_steps
        if not every_steps:
            return policy(self.algorithm, self.acting_weights)
        poll = acting.PollEvery(self.parameters.pull, every_steps)
        return policy(self.algorithm, self.acting_weights, poll=poll)

    def acting_weights(self) -> tuple[Views, int]:
        """What acts now, and the updates in it."""
        views, parameters = self.parameters.read(), self.parameters
        if not self.recipe.pace.acts_with_target:
            return views, parameters.version
        return dataclasses.replace(views, behaviour=views.target), parameters.target_version

    # What surrounds them in a run

    def surround(self, parts: Parts, run: wrappers.LeavableRun) -> Parts:
        target = Every(self.recipe.pace.target_agent_steps, self.parameters.sync_target)
        run.progress.intervals = [target]
        run.drain_episodes = parts.sampler.drain_episodes
        wanted = self.plan.run.instruments
        measured = wrappers.measured(self._reusing(parts), Instruments(wanted, self.network))
        return wrappers.in_turns(measured, run, wanted.log_intensity)

    def _reusing(self, parts: Parts) -> Parts:
        """A rollout that is learned from once and whole needs no second pass to the same inputs."""
        is_once = "one pass" in self.recipe.store.gives and not parts.parameters.read().state
        rows = self.recipe.sampling.num_envs * self.rollout_agent_steps
        cache = networks.ActivationCache(self.network, rows if is_once else 0)
        return wrappers.reusing(parts, cache)

    def in_blocks(self, run: Any) -> Any:
        return wrappers.InBlocks(run)

    def renewed(self, num_resumes: int) -> Context:
        plan = resumed(self.plan, num_resumes)
        self.close()
        built = build_engines(plan, self.place, self.attachments.pause)
        return dataclasses.replace(self, plan=plan, engines=built)

    def close(self) -> None:
        for part in (*self.engines, *vars(self).get("samplers", ())):
            getattr(part, "close", lambda: None)()


def open_context(
    plan: Plan,
    *,
    place: Place | None = None,
    announce: Say = print,
    attachments: Attachments | None = None,
    **more: Any,
) -> Context:
    """The context of a learner whose engines are built, after its share of the cores is set."""
    place, attachments = place or Place(), attachments or Attachments()
    share_cores(plan)
    if plan.run.remote.remote_actors:
        return probe_context(plan, announce, attachments, place=place, **more)
    with processes.pinned(plan.run.pin_cores):
        built, plan = fitting(
            plan, announce, lambda each: build_engines(each, place, attachments.pause)
        )
    more |= {"place": place, "announce": announce, "attachments": attachments}
    return Context(plan=plan, engines=built, **more)


def probe_context(
    plan: Plan,
    announce: Say,
    attachments: Attachments | None = None,
    place: Place | None = None,
    **more: Any,
) -> Context:
    """For a process that plays nothing itself: one environment was asked for its spaces and closed.

    The engine of the context has the plan's settings, and only those.
    """
    one = {"num_envs": 1, "num_groups": 1, "num_workers": 0, "num_threads": 1}
    probed, plan = fitting(
        plan, announce, lambda each: engines.build(each.engine, engine_settings(each, **one))
    )
    probed.close()
    place = place or Place()
    probed.settings = engine_settings(plan, **place.engine_changes(plan))
    more |= {"announce": announce, "attachments": attachments or Attachments(), "place": place}
    return Context(plan=plan, engines=[probed], **more)


def fitting(plan: Plan, announce: Say, build: Callable[[Plan], Built]) -> tuple[Built, Plan]:
    """What is built by a plan, and the plan with the protocol that the engine can honour."""
    try:
        return build(plan), plan
    except engines.ProtocolRefusedError as refusal:
        if plan.run.strict_protocol:
            raise
        announce(f"{refusal} This run uses it.")
        plan = settings.override(plan, {"protocol": refusal.nearest})
        return build(plan), plan


def resumed(plan: Plan, num_resumes: int) -> Plan:
    """The plan with other games, for a run whose games cannot go on after a resume."""
    if not num_resumes:
        return plan
    seed = int(random.seeds(plan.run.seed, "resumed", [num_resumes])[0])
    return settings.override(plan, {"seed": seed})


def build_engines(
    plan: Plan, place: Place, is_paused: Callable[[], bool] | None = None
) -> list[Engine]:
    """One engine, or one per environment where each has a thread of its own."""
    sampling = plan.recipe.sampling
    num = plan.recipe.pace.num_samplers(sampling.num_envs)
    own = place.engine_changes(plan) | {"is_paused": is_paused}
    if num > 1:
        size = sampling.num_envs // num
        own |= {"num_envs": size, "num_threads": 1}
        starts = range(0, sampling.num_envs, size)
        wanted = [engine_settings(plan, **own, first_env_id=start) for start in starts]
        return [engines.build(plan.engine, each) for each in wanted]
    wanted_one = engine_settings(plan, **own)
    if sampling.reset_mode == "inline":
        return [engines.build(plan.engine, wanted_one)]
    inner = inner_settings(wanted_one, sampling.reserves, place.rank)
    return [DeferredResetEngine(engines.build(plan.engine, inner), wanted_one)]


def share_cores(plan: Plan) -> None:
    """Threads for the network's work, be it done by PyTorch or by the native kernels.

    As many as asked for, or a fair share of the cores where learners or threads would compete.
    """
    native = plan.kernels == "native" and device_of(plan).is_host
    known = networks.has_kernels(plan.recipe.network)
    threads = max(1, cores_of_one(plan) // plan.recipe.pace.num_network_threads)
    networks.share_cores(plan.run.torch_threads or threads, native and known)
