"""scanline doing a recipe's work, and the limit that its network alone would reach.

Takes a `Work`; gives agent steps per second of a real run (logging and all), and `limit_sps`: the
rate of acting and learning on ready data in the same process, with no environment and no draws.
Knows the loop's parts, not their insides.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import torch
from torch import Tensor

from .. import settings, training
from ..networks import share_cores_here
from ..parameters import CentralSettings
from ..processes import granted_cores
from ..recipes import Recipe
from ..records import Batch
from ..runners.clock import Spans
from ..runners.concurrent import Concurrent
from ..runners.on_policy import Loop
from ..stores import Replay, ReplaySettings
from .work import Figures, Work

Job = Callable[[], None]

PLAYED_AGENT_STEPS = 100
"""Of every environment before the rollout that a limit is measured on. How much of a picture the
kernels must compute depends on what is in it."""


def run(work: Work) -> Figures:
    """Figures of a whole run, then of its network alone."""
    return {**whole_run(work), "limit_sps": limit(work)}


def plan_of(work: Work) -> training.Plan:
    return training.make_plan(
        work.recipe,
        work.game,
        engine=work.engine,
        num_threads=work.num_threads,
        torch_threads=work.torch_threads,
        uneven_seconds=work.uneven_seconds,
        **work.settings,
    )


def whole_run(work: Work) -> Figures:
    """A run of the given length, timed after its warm-up and after its first updates."""
    plan = plan_of(work)
    store = plan.recipe.store
    random = store.learning_starts_agent_steps if isinstance(store, ReplaySettings) else 0
    if isinstance(plan.recipe.pace, Concurrent):
        random = 0  # they are played before the run begins
    turn = turn_agent_steps(plan.recipe)
    timing = training.timed(
        plan,
        warm_up=training.Stretch(agent_steps=max(random, turn), seconds=work.warm_up_seconds),
        measured=training.Stretch(agent_steps=2 * turn, seconds=work.seconds),
    )
    return {
        "agent_sps": timing.agent_steps_per_second,
        "raw_fps": timing.raw_frames_per_second,
        "ups": timing.updates_per_second,
        **({"note": timing.note} if timing.note else {}),
    }


def turn_agent_steps(recipe: Recipe) -> int:
    """Steps in which each of several learners tells once of its own; 0 where there is one."""
    exchange, sampling = recipe.exchange, recipe.sampling
    if not isinstance(exchange, CentralSettings):
        return 0
    num_learners = exchange.num_learners or granted_cores()
    return num_learners * sampling.num_envs * sampling.horizon_agent_steps


def limit(work: Work) -> float:
    """Agent steps per second of acting and learning on data that are already there."""
    plan = settings.override(training.synchronous(plan_of(work)), {"live": False})
    parts = training.assemble(plan, Spans().mark, say=lambda sentence: None)
    try:
        if isinstance(parts.loop.store, Replay):
            return replay_limit(parts, work.seconds / 2)
        return rollout_limit(parts.loop, work.seconds / 2)
    finally:
        parts.close()


def rollout_limit(loop: Loop, seconds: float) -> float:
    """One rollout from the midst of play, acted and learned from again and again."""
    loop.sampler.reset()
    slot = loop.sampler.collect(loop.policy, into=loop.store.slot())
    for _ in range(PLAYED_AGENT_STEPS // slot.num_steps):
        slot = loop.sampler.collect(loop.policy, into=slot)
    uniforms = torch.rand((slot.actions.shape[1], 2))

    def turn() -> None:
        with loop.memory.keeping():
            for t in range(slot.num_steps):
                loop.policy(slot.observation(t), uniforms, 0)
            with torch.no_grad():
                loop.store.put(loop.algorithm.prepare(loop.parameters.views, slot))
        for batch in loop.store.batches():
            _update(loop, batch)

    return slot.actions.numel() * turns_per_second(turn, seconds)


def replay_limit(parts: training.Parts, seconds: float) -> float:
    """Rounds of acting and the updates that they owe, from one batch that was drawn before.

    Learning runs beside acting where the recipe lets it, and every sampler acts in a thread of its
    own where it has one.
    """
    loop, recipe = parts.loop, parts.plan.recipe
    assert isinstance(recipe.store, ReplaySettings)
    batch, observations = _ready(parts)
    pace, kind = recipe.pace, recipe.store
    num_steps = pace.target_agent_steps if isinstance(pace, Concurrent) else 4 * kind.batch_size
    num_updates = round(num_steps * kind.training_intensity / kind.batch_size)
    uniforms = torch.rand((len(observations), 2))
    calls = num_steps // recipe.sampling.num_envs

    def act() -> None:
        for _ in range(calls):
            loop.policy(observations, uniforms, 0)

    def learn() -> None:
        for _ in range(num_updates):
            _update(loop, batch)

    beside = isinstance(pace, Concurrent) and pace.concurrent_training

    def turn() -> None:
        side_by_side([act] * len(parts.samplers) + [learn] * beside)
        if not beside:
            learn()

    rate = turns_per_second(turn, seconds)
    return calls * recipe.sampling.num_envs * rate


def _ready(parts: training.Parts) -> tuple[Batch, Tensor]:
    """A batch, and what one sampler sees at a step."""
    loop, store = parts.loop, parts.loop.store
    assert isinstance(store, Replay)
    for sampler in parts.samplers:
        sampler.reset()
    while not store.num_drawable:
        for writer, sampler in enumerate(parts.samplers):
            slot = sampler.collect(loop.policy, into=store.slot(writer))
            store.put(loop.algorithm.prepare(loop.parameters.views, slot))
        store.commit()
    return store.sample(), store.slot().observation(0).clone()


def _update(loop: Loop, batch: Batch) -> None:
    """All of an update's work, at a rate of 0: the weights stay those of a run's beginning.

    Learned from again and again, one batch would lead them where no run goes.
    """
    with loop.memory.recalling():
        result = loop.algorithm.loss(loop.parameters.views, batch)
    loop.parameters.apply(result.losses, 0.0)


def side_by_side(jobs: list[Job]) -> None:
    """All jobs at once, one of them in this thread."""

    def here(job: Job) -> None:
        share_cores_here()
        job()

    threads = [threading.Thread(target=here, args=(job,), daemon=True) for job in jobs[1:]]
    for thread in threads:
        thread.start()
    jobs[0]()
    for thread in threads:
        thread.join()


def turns_per_second(turn: Job, seconds: float) -> float:
    """After one turn that warms up."""
    turn()
    num, begun, elapsed = 0, time.perf_counter(), 0.0
    while elapsed < seconds:
        turn()
        num, elapsed = num + 1, time.perf_counter() - begun
    return num / elapsed
