"""Kept rates: what was measured on this machine, so that the next plan need not wait.

Takes a plan; gives its rates from a file in the user's cache, or measures them and keeps them.
The file is data: what is damaged, of another machine or of another version is measured again.
Knows how rates are named, not how they are measured.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from .. import engines, networks, settings
from ..files import cache_folder, replace_file
from ..machine import machine_record
from ..runs import folder
from ..training import Plan
from ..training.placement import cores_of_one, device_of
from . import probes
from .rates import Rates

_FILE = "rates.json"
_FRESH_SECONDS = 30 * 24 * 3600.0
"""Rates that are older are measured again."""
_FREE = {
    *("num_envs", "num_groups", "rollout_samples", "agent_steps", "seconds", "seed", "init"),
    *("name", "summary", "source", "learning_rate", "target_score", "stop_if_too_slow"),
    *("evaluation_games", "evaluate_every_agent_steps", "pause_games", "pause_agent_steps"),
}
"""Settings that change no rate, or that rates are a function of."""

Say = Callable[[str], None]


def rates_for(plan: Plan, say: Say = print) -> Rates:
    """Rates that cover a plan: kept ones, or measured now in about twenty seconds."""
    key, num_envs = key_of(plan), probes.work_of(plan).num_envs
    kept = _read()
    found = _rates(kept.get(key))
    if found is None or not (found.environment.covers(num_envs) or _is_queue(plan)):
        wanted = probes.sizes(plan) if found is None else [num_envs]
        say(f"Measuring {plan.recipe.name} on {plan.game}: {len(wanted)} short runs ...")
        new = probes.measured(plan, wanted, probes.SECONDS)
        found = new if found is None else found.joined(new)
        _keep(kept | {key: {"measured_at": time.time(), "rates": found.record()}})
    return found


def _is_queue(plan: Plan) -> bool:
    """Whether sizes of a probe are those of batches and not of all environments."""
    return "segments" in plan.recipe.store.gives


def key_of(plan: Plan) -> str:
    """What rates depend on: the machine, versions, and settings of parts."""
    about = {
        "machine": machine_record(),
        "versions": folder.versions(
            engine=engines.version(plan.engine), kernels=networks.FINGERPRINT
        ),
        "device": device_of(plan).name,
        "cores": cores_of_one(plan),
        "settings": [
            (".".join(leaf.path), repr(settings.plain(leaf.value)))
            for leaf in settings.leaves(plan)
            if leaf.name not in _FREE and "output" not in leaf.path
        ],
    }
    return hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()


def _rates(record: Any) -> Rates | None:
    try:
        is_fresh = time.time() - record["measured_at"] < _FRESH_SECONDS
        return Rates.of(record["rates"]) if is_fresh else None
    except (KeyError, TypeError, ValueError):
        return None


def _path() -> Path:
    return cache_folder() / _FILE


def _read() -> dict[str, Any]:
    with suppress(OSError, ValueError, RuntimeError, RecursionError):
        record = json.loads(_path().read_bytes())
        if isinstance(record, dict):
            return record
    return {}


def _keep(record: Mapping[str, Any]) -> None:
    with suppress(OSError, RuntimeError):  # without a cache it is measured again
        _path().parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace_file(_path(), json.dumps(record).encode())
