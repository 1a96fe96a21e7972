"""A cell: one run of a queue, as data.

Takes a recipe, a game, a seed and settings by public name; gives its JSON, its id and its plan.
Knows neither the queue's folder nor which worker runs it.

The id is made of what the cell says, so the same cell added twice is one cell. The numbers of
threads always belong to the settings: float sums depend on them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from .. import recipes
from ..errors import UserError
from ..runs.folder import MAY_DIFFER, versions
from ..settings import nested_deeper
from ..training import Plan, make_plan

FORMAT_VERSION = 1
VERSION = versions()["scanline"]
"""The scanline that runs here."""
_SHAPE = {
    "recipe": str,
    "recipe_sha256": str,
    "game": str,
    "seed": int,
    "settings": dict,
    "scanline": str,
}
_MOST_LETTERS = 80
_NOT_NAMED = MAY_DIFFER | {"torch_threads", "log_every_agent_steps"}
"""Settings that an id leaves to its hash: none touches learning, but for the run's length."""
_MOST_LEVELS = 4


class CellError(UserError):
    """A cell's file is not what a sweep writes."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One run: everything that its result depends on."""

    recipe: str
    """Name of a recipe, or the absolute path of a recipe file."""
    recipe_sha256: str = ""
    """SHA-256 of that file; empty for a name."""
    game: str
    seed: int
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Settings that differ from the recipe's, by public name, and both numbers of threads."""
    scanline: str = VERSION
    """Version that wrote the cell; no part of its id."""

    @property
    def id(self) -> str:
        """Readable, fit for a file's name, and equal for equal cells only."""
        named = {name: value for name, value in self.settings.items() if name not in _NOT_NAMED}
        values = [f"{name}={value}" for name, value in sorted(named.items())]
        recipe = Path(self.recipe).stem if self.recipe_sha256 else self.recipe
        words = "-".join([recipe, self.game, f"s{self.seed}", *values])
        plain = "".join(c if c.isalnum() or c in "._=-" else "." for c in words)
        return f"{plain[:_MOST_LETTERS]}-{_digest(self._content())[:8]}"

    @property
    def settings_sha256(self) -> str:
        """Equal for runs that differ in game and seed only."""
        content = self._content()
        del content["game"], content["seed"]
        return _digest(content)

    def _content(self) -> dict[str, Any]:
        content = asdict(self)
        del content["scanline"]
        if self.recipe_sha256:
            del content["recipe"]  # the same bytes may lie elsewhere on another machine
        return content

    def plan(self, recipe_file: str = "", **changes: Any) -> Plan:
        """The plan of the run; `recipe_file` is where the recipe's bytes lie on this machine."""
        recipe: Any = self.recipe
        if self.recipe_sha256:
            recipe = recipes.find(recipe_file or self.recipe, self.recipe_sha256)
        own = {k: tuple(v) if isinstance(v, list) else v for k, v in self.settings.items()}
        return make_plan(recipe, self.game, **{**own, "seed": self.seed, **changes})

    def text(self) -> str:
        """The cell's file."""
        return json.dumps({"format_version": FORMAT_VERSION, **asdict(self)}, indent=1) + "\n"


def read_cell(path: Path) -> Cell:
    """The cell of a file; one that is damaged or too new is refused in one sentence."""
    try:
        record = json.loads(path.read_bytes())
    except OSError as error:
        raise CellError(f"The cell {path} cannot be read: {error.strerror}.") from error
    except (ValueError, RecursionError):
        raise _damaged(path, "it is no JSON") from None
    if not isinstance(record, dict) or nested_deeper(record, _MOST_LEVELS):
        raise _damaged(path, "it is no object")
    version = record.pop("format_version", None)
    if type(version) is int and version > FORMAT_VERSION:
        raise CellError(f"The cell {path} was written by a newer scanline; update this one.")
    for name, kind in _SHAPE.items():
        if type(record.get(name)) is not kind:
            raise _damaged(path, f"{name} is {record.get(name)!r:.60}")
    if unknown := record.keys() - _SHAPE.keys():
        raise _damaged(path, f"it has {', '.join(sorted(unknown))}")
    cell = Cell(**record)
    if cell.id != path.stem:
        raise _damaged(path, "its content is not that of its name")
    return cell


def _damaged(path: Path, fault: str) -> CellError:
    return CellError(
        f"The cell {path} is damaged: {fault}; add it again with `scanline sweep` or remove it."
    )


def _digest(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
