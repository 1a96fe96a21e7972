"""Parameters: who owns the weights, and the one place where they change.

Takes losses by parameter group; gives views, gradient norms and a complete state.
Sees records.py and schedules.py only: no network's layers, no algorithm, no store.
local.py holds them in this process; optimisers.py says how a gradient becomes a step;
all_reduce.py is what several learners agree on.
"""

from .all_reduce import LearnerLostError, Learners, LearnersDifferError, join
from .local import AllReduce, Grouped, LocalParameters
from .optimisers import (
    Adam,
    Optimiser,
    OptimiserSettings,
    RMSProp,
    build_optimiser,
)

__all__ = [
    "Adam",
    "AllReduce",
    "Grouped",
    "LearnerLostError",
    "Learners",
    "LearnersDifferError",
    "LocalParameters",
    "Optimiser",
    "OptimiserSettings",
    "RMSProp",
    "build_optimiser",
    "join",
]
