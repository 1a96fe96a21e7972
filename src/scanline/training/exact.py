"""What an exact resume depends on: reasons against it, and conditions that must stay.

Takes an engine, a plan and versions; gives reasons and plain values for the run's `Exactness`.
Knows neither checkpoint nor loop.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from .. import engines, networks
from ..engines import Engine
from ..runs import folder
from .placement import device_of
from .plan import Plan


def reasons(plan: Plan, engine: Engine) -> list[str]:
    """Why a resumed synchronous run cannot end like one that was never stopped; none if it can."""
    found = []
    if not engine.can_snapshot:
        found += [f"the engine {engine.name!r} has no snapshots of this game and begins new games"]
    if plan.run.remote.remote_actors:
        found += ["remote actors do not wait for each other, and begin new games after a resume"]
    device = device_of(plan)
    if not device.is_host:
        found += [f"sums on the device {device.kind!r} may come in another order"]
    return found


def versions(plan: Plan) -> dict[str, str]:
    """Versions that a run depends on."""
    own = plan.recipe.source_sha256
    parts = {"engine": engines.version(plan.engine), "kernels": networks.FINGERPRINT}
    return folder.versions(**parts, **({"recipe_sha256": own} if own else {}))


def conditions(plan: Plan, versions: Mapping[str, str]) -> dict[str, Any]:
    """What a resumed run must share with the one that it goes on with, besides its settings."""
    return {
        "the span of its schedules in agent steps": plan.recipe.span_agent_steps,
        "the kind of device": device_of(plan).kind,
        "the number of PyTorch threads": torch.get_num_threads(),
        "the processor's instructions": torch.backends.cpu.get_cpu_capability(),
        "versions": versions,
    }
