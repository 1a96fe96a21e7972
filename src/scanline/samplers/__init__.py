"""Samplers: who steps the environments, and in which order."""

from .dynamic import DynamicSampler, DynamicSettings
from .lockstep import LockstepSampler, SamplingSettings

__all__ = ["DynamicSampler", "DynamicSettings", "LockstepSampler", "SamplingSettings"]
