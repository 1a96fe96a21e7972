"""Python code that a run's folder names: run only where the user has decided so.

Takes what a folder says (a recipe's file, a game of a module) and what the user says; gives the
recipe, or refuses with the path and the hash. Knows no part of a run.

A folder is data: it may come from elsewhere. A file that it names runs when the user names it too,
or when he has trained from these very bytes at this very path before (recipes/trust.py). The hash
covers that file alone, not what it imports.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

from .. import recipes
from ..recipes import OwnFile, Recipe, trust
from ..runs.folder import RunFolderError


def recipe_of(run: Path, source: str, named: str | Recipe | None = None) -> Recipe:
    """The recipe of a run whose folder says where it was found; `named` by the user goes first."""
    if isinstance(named, Recipe):
        return named
    if named is not None:
        return recipes.find(named)
    if not source:
        raise RunFolderError(
            f"{run} was trained with a recipe made in Python; give it: recipe=Recipe(...)."
        )
    if not source.endswith(recipes.SUFFIX):
        return recipes.find(source)
    if not Path(source).is_file():
        raise RunFolderError(
            f"{run} was trained from the recipe file {source}, which is not here; name a copy of "
            "it: --recipe FILE, or recipe='FILE' in Python."
        )
    file = OwnFile.read(Path(source))
    _refuse_unknown(run, file, f"--recipe {file.path}", f"recipe={str(file.path)!r}")
    return file.recipe()


def check_game(run: Path, game: str, named: str | None = None) -> None:
    """Refuses a game whose module the user has not decided to import."""
    if named is not None and named != game:
        raise RunFolderError(f"{run} plays {game}, not {named}; leave the game out.")
    module = module_of(game)
    if named is None and module is not None:
        file = _module_file(module)
        if file is None:
            raise RunFolderError(
                f"{run} plays {game}, but there is no module {module!r} here; install it."
            )
        _refuse_unknown(run, file, f"--game {game}", f"game={game!r}")


def remember(recipe: Recipe, game: str) -> None:
    """Records the files that a training runs: its user has named them."""
    module = module_of(game)
    if recipe.source_sha256:
        trust.remember(Path(recipe.source), recipe.source_sha256)
    file = _module_file(module) if module is not None else None
    if file is not None:
        trust.remember(file.path, file.sha256)


def module_of(game: str) -> str | None:
    """The package that Gymnasium imports for an id such as `module:Name-v0`."""
    module, colon, _ = game.partition(":")
    return module.partition(".")[0] if colon else None


def _module_file(name: str) -> OwnFile | None:
    spec = importlib.util.find_spec(name)  # a top-level name is found, not imported
    if spec is None or spec.origin is None or not Path(spec.origin).is_file():
        return None
    return OwnFile.read(Path(spec.origin))


def _refuse_unknown(run: Path, file: OwnFile, option: str, argument: str) -> None:
    if not trust.is_remembered(file.path, file.sha256):
        raise RunFolderError(
            f"{run} names the Python file {file.path} (SHA-256 {file.sha256}), from which you have "
            f"not trained: it is not run. If you trust it, name it: {option}, or {argument} in "
            "Python."
        )
