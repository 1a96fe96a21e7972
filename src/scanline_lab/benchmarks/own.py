"""scanline doing a recipe's work, and the limit that it would reach without environments.

Takes a `Work`; gives agent steps per second of a real run (logging and all), and `limit_sps`: the
best rate of the same run, in the same processes and threads and in turns with it, while its
environments stand still. Knows how long to measure, nothing of what is measured.
"""

from __future__ import annotations

from scanline import training
from scanline.parameters import CentralSettings
from scanline.processes import granted_cores
from scanline.recipes import Recipe
from scanline.runners.concurrent import Concurrent
from scanline.samplers import DynamicSettings
from scanline.stores import ReplaySettings, SegmentSettings
from scanline.timing import Limit, Stretch, timed

from .work import Figures, Work

PAIRS = 5
"""So often the run and its limit take turns, if a turn of all learners is not longer.

Once, where a queue lies between acting and learning: what one of them leaves in it, full for the
limit and almost empty for the run, would be the other's work.
"""
REPORTS_SECONDS = 0.3
"""Until every learner in a process of its own has reported what it did before."""


def run(work: Work) -> Figures:
    """Figures of a run of the given length, timed after its warm-up and after its first updates."""
    plan = plan_of(work)
    turn = turn_agent_steps(plan.recipe)
    timing = timed(
        plan,
        warm_up=Stretch(
            agent_steps=max(random_agent_steps(plan.recipe), turn), seconds=work.warm_up_seconds
        ),
        measured=Stretch(agent_steps=2 * turn, seconds=work.seconds),
        limit=limit_of(plan.recipe, work.seconds) if _can_pause(plan) else None,
    )
    return {
        "agent_sps": timing.agent_steps_per_second,
        "raw_fps": timing.raw_frames_per_second,
        "ups": timing.updates_per_second,
        "limit_sps": timing.limit_agent_steps_per_second,
        **({"note": timing.note} if timing.note else {}),
    }


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


def _can_pause(plan: training.Plan) -> bool:
    """Whether all environments can stand still: those of other learners that wait cannot."""
    return plan.learners == 1 or plan.recipe.exchange.is_central


def random_agent_steps(recipe: Recipe) -> int:
    """Steps of a run before its first update; blocks play them before the run begins."""
    store = recipe.store
    if not isinstance(store, ReplaySettings) or isinstance(recipe.pace, Concurrent):
        return 0
    return store.learning_starts_agent_steps


def turn_agent_steps(recipe: Recipe) -> int:
    """Steps in which each of several learners tells once of its own; 0 where there is one."""
    exchange, sampling = recipe.exchange, recipe.sampling
    if not isinstance(exchange, CentralSettings):
        return 0
    learners = exchange.learners or granted_cores()
    return learners * sampling.num_envs * sampling.horizon_agent_steps


def queued_agent_steps(recipe: Recipe) -> int:
    """Steps that may wait to be learned from when the environments begin to stand still."""
    sampling, store = recipe.sampling, recipe.store
    if not isinstance(sampling, DynamicSettings) or not isinstance(store, SegmentSettings):
        return 0
    return store.queue_segments * sampling.rollout_agent_steps * sampling.envs_per_agent


def limit_of(recipe: Recipe, seconds: float) -> Limit:
    """Turns of run and limit, long enough for every learner to report one of its own."""
    turn, queued = turn_agent_steps(recipe), queued_agent_steps(recipe)
    return Limit(
        turn=Stretch(agent_steps=turn, seconds=seconds if queued else seconds / PAIRS),
        settle=Stretch(agent_steps=max(turn, 2 * queued), seconds=REPORTS_SECONDS if turn else 0.0),
    )
