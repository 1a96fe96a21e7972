"""Recipes: a published name is a row of data, a choice per concept.

Gives `Recipe`, the table of named ones, and `find`, which also reads a user's own file.
Knows how no part works inside: `training` turns a row into parts.

Bare names carry the field's usual settings with known curves; a paper's prefix carries the paper's
own, and `-repo` its released code where that differs.
"""

from __future__ import annotations

import dataclasses
import difflib
import importlib.util
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from . import settings
from .algorithms import ActorCritic
from .parameters import OptimiserSettings
from .records import Algorithm, Spaces
from .samplers import SamplingSettings
from .stores import RolloutSettings

Network = str | Callable[[Spaces], torch.nn.Module]


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """One way to train: a choice for every concept."""

    name: str
    """What it is called."""
    summary: str
    """One sentence for `scanline list recipes`."""
    algorithm: Algorithm
    network: Network = "nature"
    """Name of a network (`scanline list networks`), or a function from spaces to a module."""
    protocol: str = "baselines"
    """What one agent step means (`scanline list protocols`)."""
    optimiser: OptimiserSettings
    sampling: SamplingSettings = field(default_factory=SamplingSettings)
    store: RolloutSettings = field(default_factory=RolloutSettings)
    agent_steps: int = 10_000_000
    """Agent steps of a whole run."""
    source: str = ""
    """Where it was found, a name or a file; empty for one made in Python."""

    def __post_init__(self) -> None:
        settings.check_unique(self)
        if not isinstance(self.algorithm, Algorithm):
            raise TypeError(
                f"algorithm={self.algorithm!r} lacks functions of an algorithm; derive it from "
                "scanline.algorithms.Defaults and write `loss`."
            )

    def replace(self, **changes: Any) -> Recipe:
        """A copy with settings of any part changed by name."""
        return settings.override(self, changes)


_PAAC_RMSPROP = OptimiserSettings(
    kind="rmsprop",
    learning_rate=0.0007,
    scale_with_envs="linear",
    scale_base_envs=1,
    decay=0.99,
    epsilon=0.1,
    epsilon_inside_root=True,
    square_starts_at=1.0,
    max_grad_norm=40.0,
)

RECIPES: Mapping[str, Recipe] = {
    recipe.name: recipe
    for recipe in (
        Recipe(
            name="paac",
            summary="Clemente 2017: many actors, one batch, one synchronous n-step update.",
            algorithm=ActorCritic(entropy_coef=0.01, value_coef=1.0),
            network="nips",
            protocol="paac",
            optimiser=_PAAC_RMSPROP,
            agent_steps=115_000_000,
        ),
        Recipe(
            name="paac-repo",
            summary="PAAC as its released code has it: clip 3, entropy 0.02, annealed rate.",
            algorithm=ActorCritic(
                entropy_coef=0.02,
                value_coef=0.25,
                loss_scale=5.0,
                log_form="added",
                log_epsilon=1e-30,
            ),
            network="nips",
            protocol="paac",
            optimiser=dataclasses.replace(_PAAC_RMSPROP, max_grad_norm=3.0, anneal="linear"),
            agent_steps=80_000_000,
        ),
        Recipe(
            name="a2c",
            summary="OpenAI baselines' A2C: 16 environments, 5 steps, annealed RMSProp.",
            algorithm=ActorCritic(),
            optimiser=OptimiserSettings(
                kind="rmsprop",
                learning_rate=7e-4,
                decay=0.99,
                epsilon=1e-5,
                epsilon_inside_root=True,
                square_starts_at=1.0,
                max_grad_norm=0.5,
                anneal="linear",
            ),
            sampling=SamplingSettings(num_envs=16, rollout_agent_steps=5),
        ),
    )
}


def find(name: str) -> Recipe:
    """The recipe of this name, or the one that a user's file calls `recipe`."""
    if name.endswith(".py"):
        return _from_file(Path(name))
    if name not in RECIPES:
        near = difflib.get_close_matches(name, RECIPES, n=1, cutoff=0.0)[0]
        raise ValueError(
            f"There is no recipe {name!r}; did you mean {near!r}? One of {', '.join(RECIPES)}, "
            "or a file of your own such as ./my_recipe.py."
        )
    return dataclasses.replace(RECIPES[name], source=name)


def _from_file(path: Path) -> Recipe:
    if not path.is_file():
        raise ValueError(f"There is no file {str(path)!r}; a recipe's file defines `recipe`.")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # so that its dataclasses find their own sentences
    spec.loader.exec_module(module)
    recipe = getattr(module, "recipe", None)
    if not isinstance(recipe, Recipe):
        raise ValueError(f"{path} must define `recipe = scanline.Recipe(...)`; it has {recipe!r}.")
    return dataclasses.replace(recipe, source=str(path.resolve()))
