"""`scanline new` and `scanline check`: a recipe of a user's own begun, and examined.

Takes words of the command line; gives an exit code. A new file is one of the examples, which are
installed with the package, under the user's name. Knows no part of a recipe.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import tyro

from .errors import RefusedError, nearest
from .recipes import RECIPES

_INSTALLED, _IN_SOURCES = (
    Path(__file__).parent / "examples",
    Path(__file__).parents[2] / "examples",
)
DEFAULT_TEMPLATE = "qr-dqn"
DEFAULT_GAME = "pong"


def templates() -> dict[str, Path]:
    """Examples that define a recipe, by the name of their file."""
    folder = _INSTALLED if _INSTALLED.is_dir() else _IN_SOURCES
    return {
        file.stem.replace("_", "-"): file
        for file in sorted(folder.glob("*.py"))
        if "\nrecipe = Recipe(" in file.read_text()
    }


@dataclass(frozen=True, kw_only=True)
class NewOptions:
    """Begin a recipe of your own: one file with a loss, a network and settings, explained."""

    name: tyro.conf.Positional[str]
    """What it is called. The name of an example (qr-dqn, iqn, pqn, ...) begins with that one."""
    template: str = ""
    """The example to begin with, where the name is none of them."""
    out: Path | None = None
    """The file; NAME.py here when not given. One that is there already is kept, and refused."""


def new(words: list[str], program: str) -> int:
    """Writes a recipe's file and says what to do with it."""
    if not words:
        raise RefusedError(f"new needs a name, e.g. `{program} {DEFAULT_TEMPLATE}`.")
    options = tyro.cli(NewOptions, args=words, prog=program)
    name = options.name.replace("_", "-")
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]*", name):
        raise RefusedError(f"{options.name!r} is no name; use small letters, digits and dashes.")
    target = options.out or Path(f"{name.replace('-', '_')}.py")
    if target.exists():
        raise RefusedError(f"{target} is there already; choose another file with --out.")
    target.write_text(_written(name, target, _template(options.template or name, options)))
    print(f"{target} is a recipe that runs as it is. Now:")
    print(f"  scanline check {target}")
    print(f"  scanline train {target} {DEFAULT_GAME}")
    return 0


def _template(name: str, options: NewOptions) -> Path:
    known = templates()
    if options.template and name not in known:
        raise RefusedError(f"There is no example {name!r}; {nearest(name, known)}")
    return known.get(name, known[DEFAULT_TEMPLATE])


def _written(name: str, target: Path, template: Path) -> str:
    """The example's text with the user's names; a name of a built-in recipe stays with that one."""
    own = f"own-{name}" if name in RECIPES else name
    text = template.read_text()
    text = re.sub(rf"(examples/)?\b{template.name}\b", target.name, text)
    return re.sub(r'(\nrecipe = Recipe\(\n    name=)"[^"]+"', rf'\1"{own}"', text)


def check(words: list[str], program: str) -> int:
    """Prints one line per check; 1 where one failed."""
    if not words or words[0] in ("-h", "--help"):
        print(
            f"usage: {program} FILE [GAME] [options of train]\n\nRuns a file's recipe through: "
            "shapes, one update, gradients, save and load, determinism, resume, kernels, and speed "
            f"beside the nearest built-in recipe. GAME is {DEFAULT_GAME} when not given."
        )
        return 0
    from . import train_options, training

    file, *rest = words
    game = rest.pop(0) if rest and not rest[0].startswith("-") else DEFAULT_GAME
    plan = training.make_plan(file, game)
    plan = training.changed_plan(plan, train_options.parse(plan, rest, f"{program} {file} {game}"))
    print(f"{plan.recipe.name} on {game}: {plan.recipe.summary}")
    failed = 0
    for finding in training.check(plan):
        failed += finding.verdict == "FAIL"
        print(f"{finding.verdict:8}{finding.check:15}{finding.detail}", flush=True)
    return 1 if failed else 0
