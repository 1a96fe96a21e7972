"""Recipes: a published name is a row of data, a choice per concept.

Gives `Recipe`, the table of named ones, and `find`, which also runs a user's own file.
Knows how no part works inside: `training` turns a row into parts.
"""

from .recipe import Network, Recipe
from .table import RECIPES
from .user_code import SUFFIX, SourceFile, find

__all__ = ["RECIPES", "SUFFIX", "Network", "Recipe", "SourceFile", "find"]
