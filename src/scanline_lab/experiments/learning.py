"""Learning curves for experiments: a recipe trained for a while, as plain figures.

Takes a recipe, a game, a limit and settings; gives the curve of scores, rates, and when a score was
reached. Knows no experiment.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from scanline import training
from scanline.reports import read_run

from .claims import Finding
from .experiment import Result, Results
from .figures import figure

SCORE = "charts/episodic_return"
MOST_POINTS = 200
LOG_EVERY_AGENT_STEPS = 500
"""Between two rows of a run that a time limits: it is not known before how far it comes."""


def learning_curve(
    recipe: str,
    game: str,
    *,
    agent_steps: int | None = None,
    metrics: Sequence[str] = (),
    **settings: Any,
) -> dict[str, Any]:
    """Trains in a folder that is thrown away; a target score or `seconds` may end the run earlier.

    `metrics` are columns of the log that are kept beside the score. A run that a signal ended is
    no result: KeyboardInterrupt goes on to whoever measures.
    """
    limit = {} if agent_steps is None else {"agent_steps": agent_steps}
    every = max(agent_steps // MOST_POINTS, 1) if agent_steps else LOG_EVERY_AGENT_STEPS
    quiet = {"live": False, "tensorboard": False, "save_at_end": False, "save_every_minutes": 0}
    with tempfile.TemporaryDirectory() as folder:
        run = training.train(
            recipe,
            game,
            out=Path(folder) / "run",
            say=lambda sentence: None,
            **{"log_every_agent_steps": every, **limit, **quiet, **settings},
        )
        if run.stop.kind == "signal":
            raise KeyboardInterrupt(run.stop.sentence)
        files = read_run(run.folder)
    both = [{**rate, **row} for row, rate in zip(files.rows, files.rates, strict=True)]
    points = thinned(both)
    kept = {name: values_of(points, name) for name in metrics}
    return {
        **({"metrics": kept} if metrics else {}),
        "curve": [
            [row["agent_steps"], round(row["training_seconds"], 3), row[SCORE]] for row in points
        ],
        "agent_steps": run.agent_steps,
        "seconds": run.training_seconds,
        "agent_sps": run.agent_steps / run.training_seconds,
        "updates": files.rows[-1]["updates"] if files.rows else 0,
        "score": run.score,
        "reached": run.stop.kind == "target_score",
    }


def thinned(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """At most `MOST_POINTS` rows at equal distances, the last one among them."""
    apart = -(-len(rows) // MOST_POINTS) or 1
    return list(rows[::-1][::apart][::-1])


def values_of(rows: Sequence[Mapping[str, Any]], metric: str) -> list[list[Any]]:
    """[agent steps, value] of the rows that have it."""
    return [[row["agent_steps"], row[metric]] for row in rows if row.get(metric) is not None]


def scored(result: Result) -> list[tuple[int, float, float]]:
    """(agent steps, seconds, score) where a game had finished."""
    return [
        (steps, seconds, score) for steps, seconds, score in result["curve"] if score is not None
    ]


def by_game(results: Results, between: str = "-") -> dict[str, dict[str, Result]]:
    """Results of cells that are named game-variant, or with another sign between the two."""
    found: dict[str, dict[str, Result]] = {}
    for name, result in results.items():
        game, _, variant = name.rpartition(between)
        found.setdefault(game, {})[variant] = result
    if not found:
        raise KeyError("any game")
    return found


def best_score(result: Result) -> float | None:
    """Highest point of the curve; None before a game has finished."""
    return max((score for _, _, score in scored(result)), default=None)


def as_good(results: Results, kind: str) -> Finding:
    """Whether the last of a kind's cells still reaches most of the first one's best score."""
    own = {name: result for name, result in results.items() if name.startswith(f"{kind}-")}
    if not own:
        raise KeyError(kind)
    first, last = next(iter(own)), next(reversed(own))
    high, low = best_score(own[first]), best_score(own[last])
    if low is None or high is None:
        return Finding(None, "no game finished")
    words = f"best score {high:.1f} with {first}, {low:.1f} with {last}"
    return Finding(low >= high - 0.2 * abs(high), words)


def deepest_fall(result: Result) -> float | None:
    """Most that the score has lost since an earlier height."""
    best, fall = float("-inf"), None
    for _, _, score in scored(result):
        best = max(best, score)
        fall = max(fall or 0.0, best - score)
    return fall


def mean_of(result: Result, metric: str) -> float | None:
    """Mean over the kept points of a metric."""
    values = [value for _, value in result["metrics"][metric]]
    return sum(values) / len(values) if values else None


def last_of(result: Result, metric: str) -> float | None:
    """A metric at the end."""
    points = result["metrics"][metric]
    return float(points[-1][1]) if points else None


def steps_to(result: Result, score: float) -> int | None:
    """Agent steps until the mean score was first so high."""
    return next((steps for steps, _, found in scored(result) if found >= score), None)


def plot_groups(path: Path, groups: Mapping[str, Sequence[tuple[str, Result]]]) -> None:
    """A row per group: its labelled curves over agent steps, and over minutes."""
    with figure(path, 2, len(groups)) as axes:
        for row, (title, results) in enumerate(groups.items()):
            plot_curves(axes[2 * row], results)
            plot_curves(axes[2 * row + 1], results, over="minutes")
            axes[2 * row].set_title(title)


def plot_kinds(path: Path, results: Results, kinds: Sequence[str]) -> None:
    """A column per kind: the curves of its cells, which are named kind-variant."""
    with figure(path, len(kinds)) as axes:
        for each, kind in zip(axes, kinds, strict=True):
            plot_curves(each, [(n, r) for n, r in results.items() if n.startswith(f"{kind}-")])
            each.set_title(kind)


def plot_curves(axes: Any, results: Sequence[tuple[str, Result]], over: str = "steps") -> None:
    """Scores over agent steps, or over minutes of training."""
    for label, result in results:
        points = [
            (seconds / 60 if over == "minutes" else steps, score)
            for steps, seconds, score in scored(result)
        ]
        if points:
            axes.plot(*zip(*points, strict=True), label=label)
    axes.set(xlabel="minutes of training" if over == "minutes" else "agent steps", ylabel="score")
    axes.grid(alpha=0.3)
    if any(scored(result) for _, result in results):
        axes.legend(fontsize=7)
