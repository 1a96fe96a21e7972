"""Stores: the arrays between acting and learning."""

from .batches import NStep
from .memory import ReplayShape, replay_memory
from .replay import Replay, ReplaySettings
from .rollout import RolloutSettings, RolloutStore
from .rollout_queue import RolloutQueue, RolloutQueueSettings
from .sampling import PrioritisedSampling, Sampling, UniformSampling
from .segments import SegmentQueue, SegmentSettings
from .window import WindowSettings, WindowStore

__all__ = [
    "NStep",
    "PrioritisedSampling",
    "Replay",
    "ReplaySettings",
    "ReplayShape",
    "RolloutQueue",
    "RolloutQueueSettings",
    "RolloutSettings",
    "RolloutStore",
    "Sampling",
    "SegmentQueue",
    "SegmentSettings",
    "UniformSampling",
    "WindowSettings",
    "WindowStore",
    "replay_memory",
]
