"""The table of named recipes: all rows of this package by their names.

Takes a name; gives its recipe, or refuses with the nearest name. Knows no file of a user.

Bare names carry the field's usual settings with known curves; a paper's prefix carries the paper's
own, and `-repo` its released code where that differs. One file per paper.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from ..errors import nearest
from . import accelerated, cule, fast_dqn, ga3c, impala, paac, pqn, usual
from .recipe import Recipe

_PAPERS = (paac, usual, accelerated, ga3c, cule, impala, fast_dqn, pqn)
RECIPES: Mapping[str, Recipe] = {row.name: row for paper in _PAPERS for row in paper.ROWS}

_OTHER_NAMES: Mapping[str, str] = {cule.numbered(cule.SOONEST): "cule-vtrace"}
"""Names that a row could have too, to the one that it has."""


def named(name: str) -> Recipe:
    """The recipe of this name."""
    if name not in RECIPES:
        others = f"one of {', '.join(RECIPES)}, or a file of your own such as ./my_recipe.py."
        near = nearest(_OTHER_NAMES.get(name, name), RECIPES, others)
        raise ValueError(f"There is no recipe {name!r}; {near}")
    return dataclasses.replace(RECIPES[name], source=name)
