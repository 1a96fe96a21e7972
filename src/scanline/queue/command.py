"""`scanline sweep`, `work` and `status`: options to calls.

Takes words of the command line; gives an exit code. Knows no part of a queue but by its calls.
"""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro
from rich.live import Live
from rich.text import Text

from .. import processes
from ..errors import RefusedError
from ..recipes import user_code
from .cells import Cell
from .code import Permission
from .folder import Queue
from .predict import predict
from .status import status_of, table
from .sweep import from_file, made_of
from .work import CORES_PER_RUN, Worker, WorkSettings

_REFRESH_SECONDS = 2.0


@dataclass(frozen=True, kw_only=True)
class SweepOptions:
    """Add cells to a queue: every combination of recipes, games, seeds and values of settings.

    Every setting of a recipe (`scanline train RECIPE GAME --help`) is an option here too, with one
    value or several: --learning-rate 1e-4,3e-4.
    """

    queue: tyro.conf.Positional[Path]
    """Folder of the queue; made where there is none."""
    recipes: str = ""
    """Names or files of recipes, with commas between."""
    games: str = ""
    """Games, with commas between."""
    seeds: int | None = None
    """Number of seeds; 1 when not given."""
    first_seed: int | None = None
    """The first of them; 0 when not given."""
    file: Path | None = None
    """TOML file with the same names as keys; options go first."""
    predict: bool = True
    """Time each recipe and game for a moment to predict hours and disk."""
    dry_run: bool = False
    """Print what would be added and write nothing."""
    any_version: bool = False
    """Add to a queue that another version of scanline has written."""


def sweep(words: Sequence[str], program: str) -> int:
    """Adds cells."""
    own, axes = _split(words)
    options = tyro.cli(SweepOptions, args=own, prog=program)
    keys = from_file(options.file) if options.file else {}
    cells = list(made_of({**keys, **_given(options), **axes}).cells())
    cells = list({cell.id: cell for cell in cells}.values())
    print(f"{len(cells)} cells, the first is {cells[0].id}")
    if options.predict:
        slots = max(len(processes.granted_core_ids()) // CORES_PER_RUN, 1)
        print(predict(cells, slots, print).sentence(slots))
    if options.dry_run:
        print("Nothing was written (--dry-run).")
        return 0
    return _add(options, cells)


def _add(options: SweepOptions, cells: Sequence[Cell]) -> int:
    queue = Queue.make(options.queue, options.any_version)
    for cell in cells:
        if cell.recipe_sha256 or user_code.module_of(cell.game):
            plan = cell.plan()
            user_code.remember(plan.recipe, plan.game)  # the user trains from what he names
    num_added = sum(queue.add(cell) for cell in cells)
    known = f", {len(cells) - num_added} were there already" if num_added < len(cells) else ""
    print(
        f"{num_added} cells were added to {queue.path}{known}. Start `scanline work {queue.path}`."
    )
    return 0


def _given(options: SweepOptions) -> dict[str, Any]:
    """Axes that have options of their own, where they were given."""
    lists = {name: _values(getattr(options, name)) for name in ("recipes", "games")}
    numbers = {name: getattr(options, name) for name in ("seeds", "first_seed")}
    return {
        **{name: values for name, values in lists.items() if values},
        **{name: value for name, value in numbers.items() if value is not None},
    }


def _values(text: str) -> list[str]:
    return [value.strip() for value in text.split(",") if value.strip()]


def _split(words: Sequence[str]) -> tuple[list[str], dict[str, list[str]]]:
    """Words of the command itself, and axes by name."""
    known = {field.name for field in dataclasses.fields(SweepOptions)}
    own: list[str] = []
    axes: dict[str, list[str]] = {}
    rest = list(words)
    while rest:
        word = rest.pop(0)
        name, equals, value = word.removeprefix("--").partition("=")
        plain = name.replace("-", "_")
        if not word.startswith("--") or plain.removeprefix("no_") in known or plain == "help":
            own.append(word)
            continue
        if not equals:
            if not rest or rest[0].startswith("--"):
                raise RefusedError(
                    f"{word} needs a value, or several with commas between (true and false too)."
                )
            value = rest.pop(0)
        axes[plain] = _values(value)
    return own, axes


@dataclass(frozen=True, kw_only=True)
class WorkOptions(WorkSettings):
    """Carry out the cells of a queue, with any number of other workers on any machines."""

    queue: tyro.conf.Positional[Path]
    """Folder of the queue."""
    recipe: tuple[Path, ...] = ()
    """Recipe files that may be run though you have not trained from them on this machine."""
    game: tuple[str, ...] = ()
    """Games of modules that may be imported though you have not trained with them."""
    retry_failed: bool = False
    """Give failed cells another chance first."""


def work(words: Sequence[str], program: str) -> int:
    """Works on a queue."""
    options = tyro.cli(WorkOptions, args=list(words), prog=program)
    queue = Queue.open(options.queue.resolve(), options.any_version)
    queue.settle()
    if options.retry_failed:
        print(f"{queue.retry_failed()} failed cells are tried again.")
    names = [field.name for field in dataclasses.fields(WorkSettings)]
    settings = WorkSettings(**{name: getattr(options, name) for name in names})
    worker = Worker(queue, settings, Permission.of(options.recipe, options.game), say=_say)
    _say(f"Working on {queue.path} with {worker.slots} runs side by side; Ctrl-C saves and stops.")
    return worker.run()


def _say(sentence: str) -> None:
    print(sentence, flush=True)


@dataclass(frozen=True, kw_only=True)
class StatusOptions:
    """Show what is done, running and failed in a queue."""

    queue: tyro.conf.Positional[Path]
    """Folder of the queue."""
    json: bool = False
    """Print a record instead of a table."""
    watch: bool = False
    """Stay and show it again every two seconds."""


def status(words: Sequence[str], program: str) -> int:
    """Shows a queue."""
    options = tyro.cli(StatusOptions, args=list(words), prog=program)
    queue = Queue.open(options.queue, any_version=True)
    if options.json:
        print(json.dumps(status_of(queue), indent=1))
    elif options.watch:
        _watch(queue)
    else:
        print(table(status_of(queue)))
    return 0


def _watch(queue: Queue) -> None:
    with Live(Text(table(status_of(queue))), auto_refresh=False) as live:
        while True:
            time.sleep(_REFRESH_SECONDS)
            live.update(Text(table(status_of(queue))), refresh=True)
