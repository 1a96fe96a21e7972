"""Algorithms: frozen objects of pure functions."""

from .actor_critic import ActorCritic
from .categorical_dqn import CategoricalDqn
from .dqn import Dqn
from .exploration import EpsilonGreedy
from .interface import Defaults, trajectory_of
from .ppo import Ppo
from .pqn import Pqn
from .vtrace import Vtrace

__all__ = [
    "ActorCritic",
    "CategoricalDqn",
    "Defaults",
    "Dqn",
    "EpsilonGreedy",
    "Ppo",
    "Pqn",
    "Vtrace",
    "trajectory_of",
]
