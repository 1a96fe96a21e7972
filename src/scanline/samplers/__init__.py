"""Samplers: who steps the environments, and in which order."""

from .dynamic import DynamicSampler, DynamicSettings
from .episodes import GameNumbers
from .lockstep import LockstepSampler, SamplingSettings
from .resets import DeferredResetEngine, inner_settings

__all__ = [
    "DeferredResetEngine",
    "DynamicSampler",
    "DynamicSettings",
    "GameNumbers",
    "LockstepSampler",
    "SamplingSettings",
    "inner_settings",
]
