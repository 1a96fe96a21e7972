"""A sweep: axes to cells, all of them checked before the first one is written.

Takes recipes, games, seeds and values of any setting; gives cells. Knows neither the queue's folder
nor how a run is carried out.
"""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .. import engines, settings
from ..errors import RefusedError, nearest, refusals
from ..training import Plan, make_plan
from .cells import Cell
from .work import CORES_PER_RUN

_NO_AXES = {"name", "summary", "source", "source_sha256", "game", "seed", "out", "resume", "live"}
_KEYS = ("recipes", "games", "seeds", "first_seed")
Axes = Mapping[str, Sequence[Any]]


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """Every combination of these is a cell."""

    recipes: Sequence[str]
    games: Sequence[str]
    seeds: int = 1
    """Number of seeds."""
    first_seed: int = 0
    axes: Axes = field(default_factory=dict)
    """Values of settings by public name; text is read as the setting's type wants it."""

    def __post_init__(self) -> None:
        for name in ("recipes", "games"):
            if not getattr(self, name):
                raise RefusedError(f"A sweep needs --{name}, e.g. --{name} {_EXAMPLES[name]}.")
        if type(self.seeds) is not int or self.seeds < 1:
            raise RefusedError(
                f"seeds={self.seeds!r} is the number of seeds and must be 1 or more."
            )
        if wrong := _NO_AXES & self.axes.keys():
            raise RefusedError(
                f"{', '.join(sorted(wrong))} cannot be an axis; recipes, games and seeds have "
                "options of their own, and run folders belong to the queue."
            )

    def cells(self) -> Iterator[Cell]:
        """All cells; an unknown recipe, game, axis or value is refused."""
        for recipe, game in itertools.product(self.recipes, self.games):
            plan = make_plan(recipe, game)
            axes = {name: _read_all(plan, name, values) for name, values in self.axes.items()}
            for values in itertools.product(*axes.values()):
                given = dict(zip(axes, values, strict=True))
                for seed in range(self.first_seed, self.first_seed + self.seeds):
                    yield _checked(plan, given, seed)


_EXAMPLES = {"recipes": "ppo,a2c", "games": "pong,breakout"}
_THREADS = {"num_threads": CORES_PER_RUN, "torch_threads": CORES_PER_RUN}


def _checked(plan: Plan, given: Mapping[str, Any], seed: int) -> Cell:
    """A cell of which a plan can be made, for a game that there is."""
    source = plan.recipe.source or plan.recipe.name
    cell = Cell(
        recipe=source,
        recipe_sha256=plan.recipe.source_sha256,
        game=plan.game,
        seed=seed,
        settings={**_THREADS, **given},
    )
    with refusals():
        engines.kind(cell.plan(source).engine)  # refuses an unknown game too
    return cell


def _read_all(plan: Plan, name: str, values: Sequence[Any]) -> list[Any]:
    """Values of one axis in the setting's type, each once."""
    types = {leaf.name: leaf.type for leaf in settings.leaves(plan)}
    if name not in types:
        others = f"`scanline train {plan.recipe.name} {plan.game} --help` names all of them."
        near = nearest(name, types, others)
        raise RefusedError(f"The recipe {plan.recipe.name} has no setting {name!r}; {near}")
    hint = str if name == "network" else types[name]
    return list(dict.fromkeys(_read(value, hint) for value in values))


def _read(value: Any, hint: Any) -> Any:
    """A value as the setting's type wants it; text stands for numbers, yes, no and none."""
    if not isinstance(value, str):
        return _as_float(tuple(value) if isinstance(value, list) else value, hint)
    for read in _READINGS:
        try:
            found = _as_float(read(value), hint)
        except (ValueError, KeyError):
            continue
        if settings.fits(found, hint):
            return found
    return value  # the plan refuses it in its own words


def _as_float(value: Any, hint: Any) -> Any:
    """Whole numbers of a setting that takes any number: 1 and 1.0 are the same cell."""
    return float(value) if type(value) is int and settings.fits(0.5, hint) else value


_WORDS = {"true": True, "false": False, "none": None}
_READINGS: Sequence[Callable[[str], Any]] = (int, float, lambda text: _WORDS[text.lower()], str)


def from_file(path: Path) -> dict[str, Any]:
    """Keys of a TOML file: recipes, games, seeds, first_seed, and one per setting."""
    try:
        found = tomllib.loads(path.read_text())
    except FileNotFoundError:
        raise RefusedError(f"There is no file {path}; --file names a sweep in TOML.") from None
    except (OSError, ValueError) as error:
        raise RefusedError(f"{path} is no TOML: {error}.") from error
    for key, value in found.items():
        if isinstance(value, dict):
            raise RefusedError(
                f"{path} has a table [{key}]; write every axis on a line of its own: "
                "learning_rate = [1e-4, 3e-4]."
            )
    return {key.replace("-", "_"): value for key, value in found.items()}


def made_of(keys: Mapping[str, Any]) -> Sweep:
    """A sweep of keys as a file and the command line have them; one value is a list of one."""
    own = {key: keys[key] for key in _KEYS if key in keys}
    lists = {key: value if isinstance(value, list) else [value] for key, value in keys.items()}
    for key in ("recipes", "games"):
        own[key] = [str(value) for value in lists.get(key, [])]
    axes = {key: value for key, value in lists.items() if key not in _KEYS}
    return Sweep(**own, axes=axes)
