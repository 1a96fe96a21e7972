"""Parameters: who owns the weights, and the one place where they change.

Takes losses by parameter group; gives views, gradient norms and a complete state.
Sees records.py and schedules.py only: no network's layers, no algorithm, no store.
local.py holds them in this process; optimisers.py says how a gradient becomes a step.
"""

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
    "LocalParameters",
    "Optimiser",
    "OptimiserSettings",
    "RMSProp",
    "build_optimiser",
]
