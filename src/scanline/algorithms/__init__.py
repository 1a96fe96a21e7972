"""Algorithms: frozen objects of pure functions."""

from .actor_critic import ActorCritic
from .interface import Defaults, path_of

__all__ = ["ActorCritic", "Defaults", "path_of"]
