"""Asynchronous recipes beside others: on the same work, by what factor, and with what lag.

Takes names of recipes and finished rows; gives settings that make a fair pair, factors, and lines
for a terminal. Knows no driver and no clock.

A recipe's own row has its paper's network and batch, so a ratio of two own rows says little. A pair
below is measured once more, the first recipe `like` the second one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from scanline import recipes, settings
from scanline.parameters import CentralSettings
from scanline.recipes import Recipe
from scanline.runners.free_running import FreeRunning
from scanline.runs.lags import Lags
from scanline.stores import SegmentSettings

from .rows import Row

PAIRS = (("ga3c", "paac"), ("a3c-agents", "ga3c"))
"""The first one is also measured with the network, protocol and batch of the second one."""
IN_FLIGHT = 4
"""Agents among which the environments of a lockstep recipe divide: some are decided for while the
engine steps others. Where step times differ an agent has one environment and waits for no other."""
_HISTOGRAMS = {
    "prediction_batch": "environments per inference",
    "policy_lag": "lag in updates",
    "training_queue": "segments in the queue",
}


def batch_size(recipe: Recipe) -> int:
    """Steps per update."""
    sampling = recipe.sampling
    owed = recipe.store.updates(sampling.num_envs, sampling.horizon_agent_steps)
    return owed.batch_agent_steps


def likened(names: Sequence[str]) -> list[tuple[str, str]]:
    """Which recipes are measured once more, and which recipe's work they are given."""
    return [pair for pair in PAIRS if set(pair) <= set(names)]


def matched(
    name: str, other: str, changes: Mapping[str, Any], *, even: bool = True
) -> dict[str, Any]:
    """Settings that give a recipe another one's work: network, protocol, and the batch if it can.

    Changes are what both have in common, such as a network or a number of environments; `even` says
    that all steps of environments take the same time.
    """
    own = recipes.find(name).replace(**changes)
    model = recipes.find(other).replace(**changes)
    found: dict[str, Any] = {"network": model.network, "protocol": model.protocol}
    if isinstance(own.store, SegmentSettings):
        found["num_envs"] = model.sampling.num_envs
        found["min_batch_agent_steps"] = batch_size(model)
        found["envs_per_agent"] = max(1, model.sampling.num_envs // IN_FLIGHT) if even else 1
    present = {leaf.name: leaf.value for leaf in settings.leaves(own)}
    return {key: value for key, value in found.items() if present[key] != value}


def factors(row: Row, rows: Sequence[Row]) -> dict[str, float]:
    """How many times the steps/s of others a free-running recipe makes, on the same work.

    The same work is the same network and batch; learners with a central store have small batches
    of their own, so the network decides.
    """
    if row["peer"] is not None or not isinstance(_of(row).pace, FreeRunning):
        return {}
    return {
        other["recipe"]: round(row["agent_sps"] / other["agent_sps"], 3)
        for other in rows
        if other["peer"] is None
        and not isinstance(_of(other).pace, FreeRunning)
        and other["network"] == row["network"]
        and (
            other["batch_size"] == row["batch_size"]
            or isinstance(_of(other).exchange, CentralSettings)
        )
    }


def _of(row: Row) -> Recipe:
    return recipes.find(row["recipe"])


def lines(rows: Sequence[Row]) -> list[str]:
    """Factors with their sign, and the notes of asynchronous runs."""
    found = []
    for row in rows:
        for other, factor in row.get("factors", {}).items():
            sign = "faster" if factor > 1 else "slower"
            work = f"network {row['network']}, batch {row['batch_size']}"
            found.append(f"{title(row)}, {work}: {factor:.2f} times {other} ({sign})")
    return found + [f"{title(row)}: {note_text(row['note'])}" for row in rows if row.get("note")]


def title(row: Row) -> str:
    """The recipe, and the recipe that gave the work."""
    return f"{row['recipe']} like {row['like']}" if row.get("like") else str(row["recipe"])


def note_text(note: Mapping[str, Any]) -> str:
    """A note in words: numbers of threads or learners, then each histogram."""
    words = [f"{name} {note[name]}" for name in _COUNTED if name in note]
    return "; ".join([", ".join(words), *_summaries(note)])


_COUNTED = ("agents", "predictors", "trainers", "learners")


def _summaries(note: Mapping[str, Any]) -> list[str]:
    """Mean, median, 95% quantile and the largest value; JSON makes the values words."""
    found = []
    for name, words in _HISTOGRAMS.items():
        if note.get(name):
            one = Lags({int(value): count for value, count in note[name].items()})
            half, most = one.quantile(0.5), max(one.counts)
            figures = f"mean {one.mean:.1f}, median {half}, 95% {one.quantile(0.95)}, most {most}"
            found.append(f"{words}: {figures}")
    return found
