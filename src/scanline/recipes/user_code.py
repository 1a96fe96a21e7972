"""Python code of the user's: the file of a recipe, the module of a game.

Takes a recipe's name or file and what the folder of a run says; gives the recipe, or refuses with
the path and the hash. Knows no part of a run.

A run's folder is data and may come from elsewhere. A file that it names runs only if the user names
it too, or has trained from these bytes at this path before (trust.py). The hash covers that file
alone, not what it imports.

The bytes that are hashed are the bytes that run: a file is read once and no compiled copy of it is
used. It runs as a module whose name is made of its path and bytes, so a file called `random.py`
hides no module of the standard library, two files of one name do not meet, and every process that
reads the same file gives its classes the same name, by which pickle finds them.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.util
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from ..errors import RefusedError
from ..runs.folder import RunFolderError
from . import table, trust
from .recipe import Recipe

SUFFIX = ".py"


@dataclass(frozen=True)
class SourceFile:
    """A Python file as it was read."""

    path: Path
    """Absolute, links followed."""
    text: bytes

    @classmethod
    def read(cls, path: Path) -> SourceFile:
        try:
            return cls(path.resolve(), path.read_bytes())
        except OSError as error:
            reason = "There is no file" if not path.exists() else "This file cannot be read:"
            raise RefusedError(
                f"{reason} {str(path)!r}; a recipe's file defines `recipe`."
            ) from error

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.text).hexdigest()

    @property
    def module_name(self) -> str:
        both = hashlib.sha256(bytes(self.path) + b"\0" + self.text)
        return f"scanline_own_recipe_{both.hexdigest()[:24]}"

    def recipe(self) -> Recipe:
        """Runs the file, once per process, and gives what it calls `recipe`."""
        module = sys.modules.get(self.module_name) or self._run()
        recipe = getattr(module, "recipe", None)
        if not isinstance(recipe, Recipe):
            raise RefusedError(
                f"{self.path} must define `recipe = scanline.Recipe(...)`; it has {recipe!r}."
            )
        return dataclasses.replace(recipe, source=str(self.path), source_sha256=self.sha256)

    def _run(self) -> ModuleType:
        spec = importlib.util.spec_from_file_location(self.module_name, self.path)
        assert spec is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[self.module_name] = module  # its dataclasses look for their module there
        try:
            exec(compile(self.text, self.path, "exec", dont_inherit=True), module.__dict__)
        except BaseException as error:
            del sys.modules[self.module_name]
            if not isinstance(error, Exception):
                raise
            raise RefusedError(
                f"{self.path} cannot be used as a recipe: {self._line(error)}"
                f"{type(error).__name__}: {error}"
            ) from error
        return module

    def _line(self, error: Exception) -> str:
        """The last line of this file that led to the error."""
        frames = traceback.extract_tb(error.__traceback__)
        lines = [frame.lineno for frame in frames if frame.filename == str(self.path)]
        if isinstance(error, SyntaxError) and error.filename == str(self.path):
            lines.append(error.lineno)
        return f"line {lines[-1]}: " if lines else ""


def find(name: str, sha256: str | None = None) -> Recipe:
    """The recipe of this name, or the one that a user's file calls `recipe`.

    A file is run: pass only one that the user has named. With a hash, other bytes are refused.
    """
    if not name.endswith(SUFFIX):
        return table.named(name)
    file = SourceFile.read(Path(name))
    if sha256 not in (None, file.sha256):
        raise RefusedError(f"{file.path} was changed while a run began with it; start anew.")
    return file.recipe()


def recipe_of(run: Path, source: str, named: str | Recipe | None = None) -> Recipe:
    """The recipe of a run whose folder gives its `source`; one `named` by the user goes first."""
    if isinstance(named, Recipe):
        return named
    if named is not None:
        return find(named)
    if not source:
        raise RunFolderError(
            f"{run} was trained with a recipe made in Python; give it: recipe=Recipe(...)."
        )
    if not source.endswith(SUFFIX):
        return table.named(source)
    if not Path(source).is_file():
        raise RunFolderError(
            f"{run} was trained from the recipe file {source}, which is not here; name a copy of "
            "it: --recipe FILE, or recipe='FILE' in Python."
        )
    file = SourceFile.read(Path(source))
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
    if recipe.source_sha256:
        trust.remember(Path(recipe.source), recipe.source_sha256)
    module = module_of(game)
    if module is not None and (file := _module_file(module)) is not None:
        trust.remember(file.path, file.sha256)


def module_of(game: str) -> str | None:
    """The package that Gymnasium imports for an id such as `module:Name-v0`."""
    module, colon, _ = game.partition(":")
    return module.partition(".")[0] if colon else None


def _module_file(name: str) -> SourceFile | None:
    spec = importlib.util.find_spec(name)  # a top-level name is found, not imported
    if spec is None or spec.origin is None or not Path(spec.origin).is_file():
        return None
    return SourceFile.read(Path(spec.origin))


def _refuse_unknown(run: Path, file: SourceFile, option: str, argument: str) -> None:
    if not trust.is_remembered(file.path, file.sha256):
        raise RunFolderError(
            f"{run} names the Python file {file.path} (SHA-256 {file.sha256}), from which you have "
            f"not trained: it is not run. If you trust it, name it: {option}, or {argument} in "
            "Python."
        )
