"""One line that says what limits a run and what to try.

Takes how the time splits and what the machine has; gives a sentence.
Knows neither the loop nor the terminal.

Shares of the time alone do not help a newcomer: the line names the option to change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .clock import ACTING, ENVIRONMENT, LEARNING, OTHER, TRAINING_PARTS

_DOMINANT = 0.5
_NEARLY_FULL = 0.9
_IDLE_CORES = 0.75


@dataclass(frozen=True, kw_only=True)
class Load:
    """What a run asks of its machine, over the last seconds."""

    split_seconds: Mapping[str, float]
    num_cores: int
    busy_cores: float | None = None
    """Cores that this process kept busy; None where workers do the work."""
    memory_bytes: int | None = None
    total_memory_bytes: int | None = None


def shares(split_seconds: Mapping[str, float]) -> dict[str, float]:
    """Each part's share of the training time."""
    total = sum(split_seconds.get(part, 0.0) for part in TRAINING_PARTS)
    return {part: split_seconds.get(part, 0.0) / total if total else 0.0 for part in TRAINING_PARTS}


def advice(load: Load) -> str:
    """What limits the run and what to try."""
    if load.memory_bytes and load.total_memory_bytes:
        used = load.memory_bytes / load.total_memory_bytes
        if used > _NEARLY_FULL:
            return f"Memory limits: {used:.0%} is in use; try fewer --num-envs or a smaller store."
    share = shares(load.split_seconds)
    part = max(TRAINING_PARTS, key=lambda p: share[p])
    if not share[part]:
        return "Nothing measured yet."
    if share[part] < _DOMINANT:
        first, second = sorted(share, key=lambda p: -share[p])[:2]
        return (
            f"Balanced: {first} {share[first]:.0%} and {second} {share[second]:.0%} of the time; "
            "a faster machine helps most."
        )
    return f"{_LIMITS[part]} ({share[part]:.0%} of the time); {_remedy(part, load)}."


_LIMITS = {
    ENVIRONMENT: "The environments limit",
    ACTING: "Acting limits",
    LEARNING: "Learning limits",
    OTHER: "Bookkeeping limits",
}


def _remedy(part: str, load: Load) -> str:
    idle = load.busy_cores is not None and load.busy_cores < _IDLE_CORES * load.num_cores
    if part == ENVIRONMENT and idle:
        return (
            f"{load.busy_cores:.1f} of {load.num_cores} cores are busy: "
            f"try --num-threads {load.num_cores} or more --num-envs"
        )
    return {
        ENVIRONMENT: "all cores are at work: try --engine native, or a machine with more cores",
        ACTING: "try more --num-envs, so that one batch serves more steps, or --device cuda",
        LEARNING: "try a smaller network, fewer updates per step, or --device cuda",
        OTHER: "try larger --log-every-agent-steps and --save-every-agent-steps",
    }[part]
