"""Stores: the arrays between acting and learning."""

from .n_step import Accumulator, NStep
from .replay import Replay
from .replay_settings import ReplaySettings, ReplayShape, memory_bytes
from .rollout import RolloutSettings, RolloutStore
from .sampling import PrioritisedSampling, Sampling, UniformSampling
from .segments import SegmentQueue, SegmentSettings
from .window import WindowSettings, WindowStore

__all__ = [
    "Accumulator",
    "NStep",
    "PrioritisedSampling",
    "Replay",
    "ReplaySettings",
    "ReplayShape",
    "RolloutSettings",
    "RolloutStore",
    "Sampling",
    "SegmentQueue",
    "SegmentSettings",
    "UniformSampling",
    "WindowSettings",
    "WindowStore",
    "memory_bytes",
]
