"""`scanline compare`: tables on the terminal, a page, JSON and CSV.

Takes the command's words; gives an exit code. Knows no statistics: all figures are in `Comparison`.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro

from ..errors import RefusedError
from ..files import disk_errors, replace_file
from ..tables import Table
from . import comparison_page, human_scores
from .compare import Comparison, Figures, compare
from .outcomes import KINDS, Outcome
from .statistics import Estimate

PAGE = "comparison.html"


@dataclass(frozen=True, kw_only=True)
class CompareOptions:
    """Compare finished runs: scores with intervals, per game and over games."""

    runs: tyro.conf.Positional[tuple[Path, ...]]
    """Folders of queues and of runs."""
    by: str = "recipe"
    """What makes a group: recipe, any setting, or several with commas (recipe,learning_rate)."""
    out: Path | None = None
    """File or folder of the page; comparison.html here when not given."""
    csv: Path | None = None
    """File for a table with a row per run."""
    json: Path | None = None
    """File for everything: runs, figures, profiles and curves."""


def run(words: list[str], program: str) -> int:
    """Compares, prints and writes."""
    if not words:
        raise RefusedError("compare needs a queue or runs, e.g. `scanline compare runs/a runs/b`.")
    options = tyro.cli(CompareOptions, args=words, prog=program)
    comparison = compare(options.runs, options.by)
    show(comparison)
    page = options.out or Path(PAGE)
    page = page / PAGE if page.is_dir() else page
    _write(page, comparison_page.html(comparison))
    if options.csv is not None:
        _write(options.csv, as_csv(comparison))
    if options.json is not None:
        _write(options.json, as_json(comparison))
    print(f"The page is {page}")
    return 0


def _write(path: Path, text: str) -> None:
    with disk_errors(str(path), "choose another place"):
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, text.encode())


def show(comparison: Comparison) -> None:
    """Prints the figures as tables; each says which kind of score it is of."""
    for figures in comparison.figures:
        print(_per_game(figures).text() + "\n")
        if figures.over_games:
            print(_over_games(figures).text() + "\n")
        for each in figures.improvements:
            chance = comparison_page.interval(each.chance)
            print(f"{figures.kind}: {each.x} beats {each.y} with probability {chance}")
    for run in comparison.left_out:
        print(f"left out: {run.path}: {run.reason}")


def _per_game(figures: Figures) -> Table:
    rows = [[row.game, row.group, str(row.num_runs), *_cells(row.raw)] for row in figures.per_game]
    names = list(figures.per_game[0].raw)
    columns = ["game", "group", "runs", *names]
    return Table(title=f"{figures.kind} score", columns=columns, rows=rows, num_left=2)


def _over_games(figures: Figures) -> Table:
    rows = [[group, *_cells(found)] for group, found in figures.over_games.items()]
    names = list(next(iter(figures.over_games.values())))
    games = f"{len(figures.games)} game{'s' if len(figures.games) > 1 else ''}"
    title = f"{figures.kind} score, human-normalised, {games}"
    return Table(title=title, columns=["group", *names], rows=rows)


def _cells(estimates: Mapping[str, Estimate]) -> list[str]:
    return [comparison_page.interval(each) for each in estimates.values()]


def as_json(comparison: Comparison) -> str:
    """Everything, runs with their settings and curves included."""
    return json.dumps({"format_version": 1, **dataclasses.asdict(comparison)}, indent=1) + "\n"


def as_csv(comparison: Comparison) -> str:
    """A row per run, those that were left out with the reason."""
    columns = ["run", "group", "recipe", "game", "seed", "agent_steps", "training_hours", *KINDS]
    columns += [*(f"{kind}_human_normalised" for kind in KINDS), "left_out"]
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    for name, runs in comparison.groups.items():
        writer.writerows({"run": run.path, "group": name, **_row(run)} for run in runs)
    writer.writerows({"run": each.path, "left_out": each.reason} for each in comparison.left_out)
    return text.getvalue()


def _row(run: Outcome) -> dict[str, Any]:
    names = ("recipe", "game", "seed", "agent_steps", "training_hours")
    row = {name: getattr(run, name) for name in names} | dict(run.scores)
    if run.game in human_scores.SCORES:
        normal = {
            kind: float(human_scores.normalised(run.game, score))
            for kind, score in run.scores.items()
        }
        row |= {f"{kind}_human_normalised": score for kind, score in normal.items()}
    return row
