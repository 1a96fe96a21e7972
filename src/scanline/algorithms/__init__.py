"""Algorithms: frozen objects of pure functions."""

from .actor_critic import ActorCritic
from .interface import Defaults

__all__ = ["ActorCritic", "Defaults"]
