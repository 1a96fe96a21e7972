"""Samplers: who steps the environments, and in which order."""

from .lockstep import LockstepSampler, SamplingSettings
from .resets import RestingEngine, inner_settings

__all__ = ["LockstepSampler", "RestingEngine", "SamplingSettings", "inner_settings"]
