"""How long a sweep will take on this machine, and how much disk.

Takes cells; gives hours and bytes, from a short run of each recipe, game and network that is thrown
away. Rates are kept in the user's state directory, so the next sweep need not wait.
Knows no queue.

A short run sees neither a full replay nor a trained agent's longer games: take it as a guess.
"""

from __future__ import annotations

import hashlib
import json
import platform
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .. import settings, training
from ..files import replace_file
from ..recipes import trust
from ..reports import runs as reports
from ..training import Plan
from .cells import VERSION, Cell

SECONDS = 5.0
"""Training time of a short run."""
_FILE = "rates.json"
_SHORTER = {
    "learning_starts_agent_steps": 2_000,
    "capacity_agent_steps": 20_000,
    "decorrelation_agent_steps": 0,
    "target_agent_steps": 2_000,
}
"""So that a short run learns at all; smaller values stay."""
_QUIET = {
    "live": False,
    "tensorboard": False,
    "save_every_minutes": 0,
    "replay_segment_agent_steps": 0,
    "log_every_agent_steps": 1,
}


@dataclass(frozen=True)
class Rate:
    """What a short run has shown."""

    agent_steps_per_second: float
    checkpoint_bytes: int
    replay_bytes_per_agent_step: float


@dataclass(frozen=True)
class Prediction:
    """What cells need together."""

    hours: float
    """With all slots of this machine busy."""
    running_bytes: int
    """While as many runs are under way as there are slots."""
    kept_bytes: int
    """When all are done."""

    def sentence(self, slots: int) -> str:
        return (
            f"About {self.hours:,.1f} hours on this machine with {slots} runs side by side, "
            f"{_size(self.kept_bytes)} of disk when all are done and {_size(self.running_bytes)} "
            "more while they run."
        )


def predict(cells: Sequence[Cell], slots: int, say: Callable[[str], None]) -> Prediction:
    """Hours and bytes of these cells; runs what was not measured before."""
    rates = _kept()
    for cell in cells:
        if (key := _key(cell)) not in rates:
            say(f"Timing {cell.recipe} on {cell.game} for {SECONDS:g} seconds ...")
            rates[key] = measured(cell.plan(), SECONDS)
            _keep(rates)
    found = [(cell.plan(), rates[_key(cell)]) for cell in cells]
    total = sum(_seconds(plan, rate) for plan, rate in found)
    running = sorted((_running_bytes(plan, rate) for plan, rate in found), reverse=True)
    return Prediction(
        hours=total / 3600 / max(min(slots, len(cells)), 1),
        running_bytes=sum(running[:slots]),
        kept_bytes=sum(rate.checkpoint_bytes for _, rate in found),
    )


def measured(plan: Plan, seconds: float) -> Rate:
    """Trains for a moment in a folder that is thrown away; the first half warms up."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        short = _short(plan, seconds)
        run = training.carry_out(short, out=out, resume=False, say=lambda sentence: None)
        segments = sum(p.stat().st_size for p in out.glob("checkpoints/segments/*"))
        saved = sum(p.stat().st_size for p in out.glob("checkpoints/0*/*"))
        rate = _second_half(reports.read_run(out).rates)
    steps = max(run.agent_steps, 1)
    return Rate(rate or steps / max(run.training_seconds, 1e-3), saved, segments / steps)


def _second_half(rows: Sequence[Mapping[str, Any]]) -> float | None:
    """Agent steps per second over the later half of a log's seconds."""
    times = [(row["training_seconds"], row["agent_steps"]) for row in rows]
    later = [time for time in times if time[0] >= times[-1][0] / 2]
    if len(later) < 2:
        return None
    (begun, before), (ended, after) = later[0], later[-1]
    return float((after - before) / max(ended - begun, 1e-3))


def _short(plan: Plan, seconds: float) -> Plan:
    values = {leaf.name: leaf.value for leaf in settings.leaves(plan)}
    less = {n: min(v, values[n]) for n, v in _SHORTER.items() if values.get(n)}
    changes = {**_QUIET, "seconds": seconds}
    with suppress(ValueError):  # values that belong together
        return settings.override(plan, {**changes, **less})
    return settings.override(plan, changes)


def _seconds(plan: Plan, rate: Rate) -> float:
    needed = plan.recipe.agent_steps / rate.agent_steps_per_second
    return min(needed, plan.run.seconds or needed)


def _running_bytes(plan: Plan, rate: Rate) -> int:
    """Checkpoints that stay, and the replay once."""
    capacity = getattr(plan.recipe.store, "capacity_agent_steps", 0)
    replay = rate.replay_bytes_per_agent_step * min(capacity, plan.recipe.agent_steps)
    keep = plan.run.output.checkpoints.keep_checkpoints
    return int(keep * rate.checkpoint_bytes + replay)


def _key(cell: Cell) -> str:
    """What a rate depends on: this machine, and everything but seed and length."""
    about = {k: v for k, v in cell.settings.items() if k not in ("agent_steps", "learning_rate")}
    about |= {"recipe": cell.recipe_sha256 or cell.recipe, "game": cell.game}
    about |= {"host": platform.node(), "scanline": VERSION}
    return hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()


def _kept() -> dict[str, Rate]:
    try:
        record = json.loads((trust.state_folder() / _FILE).read_bytes())
        return {key: Rate(**rate) for key, rate in record.items()}
    except (OSError, ValueError, TypeError, AttributeError, RuntimeError, RecursionError):
        return {}


def _keep(rates: Mapping[str, Rate]) -> None:
    with suppress(OSError, RuntimeError):  # without a state directory it is measured again
        folder = trust.state_folder()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        record = {key: asdict(rate) for key, rate in rates.items()}
        replace_file(folder / _FILE, json.dumps(record).encode())


def _size(num_bytes: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if num_bytes < 1000:
            return f"{num_bytes:.0f} {unit}"
        num_bytes /= 1000
    return f"{num_bytes:.1f} TB"
