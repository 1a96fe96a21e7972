"""scanline: train Atari agents fast on the machine at hand.

run = scanline.train("paac", "pong", agent_steps=1_000_000)
scanline.evaluate(run.folder)
envs = scanline.make("pong", num_envs=64)

A public name is imported when it is first asked for: every worker process imports this package,
and one that only steps environments must not wait for torch. Importing the package registers its
games with Gymnasium: gymnasium.make("scanline/Pong-v5").
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .envs.registration import register_games

if TYPE_CHECKING:
    from . import (
        algorithms,
        carried,
        interfaces,
        networks,
        paces,
        parameters,
        protocols,
        random,
        records,
        returns,
        samplers,
        schedules,
        stores,
    )
    from .envs.console import Console
    from .envs.make import make
    from .envs.single import make_single
    from .recipes import Recipe
    from .runs.loggers import Logger
    from .training.hooks import TrainingProgress
    from .training.scoring import evaluate, load_policy
    from .training.train import Run, train

__version__ = "0.1.0"

__all__ = [
    "Console",
    "Logger",
    "Recipe",
    "Run",
    "TrainingProgress",
    "__version__",
    "algorithms",
    "carried",
    "evaluate",
    "interfaces",
    "load_policy",
    "make",
    "make_single",
    "networks",
    "paces",
    "parameters",
    "protocols",
    "random",
    "records",
    "returns",
    "samplers",
    "schedules",
    "stores",
    "train",
]

_HOMES = {
    "Console": ".envs.console",
    "Logger": ".runs.loggers",
    "Recipe": ".recipes",
    "Run": ".training.train",
    "TrainingProgress": ".training.hooks",
    "evaluate": ".training.scoring",
    "load_policy": ".training.scoring",
    "make": ".envs.make",
    "make_single": ".envs.single",
    "train": ".training.train",
}
"""Module of every public name that is no module itself."""


register_games()


if not TYPE_CHECKING:  # a wrong name is an error of a type checker too

    def __getattr__(name: str) -> Any:
        if name not in __all__:
            raise AttributeError(f"module 'scanline' has no attribute {name!r}")
        if name in _HOMES:
            return getattr(importlib.import_module(_HOMES[name], __name__), name)
        return importlib.import_module(f".{name}", __name__)


def __dir__() -> list[str]:
    return sorted(__all__)
