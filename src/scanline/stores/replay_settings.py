"""Settings of a replay: what is kept, how it is drawn, and the memory that follows from it.

Takes a user's choices and what sampler and runner fix; gives sizes and refuses what cannot work.
Knows no array.

Apart from the class that reads them, so that a recipe's memory can be computed without a replay.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ..records import Column, Spaces
from . import memory
from .heads import Flush
from .n_step import Accumulator, NStep
from .ring import step_columns
from .sampling import Sampling, UniformSampling


@dataclass(frozen=True, kw_only=True)
class ReplaySettings:
    """What is kept and how it is drawn."""

    capacity_agent_steps: int = 1_000_000
    """Agent steps kept over all environments; each gets an equal share."""
    capacity_bytes: int = 0
    """Bytes that all of the replay may take, instead of capacity_agent_steps; 0 for none."""
    batch_size: int = 32
    """Steps per batch."""
    training_intensity: float = 8.0
    """Times that a collected step is drawn on average: updates = intensity x steps / batch_size."""
    learning_starts_agent_steps: int = 50_000
    """Agent steps stored before the first batch."""
    sampling: Sampling = field(default_factory=UniformSampling)
    """Which steps are drawn."""
    accumulator: Accumulator = field(default_factory=NStep)
    """How the rewards that follow a step become one."""
    flush: Flush = "full"
    """What a commit makes visible: 'full', or the steps of 'completed' episodes only."""

    def __post_init__(self) -> None:
        if self.capacity_agent_steps < 1 or self.capacity_bytes < 0 or self.batch_size < 1:
            raise ValueError(
                f"capacity_agent_steps={self.capacity_agent_steps} and "
                f"batch_size={self.batch_size} must be at least 1, "
                f"capacity_bytes={self.capacity_bytes} at least 0."
            )
        if self.training_intensity < 0 or self.learning_starts_agent_steps < 0:
            raise ValueError(
                f"training_intensity={self.training_intensity} and learning_starts_agent_steps="
                f"{self.learning_starts_agent_steps} must not be negative."
            )
        if self.flush not in ("full", "completed"):
            raise ValueError(f"flush={self.flush!r} is unknown; use 'full' or 'completed'.")
        if self.flush == "completed" and self.sampling == UniformSampling(spread="per-env"):
            raise ValueError(
                "flush='completed' stores more of one environment than of another, but "
                "spread='per-env' draws equally often from each; use spread='steps'."
            )

    def shared(self, num_learners: int) -> ReplaySettings:
        """What one of several learners keeps and draws: its part of everything that is counted."""
        for name in ("capacity_agent_steps", "batch_size"):
            if getattr(self, name) % num_learners:
                raise ValueError(
                    f"{name}={getattr(self, name)} does not divide among {num_learners} learners; "
                    f"use a multiple of {num_learners}."
                )
        return replace(
            self,
            capacity_agent_steps=self.capacity_agent_steps // num_learners,
            capacity_bytes=self.capacity_bytes // num_learners,
            batch_size=self.batch_size // num_learners,
            learning_starts_agent_steps=-(-self.learning_starts_agent_steps // num_learners),
        )


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


def sizes_of(
    spaces: Spaces, shape: ReplayShape, settings: ReplaySettings, columns: Mapping[str, Column]
) -> memory.Sizes:
    """Everything that the memory depends on."""
    return memory.Sizes(
        spaces=spaces,
        columns=step_columns(spaces, columns),
        num_envs=shape.num_envs,
        rollout_agent_steps=shape.rollout_agent_steps,
        batch_size=settings.batch_size,
        n_step=settings.accumulator.n_step,
        staged=-(-shape.staged_agent_steps // shape.num_envs),
        sampling=settings.sampling,
    )


def stored_per_env(sizes: memory.Sizes, settings: ReplaySettings) -> int:
    """Steps kept of every environment."""
    stored = settings.capacity_agent_steps // sizes.num_envs
    what = f"capacity_agent_steps={settings.capacity_agent_steps}"
    if settings.capacity_bytes:
        stored = sizes.stored_within(settings.capacity_bytes)
        what = f"capacity_bytes={settings.capacity_bytes}"
    least = sizes.n_step + sizes.rollout_agent_steps
    if stored < least:
        raise ValueError(
            f"{what} leaves {stored} steps to each of {sizes.num_envs} environments, but a slot "
            f"and its n-step future need {least}; raise it or use fewer environments."
        )
    return stored


def memory_bytes(
    spaces: Spaces,
    shape: ReplayShape,
    settings: ReplaySettings,
    columns: Mapping[str, Column] | None = None,
) -> int:
    """Bytes that a full replay takes, everything included but the few frames beside its ring."""
    sizes = sizes_of(spaces, shape, settings, columns or {})
    return sizes.num_bytes(stored_per_env(sizes, settings))
