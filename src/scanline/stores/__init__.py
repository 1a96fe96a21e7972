"""Stores: the arrays between acting and learning."""

from .rollout import RolloutSettings, RolloutStore
from .window import WindowSettings, WindowStore

__all__ = ["RolloutSettings", "RolloutStore", "WindowSettings", "WindowStore"]
