"""Memory: what a replay will take, said before it is taken.

Takes the sizes of everything a replay holds; gives bytes, the capacity that fits into bytes, and
its share of a run's memory. Knows no array.

A million frames are seven gigabytes. Pages are taken as the ring fills, so without this a run on a
small machine would die after hours and not at the start.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from ..devices import HOST, Device
from ..memory import Share
from ..records import Column, Spaces
from .ring import RingLimits, column_bytes, step_columns
from .sampling import Sampling
from .sequences import SequenceShape, num_batch_rows

if TYPE_CHECKING:
    from .replay import ReplaySettings


@dataclass(frozen=True, kw_only=True)
class ReplayShape:
    """What sampler and runner fix: not a user's choice of replay."""

    num_envs: int
    """Environments that are stored, B."""
    rollout_agent_steps: int
    """Agent steps of every environment per slot, T."""
    num_writers: int = 1
    """Samplers that put on their own, each an equal block of environments."""
    staged_agent_steps: int = 0
    """Agent steps over all environments between two commits; 0 makes every put visible at once."""
    first_env_id: int = 0
    """Global number of the first environment, the key of draws."""
    num_learners: int = 1
    """Learners that each have such a replay."""

    def __post_init__(self) -> None:
        if self.num_writers < 1 or self.num_envs % self.num_writers:
            raise ValueError(
                f"num_envs={self.num_envs} does not divide among num_writers={self.num_writers}; "
                f"use a multiple of {max(self.num_writers, 1)}."
            )

    def envs_of(self, writer: int) -> slice:
        size = self.num_envs // self.num_writers
        return slice(writer * size, (writer + 1) * size)


@dataclass(frozen=True)
class Sizes:
    """Everything that the memory of a replay depends on besides its capacity."""

    spaces: Spaces
    columns: dict[str, Column]
    """Of every step, the frame included."""
    shape: ReplayShape
    batch_size: int
    sequence: SequenceShape
    sampling: Sampling

    def limits(self, stored: int) -> RingLimits:
        staged = -(-self.shape.staged_agent_steps // self.shape.num_envs)
        span, burn_in = self.sequence.span, self.sequence.burn_in
        return RingLimits(self.spaces.stack - 1, stored, staged, span, burn_in)

    def frame_bytes(self) -> int:
        return column_bytes(self.columns["frame"])

    def step_bytes(self) -> int:
        """One step in the ring: its frame once, and its columns."""
        return sum(map(column_bytes, self.columns.values()))

    def num_bytes(self, stored: int) -> int:
        """All of a replay with so many stored steps per environment: ring, rule, slots, batch."""
        size = self.limits(stored).num_rows * self.shape.num_envs
        ring = size * self.step_bytes() + self.frame_bytes()
        slot_rows = self.spaces.stack + self.shape.rollout_agent_steps
        slots = slot_rows * self.shape.num_envs * self.step_bytes()
        rows = max(2 * self.batch_size, num_batch_rows(self.batch_size, self.sequence))
        batch = rows * self.spaces.stack * self.frame_bytes()
        return ring + self.sampling.num_bytes(size) + slots + batch

    def stored_within(self, limit_bytes: int) -> int:
        """Most steps per environment that fit, by halving; 0 where not even one does."""
        low, high = 0, limit_bytes // (self.shape.num_envs * self.step_bytes()) + 1
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.num_bytes(middle) <= limit_bytes else (low, middle)
        return low if low and self.num_bytes(low) <= limit_bytes else 0

    def stored(self, capacity_agent_steps: int, capacity_bytes: int) -> int:
        """Steps kept of every environment, by the capacity in bytes if there is one."""
        num_envs = self.shape.num_envs
        stored, what = capacity_agent_steps // num_envs, f"{capacity_agent_steps=}"
        if capacity_bytes:
            stored, what = self.stored_within(capacity_bytes), f"{capacity_bytes=}"
        least = self.sequence.num_rows - 1 + self.shape.rollout_agent_steps
        if stored < least:
            raise ValueError(
                f"{what} leaves {stored} steps to each of {num_envs} environments, but a slot "
                f"and its n-step future need {least}; raise it or use fewer environments."
            )
        return stored

    def share(self, capacity_agent_steps: int, capacity_bytes: int) -> Share:
        """What a full replay takes, everything included but the few frames beside its ring."""
        stored, num_envs = self.stored(capacity_agent_steps, capacity_bytes), self.shape.num_envs

        def remedy(left: float) -> str:
            fitting = self.stored_within(int(max(left, 0.0))) * num_envs
            return f"set capacity_agent_steps to at most {fitting:,}, or choose capacity_bytes"

        what = f"A replay of {stored * num_envs:,} steps as it fills"
        return Share(what, self.num_bytes(stored), remedy)


def sizes_of(
    spaces: Spaces, shape: ReplayShape, settings: ReplaySettings, columns: Mapping[str, Column]
) -> Sizes:
    size, sequence = settings.batch_size, settings.sequence
    return Sizes(spaces, step_columns(spaces, columns), shape, size, sequence, settings.sampling)


def replay_memory(
    spaces: Spaces,
    shape: ReplayShape,
    settings: ReplaySettings,
    columns: Mapping[str, Column] | None = None,
) -> Share:
    """What a full replay takes."""
    sizes = sizes_of(spaces, shape, settings, columns or {})
    return sizes.share(settings.capacity_agent_steps, settings.capacity_bytes)


ReplayPlace = Literal["auto", "host", "device"]


def place_of(share: Share, device: Device, wanted: ReplayPlace) -> Device:
    """Where a replay's frames are, which are nearly all of its bytes."""
    if wanted not in get_args(ReplayPlace):
        raise ValueError(f"replay_place={wanted!r} is unknown; use 'auto', 'host' or 'device'.")
    fits = wanted != "auto" or share.num_bytes <= device.free_bytes / 2
    return device if fits and wanted != "host" else HOST
