"""Paces: in which order acting and learning happen, as choices of a recipe.

Names only, of the modules that run the loops: a pace of your own derives from one of these, and
its runtime calls the verbs of the parts in an order of its own.
"""

from .runners.concurrent import Concurrent
from .runners.free_running import FreeRunning
from .runners.synchronous import Alternate, SynchronousRuntime, learn

__all__ = ["Alternate", "Concurrent", "FreeRunning", "SynchronousRuntime", "learn"]
