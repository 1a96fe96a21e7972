"""Stores: the arrays between acting and learning."""

from .rollout import RolloutSettings, RolloutStore

__all__ = ["RolloutSettings", "RolloutStore"]
