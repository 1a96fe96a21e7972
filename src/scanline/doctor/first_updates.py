"""The first updates of a recipe, watched: what checks compare between devices and runs.

Takes a plan whose parts take turns; gives losses and weights after a few updates, without folder,
log or checkpoint. Knows the loop and no algorithm.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace

import numpy as np
import torch

from .. import devices, networks, settings
from ..interfaces import Metric
from ..records import Array, Slot
from ..runners import synchronous
from ..runs.clock import TimeSplit
from ..runs.wrappers import TimedAlgorithm
from ..training import Plan
from ..training.context import open_context
from .probes import in_turns

UPDATES = 3
_SMALL = {
    "learning_starts_agent_steps": 64,
    "capacity_agent_steps": 2_000,
    "target_agent_steps": 40,
    "decorrelation_agent_steps": 0,
}


def small(plan: Plan, **changes: object) -> Plan:
    """A plan's work with as few environments as its batches allow, in turns."""
    return settings.override(in_turns(plan, _fewest(plan), _SMALL), changes)


def _fewest(plan: Plan) -> int:
    """Few, so that the first updates come soon; 40 have all blocks that 120 and more have."""
    own = plan.recipe.sampling.num_envs
    return 40 if own > 40 and own % 40 == 0 else min(own, 32)


class _Enough(Exception):
    """There were enough updates, in the midst of those that a rollout is owed."""


@dataclass
class WatchedRun:
    """A `Run` that keeps losses and ends after some updates."""

    num_updates: int
    leaves_turn: bool = True
    """Whether it ends in the midst of what a rollout is owed."""
    losses: list[dict[str, float]] = field(default_factory=list)

    def goes_on(self) -> bool:
        return len(self.losses) < self.num_updates

    def collected(self, slot: Slot) -> None:
        slot.agent_steps = slot.agent_steps_after

    def updated(self, metrics: Mapping[str, Metric], norms: Mapping[str, Metric]) -> None:
        found = {n: float(v) for n, v in metrics.items() if n.startswith("losses/")}
        self.losses.append(found)
        if self.leaves_turn and not self.goes_on():
            raise _Enough


@dataclass(frozen=True)
class FirstUpdates:
    """What the first updates came to."""

    losses: list[dict[str, float]]
    begun: dict[str, Array]
    """Weights before them."""
    weights: dict[str, Array]
    """Weights after them."""

    def differs_by(self, other: FirstUpdates) -> float:
        """The mean distance of both runs' weights over the mean distance that they went."""
        went = sum(float(np.abs(w - self.begun[n]).sum()) for n, w in self.weights.items())
        apart = sum(float(np.abs(w - other.weights[n]).sum()) for n, w in self.weights.items())
        return apart / went if went else float(apart > 0)

    def losses_differ_by(self, other: FirstUpdates) -> float:
        """The largest difference of a loss, relative where losses are above 1."""
        pairs = zip(self.losses, other.losses, strict=True)
        return max(
            (abs(a[n] - b[n]) / max(1.0, abs(a[n])) for a, b in pairs for n in a), default=0.0
        )

    def equals(self, other: FirstUpdates) -> bool:
        return all(np.array_equal(w, other.weights[n]) for n, w in self.weights.items())


def first_updates(plan: Plan) -> FirstUpdates:
    """Carries out the first updates of a plan whose parts take turns."""
    run = WatchedRun(UPDATES)
    with (
        networks.threads_restored(),
        closing(open_context(plan, announce=lambda sentence: None)) as context,
    ):
        parts, begun = context.parts, _weights(context.network)
        timed = TimedAlgorithm(parts.algorithm, TimeSplit())
        parts.sampler.begin()
        with suppress(_Enough):
            synchronous.loop(replace(parts, algorithm=timed), run)
        return FirstUpdates(run.losses, begun, _weights(context.network))


def _weights(network: torch.nn.Module) -> dict[str, Array]:
    return {n: devices.download(each).copy() for n, each in network.state_dict().items()}
