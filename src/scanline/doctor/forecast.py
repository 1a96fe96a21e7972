"""The forecast of a run: what `train --plan` prints instead of training.

Takes a plan; gives steps per second, hours, where the time goes, and memory. Knows the order of
these sentences; the model, the rates and the sizes are others'.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .. import memory
from ..memory import Share
from ..training import Plan, footprint, learners
from ..training.placement import device_of
from . import kept_rates
from .model import Prediction, predicted
from .probes import work_of

Say = Callable[[str], None]


@dataclass(frozen=True)
class Forecast:
    """What a plan will take and reach on this machine."""

    plan: Plan
    prediction: Prediction
    shares: list[Share]
    free_bytes: dict[str, float]

    @property
    def seconds(self) -> float:
        """Training time until the agent steps are done, or the plan's own limit."""
        needed = self.plan.recipe.agent_steps / self.prediction.agent_steps_per_second
        return min(needed, self.plan.run.seconds or needed)

    def lines(self) -> list[str]:
        rate, total = self.prediction.agent_steps_per_second, sum(self.prediction.seconds.values())
        split = ", ".join(
            f"{part} {took / total:.0%}" for part, took in self.prediction.seconds.items()
        )
        steps = self.plan.recipe.agent_steps
        return [
            f"{self.plan.recipe.name} on {self.plan.game}, device {device_of(self.plan).name}:",
            f"About {rate:,.0f} agent steps/s; {duration(self.seconds)} for {steps:,} agent steps.",
            f"Time: {split}; {self.prediction.limit} limits.",
            memory.told(self.shares, self.free_bytes),
            "Nothing was trained; leave out --plan to begin.",
        ]


def forecast(plan: Plan, say: Say = print) -> Forecast:
    """Measures what is not known of this machine, and computes the rest."""
    plan = learners.placed(plan)
    shares, free = footprint.shares(plan), footprint.free_bytes(plan)
    memory.told(shares, free)  # refused before anything is measured
    return Forecast(plan, predicted(kept_rates.rates_for(plan, say), work_of(plan)), shares, free)


def duration(seconds: float) -> str:
    """In the unit that a person would choose."""
    for unit, size in (("days", 86_400.0), ("hours", 3_600.0), ("minutes", 60.0)):
        if seconds >= 2 * size:
            return f"{seconds / size:,.1f} {unit}"
    return f"{seconds:,.0f} seconds"
