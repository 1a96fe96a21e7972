"""scanline: train Atari agents fast on the machine at hand.

run = scanline.train("paac", "pong", agent_steps=1_000_000)
scanline.evaluate(run.folder)
envs = scanline.make("pong", num_envs=64)
"""

from . import algorithms, networks, parameters, records, returns, samplers, stores
from .engines.making import make
from .recipes import Recipe
from .training import Run, evaluate, load_policy, train

__version__ = "0.1.0"

__all__ = [
    "Recipe",
    "Run",
    "__version__",
    "algorithms",
    "evaluate",
    "load_policy",
    "make",
    "networks",
    "parameters",
    "records",
    "returns",
    "samplers",
    "stores",
    "train",
]
