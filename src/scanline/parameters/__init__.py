"""Parameters: who owns the weights, and the one place where they change.

Takes losses by parameter group; gives views, gradient norms and a complete state.
Sees records.py, schedules.py and processes.py only: no network's layers, no algorithm, no store.
local.py holds them in this process; optimisers.py says how a gradient becomes a step. all_reduce.py
is what several learners agree on, near.py the same through memory that they share, pulse.py whether
they are still there; central.py is a store that learners share, chunked.py how they step it,
learner.py their own copies; published.py is what threads may read while one of them writes.
exchange.py has the settings by which a recipe chooses among these.
"""

from .all_reduce import LearnerLostError, Learners, LearnersDifferError, join
from .central import CentralStore, Layout, SharedStore, StoreStuckError
from .chunked import ChunkedStep, MultiStepAdam
from .exchange import Alone, CentralSettings
from .learner import CentralOwner, CentralParameters, shared_store
from .local import AllReduce, Grouped, LocalParameters, NotFiniteGradientError
from .optimisers import (
    Optimiser,
    OptimiserSettings,
    RateSettings,
    RMSProp,
    TorchOptimiser,
    TorchSettings,
)
from .published import Published, Snapshot

__all__ = [
    "AllReduce",
    "Alone",
    "CentralOwner",
    "CentralParameters",
    "CentralSettings",
    "CentralStore",
    "ChunkedStep",
    "Grouped",
    "Layout",
    "LearnerLostError",
    "Learners",
    "LearnersDifferError",
    "LocalParameters",
    "MultiStepAdam",
    "NotFiniteGradientError",
    "Optimiser",
    "OptimiserSettings",
    "Published",
    "RMSProp",
    "RateSettings",
    "SharedStore",
    "Snapshot",
    "StoreStuckError",
    "TorchOptimiser",
    "TorchSettings",
    "join",
    "shared_store",
]
