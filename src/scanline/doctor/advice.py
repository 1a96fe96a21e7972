"""Advice: how fast the parts are here, what will limit a run, and the settings to use.

Takes a game and a device; gives a record of figures, and recommended settings with the reason of
each. Knows the rates and the model; prints nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .. import engines, training
from ..devices import Device
from ..processes import granted_cores
from . import figures, probes
from .model import predicted
from .rates import Rates

RECIPE = "paac"
"""Its parts are measured: one decision per step and one update per rollout."""
_ENOUGH = 0.9
"""Share of the highest rate that fewer environments may have."""


@dataclass(frozen=True)
class Advice:
    """What was measured, and what follows from it."""

    figures: Mapping[str, Any]
    sizes: Sequence[Mapping[str, float]]
    """A row per number of environments: rates of the parts, and of the run."""
    limit: str
    """The part that takes longest with the recommended settings."""
    recommended: Mapping[str, Any]
    """Settings by name."""


def advice(game: str, device: Device, num_envs: Sequence[int], seconds: float) -> Advice:
    """Measures the parts of a run on a device, for these numbers of environments."""
    engine = engines.default_name(game)
    choices = {"device": device.name, "engine": engine, "kernels": "native"}
    if game == engines.TOY:
        choices |= {"network": "mlp"}
    plan = training.make_plan(RECIPE, game, **choices)
    rates = probes.measured(plan, num_envs, seconds)
    rows = [_row(plan, rates, number) for number in num_envs]
    kernels = _kernels(plan, rates, num_envs[len(num_envs) // 2], seconds)
    highest = max(row["agent_steps_per_second"] for row in rows)
    chosen = next(r for r in rows if r["agent_steps_per_second"] >= _ENOUGH * highest)
    best = {"num_envs": int(chosen["num_envs"]), "num_threads": granted_cores()}
    work = replace(probes.work_of(plan), **_sized(plan, best["num_envs"]))
    return Advice(
        {
            "launch_seconds": figures.launch_seconds(device),
            "decision_seconds": figures.wait_seconds(device),
            "copy_bytes_per_second": figures.copy_bytes_per_second(device),
            "emulator_agent_steps_per_core_second": figures.emulator_steps_per_second(game, engine),
        },
        rows,
        predicted(rates, work).limit,
        choices | best | {"kernels": kernels},
    )


def _sized(plan: training.Plan, num_envs: int) -> dict[str, Any]:
    """What of a learner's work follows from the number of environments."""
    owed = plan.recipe.store.updates(num_envs, plan.recipe.sampling.horizon_agent_steps)
    return {
        "num_envs": num_envs,
        "updates": owed.per_rollout,
        "batch_agent_steps": owed.batch_agent_steps,
    }


def _row(plan: training.Plan, rates: Rates, num_envs: int) -> dict[str, float]:
    work = replace(probes.work_of(plan), **_sized(plan, num_envs))
    batch = work.batch_agent_steps
    return {
        "num_envs": num_envs,
        "environment_per_second": num_envs / rates.environment.at(num_envs),
        "acting_per_second": num_envs / rates.acting.at(num_envs),
        "learning_per_second": batch / rates.learning.at(batch),
        "agent_steps_per_second": predicted(rates, work).agent_steps_per_second,
    }


def _kernels(plan: training.Plan, native: Rates, num_envs: int, seconds: float) -> str:
    """Whose matrix work is faster here; PyTorch's on a device."""
    if not probes.work_of(plan).shares_cores:
        return "torch"
    torch_plan = training.changed_plan(plan, {"kernels": "torch"})
    torch_rates = probes.measured(torch_plan, [num_envs], seconds)
    work = replace(probes.work_of(plan), **_sized(plan, num_envs))
    is_faster = predicted(torch_rates, work).agent_steps_per_second > (
        predicted(native, work).agent_steps_per_second
    )
    return "torch" if is_faster else "native"
