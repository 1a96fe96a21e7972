"""A recipe of the user's own: one Python file that defines `recipe`.

Takes the path of a file; gives its bytes with their SHA-256, and runs them for the recipe.
Knows no run and does not decide whether a file may be run: see trust.py.

The bytes that were hashed are the bytes that run: the file is read once and no compiled copy of it
is used. It runs as a module whose name is made of its path and bytes. So a file called `random.py`
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
from .recipe import Recipe

SUFFIX = ".py"


@dataclass(frozen=True)
class OwnFile:
    """A file as it was read."""

    path: Path
    """Absolute, links followed."""
    text: bytes

    @classmethod
    def read(cls, path: Path) -> OwnFile:
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
                f"{self.path} cannot be used as a recipe: {self._place(error)}"
                f"{type(error).__name__}: {error}"
            ) from error
        return module

    def _place(self, error: Exception) -> str:
        """The last line of this file that led to the error."""
        frames = traceback.extract_tb(error.__traceback__)
        lines = [frame.lineno for frame in frames if frame.filename == str(self.path)]
        if isinstance(error, SyntaxError) and error.filename == str(self.path):
            lines.append(error.lineno)
        return f"line {lines[-1]}: " if lines else ""
