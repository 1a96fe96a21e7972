"""Samplers: who steps the environments, and in which order."""

from .lockstep import LockstepSampler, SamplingSettings

__all__ = ["LockstepSampler", "SamplingSettings"]
