"""Probes: short runs that measure the rates of a plan's parts.

Takes a plan; gives the `Work` of one of its learners, and `Rates` from short, real runs in which
acting and learning take turns, so that each part's time is its own. Runs are thrown away.
Knows no file and no model.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from .. import settings
from ..parameters import Alone
from ..runners.synchronous import Alternate
from ..samplers import SamplingSettings
from ..stores import RolloutSettings
from ..timing import Stretch, Timing, middle_timed
from ..training import Plan
from ..training.placement import Place, cores_of_one, device_of
from .model import Work
from .rates import Curve, Rates

WARM_UP_SECONDS, SECONDS = 1.5, 4.0
"""Of one probe, before and while it is measured."""
REPEATS = 5
"""Stretches of a probe, of which the one in the middle counts."""
_SHORTER = {
    "learning_starts_agent_steps": 2_000,
    "capacity_agent_steps": 20_000,
    "target_agent_steps": 2_000,
    "decorrelation_agent_steps": 0,
}
"""So that a short run learns at all; smaller values stay."""
_QUIET = {"tensorboard": False, "seconds": None, "target_score": None, "init": None}


def work_of(plan: Plan) -> Work:
    """What one learner of a plan does."""
    recipe, place = plan.recipe, Place(0, plan.learners)
    num_envs, steps = place.num_envs(recipe), recipe.sampling.horizon_agent_steps
    own = recipe.store.shared(plan.learners, divides_batch=not recipe.exchange.is_central)
    owed = own.updates(num_envs, steps)
    by_turns = "turns" in recipe.pace.gives
    return Work(
        num_envs=num_envs,
        rollout_agent_steps=steps,
        updates=owed.per_rollout,
        batch_agent_steps=owed.batch_agent_steps,
        num_groups=recipe.sampling.num_groups if by_turns else 1,
        side_by_side=0 if by_turns else recipe.pace.num_network_threads,
        num_cores=cores_of_one(plan),
        network_cores=_network_threads(plan),
        shares_cores=device_of(plan).is_host,
        num_learners=plan.learners,
    )


def _network_threads(plan: Plan) -> int:
    share = max(1, cores_of_one(plan) // plan.recipe.pace.num_network_threads)
    return plan.run.torch_threads or share


def in_turns(plan: Plan, num_envs: int, shorter: Mapping[str, int] = _SHORTER) -> Plan:
    """One learner's work with so many environments, as a run whose parts take turns.

    Network, algorithm, optimiser and protocol stay; a queue becomes a rollout, and waits before the
    first update become `shorter`.
    """
    recipe, cores = plan.recipe, cores_of_one(plan)
    sampling: Any = recipe.sampling
    steps = sampling.horizon_agent_steps
    if "lockstep" not in sampling.gives:
        sampling = SamplingSettings()
    sampling = dataclasses.replace(
        sampling,
        **{"num_envs": num_envs, "num_groups": 1, "rollout_agent_steps": steps},
        **{"rollout_samples": 0, "reset_mode": "inline"},
    )
    store: Any = RolloutSettings()
    if "segments" not in recipe.store.gives:
        central = recipe.exchange.is_central
        store = recipe.store.shared(plan.learners, divides_batch=not central)
    pace = Alternate(target_agent_steps=recipe.pace.target_agent_steps)
    parts = {"sampling": sampling, "store": store, "pace": pace, "exchange": Alone()}
    changed = dataclasses.replace(plan, recipe=dataclasses.replace(recipe, **parts))
    values = {leaf.name: leaf.value for leaf in settings.leaves(changed)}
    less = {name: min(most, values[name]) for name, most in shorter.items() if values.get(name)}
    threads = {
        "num_threads": plan.run.num_threads or cores,
        "torch_threads": _network_threads(plan),
    }
    return settings.override(changed, {**_QUIET, **less, **threads})


def sizes(plan: Plan) -> Sequence[int]:
    """Numbers of environments that are measured: as many as the plan has, and more or fewer."""
    work = work_of(plan)
    if work.side_by_side and "segments" in plan.recipe.store.gives:
        batch = max(1, work.batch_agent_steps // work.rollout_agent_steps)
        return sorted({batch, max(batch + 1, work.num_envs // 2)})
    return [work.num_envs, 4 * work.num_envs]


def measured(plan: Plan, num_envs: Sequence[int], seconds: float) -> Rates:
    """Rates from a probe for each number of environments."""
    found: Rates | None = None
    for number in num_envs:
        new = _probed(in_turns(plan, number), seconds)
        found = new if found is None else found.joined(new)
    assert found is not None
    return found


def _probed(plan: Plan, seconds: float) -> Rates:
    warm_up = Stretch(seconds=WARM_UP_SECONDS, updates=1)
    stretch = Stretch(seconds=seconds / REPEATS, updates=2)
    timing = middle_timed(plan, warm_up=warm_up, measured=stretch, repeats=REPEATS)
    return rates_of(timing, work_of(plan))


def rates_of(timing: Timing, work: Work) -> Rates:
    """The seconds of each call of a part, from a run whose parts took turns."""
    split, calls = timing.split_seconds, timing.agent_steps / work.num_envs
    rollouts = calls / work.rollout_agent_steps

    def curve(size: float, took: float) -> Curve:
        return Curve(((float(size), took),))

    return Rates(
        environment=curve(work.num_envs, split["environment"] / calls),
        acting=curve(work.num_envs, split["acting"] / calls),
        learning=curve(work.batch_agent_steps, split["learning"] / timing.updates),
        other=curve(work.agent_steps, split["other"] / rollouts),
    )
