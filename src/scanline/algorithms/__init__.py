"""Algorithms: frozen objects of pure functions."""

from .actor_critic import ActorCritic
from .interface import Defaults, path_of
from .ppo import Ppo
from .vtrace import Vtrace

__all__ = ["ActorCritic", "Defaults", "Ppo", "Vtrace", "path_of"]
