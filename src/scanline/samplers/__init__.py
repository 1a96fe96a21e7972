"""Samplers: they step environments and fill slots, in lockstep or agent by agent."""

from .dynamic import DynamicSampler, DynamicSettings
from .episodes import GameNumbers
from .lockstep import LockstepSampler, SamplingSettings
from .remote import RemoteSampler, RemoteSettings
from .resets import DeferredResetEngine, inner_settings

__all__ = [
    "DeferredResetEngine",
    "DynamicSampler",
    "DynamicSettings",
    "GameNumbers",
    "LockstepSampler",
    "RemoteSampler",
    "RemoteSettings",
    "SamplingSettings",
    "inner_settings",
]
