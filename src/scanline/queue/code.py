"""Python code that a queue names: run only where the user has decided so.

Takes a cell and the files that the user names; says where the recipe's bytes lie, or refuses.
Knows neither tickets nor processes.

A queue is data, as a run folder is: the same rule holds (recipes/user_code.py). A recipe file
runs if its bytes are those of the sweep, and the user names the file or has trained from it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import RefusedError
from ..recipes import SourceFile, trust, user_code
from .cells import Cell


@dataclass(frozen=True)
class Permission:
    """What a user lets a worker run."""

    files: Mapping[str, str] = field(default_factory=dict)
    """Recipe files that the user has named, by their SHA-256."""
    games: Sequence[str] = ()
    """Games of modules that the user has named."""

    @classmethod
    def of(cls, files: Sequence[Path], games: Sequence[str] = ()) -> Permission:
        read = [SourceFile.read(path) for path in files]
        return cls({file.sha256: str(file.path) for file in read}, games)

    def file_of(self, cell: Cell) -> str:
        """Where a cell's recipe lies on this machine; empty for one that has a name."""
        return self.files.get(cell.recipe_sha256, cell.recipe) if cell.recipe_sha256 else ""

    def check(self, cell: Cell) -> None:
        """Refuses a cell whose code the user has not decided to run."""
        place = Path(f"cell {cell.id}")
        if not cell.recipe_sha256 and cell.recipe.endswith(".py"):
            raise RefusedError(f"it names the recipe file {cell.recipe} without its hash.")
        if cell.recipe_sha256 and cell.recipe_sha256 not in self.files:
            _check_file(cell)
        user_code.check_game(place, cell.game, cell.game if cell.game in self.games else None)


def _check_file(cell: Cell) -> None:
    path = Path(cell.recipe)
    if not path.is_file():
        raise RefusedError(f"its recipe file {path} is not here; name a copy of it: --recipe FILE.")
    file = SourceFile.read(path)
    if file.sha256 != cell.recipe_sha256:
        raise RefusedError(
            f"its recipe file {path} was changed since the sweep (SHA-256 {file.sha256}, not "
            f"{cell.recipe_sha256}); put back those bytes, or sweep again."
        )
    if not trust.is_remembered(file.path, file.sha256):
        raise RefusedError(
            f"it names the Python file {file.path} (SHA-256 {file.sha256}), from which you have "
            f"not trained: it is not run. If you trust it, name it: --recipe {file.path}."
        )
