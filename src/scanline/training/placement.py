"""Where a learner runs: its share of environments, cores and devices.

Takes a plan and a learner's rank; gives numbers of environments, threads and workers, a device, and
cores to stay on. Knows no part and no way of starting processes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from .. import devices, processes
from ..devices import Device
from ..recipes import Recipe
from .plan import Plan


def under_torchrun() -> bool:
    """Whether torchrun started this process."""
    return "TORCHELASTIC_RUN_ID" in os.environ


@dataclass(frozen=True)
class Place:
    """One learner among several."""

    rank: int = 0
    num_learners: int = 1

    def num_envs(self, recipe: Recipe) -> int:
        """Its environments: those of the recipe, or its share where learners divide them."""
        num_envs = recipe.sampling.num_envs
        return num_envs if recipe.exchange.is_central else num_envs // self.num_learners

    def engine_changes(self, plan: Plan) -> dict[str, Any]:
        """What of an engine's settings is this learner's own."""
        is_central = plan.recipe.exchange.is_central
        if self.num_learners == 1 and not is_central:
            return {}
        run, num_envs, cores = plan.run, self.num_envs(plan.recipe), cores_of_one(plan)
        workers = 0 if is_central and num_envs == 1 else cores
        return {
            "num_envs": num_envs,
            "first_env_id": self.rank * num_envs,
            "num_threads": run.num_threads or cores,
            "num_workers": workers if run.num_workers is None else run.num_workers,
            "device": device_of(plan, self.rank).name,
        }


def cores_of_one(plan: Plan) -> int:
    """Cores for each learner on this machine."""
    granted = processes.granted_cores()
    if plan.run.pin_cores and not plan.recipe.exchange.is_central:
        return granted  # it stays on its own
    return max(1, granted // learners_here(plan))


@contextmanager
def own_cores(plan: Plan, rank: int) -> Iterator[None]:
    """Where cores are pinned, this thread and those that it starts stay on the learner's share."""
    granted = processes.granted_core_ids()
    if plan.run.pin_cores:
        processes.bind(0, _share(plan, rank, granted))
    try:
        yield
    finally:
        if plan.run.pin_cores:
            processes.bind(0, granted)


def _share(plan: Plan, rank: int, granted: Sequence[int]) -> Sequence[int]:
    """Cores of one learner, next to its GPU where it has one: divided with those beside it."""
    near = set(device_of(plan, rank).near_cores()) & set(granted)
    cores = [core for core in granted if core in near] or granted
    size = max(1, len(granted) // learners_here(plan))
    first = local_rank(rank) * size % len(cores)
    return cores[first : first + size]


def device_of(plan: Plan, rank: int = 0) -> Device:
    """Learners take one device of a kind after the other; one with a number is for all."""
    name = devices.resolved(plan.run.device)
    number = local_rank(rank) % devices.count(name)
    return Device(name if ":" in name or name in ("cpu", "mps") else f"{name}:{number}")


def learners_here(plan: Plan) -> int:
    """Learners of the plan on this machine."""
    return int(os.environ["LOCAL_WORLD_SIZE"]) if under_torchrun() else plan.learners


def local_rank(rank: int) -> int:
    """A learner's number among those of this machine."""
    return int(os.environ["LOCAL_RANK"]) if under_torchrun() else rank
