"""Recipes: a published name is a row of data, a choice per concept.

Gives `Recipe`, the table of named ones, and `find`, which also reads a user's own file.
Knows how no part works inside: `training` turns a row into parts.

Bare names carry the field's usual settings with known curves; a paper's prefix carries the paper's
own, and `-repo` its released code where that differs. One file per family.
"""

from __future__ import annotations

import dataclasses
import difflib
import importlib.util
import sys
from collections.abc import Mapping
from pathlib import Path

from . import accelerated, asynchronous, cule, fast_dqn, ga3c, paac, q_learning, usual
from .recipe import Network, Recipe

__all__ = ["RECIPES", "Network", "Recipe", "find"]

_FAMILIES = (
    paac.ROWS,
    usual.ROWS,
    accelerated.ROWS,
    asynchronous.ROWS,
    ga3c.ROWS,
    cule.ROWS,
    q_learning.ROWS,
    fast_dqn.ROWS,
)

RECIPES: Mapping[str, Recipe] = {recipe.name: recipe for family in _FAMILIES for recipe in family}

_OTHER_NAMES: Mapping[str, str] = {cule.numbered(cule.SOONEST): "cule-vtrace"}
"""Names that a row could have too, to the one that it has."""


def find(name: str) -> Recipe:
    """The recipe of this name, or the one that a user's file calls `recipe`."""
    if name.endswith(".py"):
        return _from_file(Path(name))
    if name not in RECIPES:
        near = _OTHER_NAMES.get(name) or difflib.get_close_matches(name, RECIPES, 1, 0.0)[0]
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
