"""The page of a run, or of several side by side: one HTML file that needs nothing else.

Takes folders of runs; writes headline figures, curves, rates, the time split and all settings.
Runs that differ in nothing but their seed are drawn as one curve: their mean, with a band.
Knows the names of the log's columns and nothing of how they came about.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from operator import methodcaller
from pathlib import Path
from typing import Any

from ..files import replace_file
from ..settings import flat
from . import charts
from .layout import document, section, table
from .runs import SCORE, SECONDS, STEPS, Points, ReportError, RunFiles, number, read_run
from .seeds import Curves, curves_of, mean_with_band

REPORT = "report.html"
_SPEED_CHARTS = {
    "charts/SPS": "Agent steps per second",
    "perf/updates_per_second": "Updates per second",
    "perf/memory_bytes": "Memory, bytes",
    "perf/policy_lag": "Policy lag, updates",
}
_FOOTER = (
    "<footer><p>Agent steps are decisions of one environment; raw frames are those times the "
    "frame skip. Training time leaves evaluation out. Scores are unclipped means of the last "
    "games in the order of their start.</p></footer>"
)
NamedRuns = Mapping[str, RunFiles]
"""Runs under short names that tell them apart."""


def write(folders: Sequence[Path], out: Path | None = None) -> Path:
    """One page for these runs; in the run's own folder where there is one run and no `out`."""
    if not folders:
        raise ReportError("A report needs at least one run; name the folder of one.")
    runs = [read_run(folder) for folder in folders]
    path = out or (folders[0] / REPORT if len(runs) == 1 else Path(REPORT))
    if path.is_dir():
        path = path / REPORT
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, html(runs).encode())
    return path


def html(runs: Sequence[RunFiles]) -> str:
    """The whole page."""
    named, alone = _named(runs), len(runs) == 1
    curves = curves_of(named)
    title = runs[0].title if alone else f"{len(runs)} runs"
    about = [_about(runs[0])] if alone else []
    losses = dict.fromkeys(name for run in runs for name in run.names("losses/"))
    others = ("charts/learning_rate", "charts/episodic_length")
    learning = {name: name.split("/")[1].replace("_", " ") for name in (*losses, *others)}
    parts = [
        f"<h1>{escape(title)}</h1>",
        *(f'<p class="sub">{escape(line)}</p>' for line in (*about, *_inexact(named))),
        "<h2>Results</h2>" + _headlines(named),
        "" if alone else charts.legend(list(curves)),
        section("Score", _score_charts(curves), "No game has ended yet: there is no score."),
        section("Speed", _charts(curves, _SPEED_CHARTS)),
        "<h2>Where the time went</h2>" + "".join(map(_time_split, named, runs)),
        section("Learning", _charts(curves, learning)),
        "<h2>Settings</h2>" + _settings(named),
        _FOOTER,
    ]
    return document(title, parts)


def _named(runs: Sequence[RunFiles]) -> NamedRuns:
    titles = [run.title for run in runs]
    return {
        run.title if titles.count(run.title) == 1 else f"{run.title} ({run.path.name})": run
        for run in runs
    }


def _about(run: RunFiles) -> str:
    machine, versions = run.record.get("machine", {}), run.record.get("versions", {})
    words = [
        f"begun {run.record.get('started', 'at an unknown time')}",
        f"{machine.get('processor')}, {machine.get('num_cores')} cores",
        f"scanline {versions.get('scanline')}, torch {versions.get('torch')}",
    ]
    resumed = run.record.get("resumed", [])
    return "; ".join([*words, *([f"resumed {len(resumed)} times"] if resumed else [])])


def _inexact(runs: NamedRuns) -> Iterable[str]:
    """A line for each run that a resume may have changed, or would."""
    for name, run in runs.items():
        if reasons := run.record.get("inexact"):
            yield (
                f"{name} is not exact: once resumed, it does not end bit for bit like a run that "
                f"was never stopped ({'; '.join(map(str, reasons))})."
            )


def _headlines(runs: NamedRuns) -> str:
    columns = ["run", "agent steps", "raw frames", "updates", "training time", "steps/s"]
    columns += ["score at the end", "best score", "best evaluation"]
    return table(columns, [[name, *_figures(run)] for name, run in runs.items()])


def _figures(run: RunFiles) -> list[str]:
    scores = [score for _, score in run.points(SCORE)]
    last: Mapping[str, Any] = run.rows[-1] if run.rows else {}
    best = run.best_evaluation
    counts = [run.agent_steps, *(number(last.get(name)) for name in ("raw_frames", "updates"))]
    logged, seconds = number(last.get(STEPS)), run.training_seconds
    return [
        *("-" if count is None else f"{count:,.0f}" for count in counts),
        _duration(seconds) if seconds else "-",
        f"{logged / seconds:,.0f}" if logged and seconds else "-",
        f"{scores[-1]:,.1f}" if scores else "-",
        f"{max(scores):,.1f}" if scores else "-",
        f"{best[1]:,.1f} at {best[0]:,.0f}" if best else "-",
    ]


def _score_charts(curves: Curves) -> list[str]:
    def by_minutes(run: RunFiles) -> Points:
        return [(x / 60, y) for x, y in run.points(SCORE, SECONDS)]

    return [
        *_charts(curves, {SCORE: "Score over agent steps"}),
        _chart("Score over training time", curves, by_minutes, "minutes of training"),
        _chart("Score of evaluations", curves, lambda run: run.evaluated),
    ]


def _charts(curves: Curves, titles: Mapping[str, str]) -> list[str]:
    """Metrics over agent steps, each with its title."""
    return [_chart(title, curves, methodcaller("points", name)) for name, title in titles.items()]


def _chart(
    title: str, curves: Curves, points_of: Callable[[RunFiles], Points], over: str = "agent steps"
) -> str:
    found = {name: mean_with_band(list(map(points_of, runs))) for name, runs in curves.items()}
    lines = {name: points for name, (points, _) in found.items()}
    return charts.line_chart(title, lines, over, {name: band for name, (_, band) in found.items()})


def _time_split(name: str, run: RunFiles) -> str:
    return f'<p class="sub">{escape(name)}</p>{charts.share_bar(run.split_seconds())}'


def _settings(runs: NamedRuns) -> str:
    """All settings of one run; of several those that differ first."""
    columns = {name: flat(run.record["settings"]) for name, run in runs.items()}
    names = list(dict.fromkeys(key for column in columns.values() for key in column))
    rows = {key: [str(column.get(key, "-")) for column in columns.values()] for key in names}
    if len(runs) == 1:
        return _folded("all settings", ["setting", "value"], rows)
    differing = {key: row for key, row in rows.items() if len(set(row)) > 1}
    equal = {key: row[:1] for key, row in rows.items() if len(set(row)) == 1}
    first = table(["differs", *columns], [[key, *row] for key, row in differing.items()])
    return first + _folded("equal in all runs", ["setting", "value"], equal)


def _folded(title: str, columns: Sequence[str], rows: Mapping[str, Sequence[str]]) -> str:
    cells = table(columns, [[key, *row] for key, row in rows.items()], num_left=2)
    return f"<details><summary>{title} ({len(rows)})</summary>{cells}</details>"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"
