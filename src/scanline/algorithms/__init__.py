"""Algorithms: frozen objects of pure functions."""

from .actor_critic import ActorCritic
from .categorical_dqn import CategoricalDqn
from .dqn import Dqn, QLearning, weighted
from .exploration import EpsilonGreedy
from .interface import Defaults, taken, trajectory_of
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
    "QLearning",
    "Vtrace",
    "taken",
    "trajectory_of",
    "weighted",
]
