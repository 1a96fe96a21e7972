"""Recipes: a published name is a row of data, a choice per concept.

Gives `Recipe`, the table of named ones, and `find`, which also runs a user's own file.
Knows how no part works inside: `training` turns a row into parts.

Bare names carry the field's usual settings with known curves; a paper's prefix carries the paper's
own, and `-repo` its released code where that differs. One file per family.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Mapping
from pathlib import Path

from ..errors import RefusedError
from . import accelerated, asynchronous, cule, fast_dqn, ga3c, paac, q_learning, usual
from .own_file import SUFFIX, OwnFile
from .recipe import Network, Recipe

__all__ = ["RECIPES", "SUFFIX", "Network", "OwnFile", "Recipe", "find"]

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


def find(name: str, sha256: str | None = None) -> Recipe:
    """The recipe of this name, or the one that a user's file calls `recipe`.

    A file is run: only one that the user has named may come here (see trust.py). With a hash, a
    file of other bytes is refused.
    """
    if name.endswith(SUFFIX):
        file = OwnFile.read(Path(name))
        if sha256 not in (None, file.sha256):
            raise RefusedError(f"{file.path} was changed while a run began with it; start anew.")
        return file.recipe()
    if name not in RECIPES:
        near = _OTHER_NAMES.get(name) or difflib.get_close_matches(name, RECIPES, 1, 0.0)[0]
        raise ValueError(
            f"There is no recipe {name!r}; did you mean {near!r}? One of {', '.join(RECIPES)}, "
            "or a file of your own such as ./my_recipe.py."
        )
    return dataclasses.replace(RECIPES[name], source=name)
