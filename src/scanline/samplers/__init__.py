"""Samplers: who steps the environments, and in which order."""

from .dynamic import DynamicSampler, DynamicSettings
from .lockstep import LockstepSampler, SamplingSettings
from .resets import RestingEngine, inner_settings

__all__ = [
    "DynamicSampler",
    "DynamicSettings",
    "LockstepSampler",
    "RestingEngine",
    "SamplingSettings",
    "inner_settings",
]
