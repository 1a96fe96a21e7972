"""Memory: what a replay will take, said before it is taken.

Takes the sizes of everything a replay holds; gives bytes, the capacity that fits into bytes, and a
refusal where the machine does not have them. Knows no array.

A million frames are seven gigabytes. Pages are taken as the ring fills, so without this a run on a
small machine would die after hours and not at the start.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ..records import Column, Spaces
from .heads import RingLimits
from .ring import column_bytes
from .sampling import Sampling

Announce = Callable[[str], None]


@dataclass(frozen=True)
class Sizes:
    """Everything that the memory of a replay depends on besides its capacity."""

    spaces: Spaces
    columns: dict[str, Column]
    """Of every step, the frame included."""
    num_envs: int
    rollout_agent_steps: int
    batch_size: int
    n_step: int
    staged: int
    sampling: Sampling

    def limits(self, stored: int) -> RingLimits:
        history = self.spaces.stack - 1
        return RingLimits(history=history, stored=stored, staged=self.staged, n_step=self.n_step)

    def frame_bytes(self) -> int:
        return column_bytes(self.columns["frame"])

    def step_bytes(self) -> int:
        """One step in the ring: its frame once, and its columns."""
        return sum(map(column_bytes, self.columns.values()))

    def num_bytes(self, stored: int) -> int:
        """All of a replay with so many stored steps per environment: ring, rule, slots, batch."""
        places = self.limits(stored).num_rows * self.num_envs
        ring = places * self.step_bytes() + self.frame_bytes()
        slot_rows = self.spaces.stack + self.rollout_agent_steps
        slots = slot_rows * self.num_envs * self.step_bytes()
        batch = 2 * self.batch_size * self.spaces.stack * self.frame_bytes()
        return ring + self.sampling.num_bytes(places) + slots + batch

    def stored_within(self, limit_bytes: int) -> int:
        """Most steps per environment that fit, by halving; 0 where not even one does."""
        low, high = 0, limit_bytes // (self.num_envs * self.step_bytes()) + 1
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.num_bytes(middle) <= limit_bytes else (low, middle)
        return low if low and self.num_bytes(low) <= limit_bytes else 0


def available_bytes() -> float:
    """Memory that this process may still take: the machine's, or its control group's if less."""
    return min(_machine_bytes(), _group_bytes())


def _machine_bytes() -> int:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        fields = dict(line.split(":", 1) for line in lines)
        return int(fields["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError):  # not Linux
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _group_bytes() -> float:
    folder = Path("/sys/fs/cgroup")
    try:
        limit = (folder / "memory.max").read_text().strip()
        used = int((folder / "memory.current").read_text())
        return math.inf if limit == "max" else int(limit) - used
    except (OSError, ValueError):  # no control groups, or the first version of them
        return math.inf


def claim(sizes: Sizes, stored: int, announce: Announce) -> None:
    """Says what will be taken; refuses what the machine does not have."""
    needed, free = sizes.num_bytes(stored), available_bytes()
    steps = stored * sizes.num_envs
    frames = sizes.limits(stored).num_rows * sizes.num_envs * sizes.frame_bytes()
    announce(
        f"Replay: {steps:,} steps take {_words(needed)} as they fill it "
        f"({_words(frames)} frames, {_words(needed - frames)} the rest); {_words(free)} are free."
    )
    if needed > free:
        fitting = sizes.stored_within(int(free)) * sizes.num_envs
        raise ValueError(
            f"A replay of {steps:,} steps takes {_words(needed)}, but this machine has "
            f"{_words(free)} left; set capacity_agent_steps to at most {fitting:,}, or choose "
            "capacity_bytes."
        )


def _words(num_bytes: float) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if num_bytes >= size:
            return f"{num_bytes / size:.2f} {unit}"
    return f"{int(num_bytes)} bytes"
