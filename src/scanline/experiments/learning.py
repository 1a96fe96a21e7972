"""Learning curves for experiments: a recipe trained for a while, as plain figures.

Takes a recipe, a game and settings; gives the curve of scores, rates, and when a score was reached.
Knows no experiment.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .. import training
from .experiment import Result

SCORE = "charts/episodic_return"
MOST_POINTS = 200


def learning_curve(
    recipe: str, game: str, *, agent_steps: int, metrics: Sequence[str] = (), **settings: Any
) -> dict[str, Any]:
    """Trains in a folder that is thrown away; a target score ends the run earlier.

    `metrics` are columns of the log that are kept beside the score.
    """
    every = max(agent_steps // MOST_POINTS, 1)
    quiet = {"live": False, "tensorboard": False, "save_at_end": False, "save_every_minutes": 0}
    with tempfile.TemporaryDirectory() as folder:
        run = training.train(
            recipe,
            game,
            out=Path(folder) / "run",
            say=lambda sentence: None,
            agent_steps=agent_steps,
            log_every_agent_steps=every,
            **{**quiet, **settings},
        )
        rows, rates = (_rows(run.folder / name) for name in ("progress.jsonl", "rates.jsonl"))
    curve = [
        [row["agent_steps"], round(rate["training_seconds"], 3), row[SCORE]]
        for row, rate in zip(rows, rates, strict=True)
    ]
    kept = {
        name: [[row["agent_steps"], row[name]] for row in rows if row.get(name) is not None]
        for name in metrics
    }
    return {
        **({"metrics": kept} if metrics else {}),
        "curve": curve,
        "agent_steps": run.agent_steps,
        "seconds": run.training_seconds,
        "agent_sps": run.agent_steps / run.training_seconds,
        "updates": rows[-1]["updates"] if rows else 0,
        "score": run.score,
        "reached": run.stop.kind == "target_score",
    }


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def scored(result: Result) -> list[tuple[int, float, float]]:
    """(agent steps, seconds, score) where a game had finished."""
    return [
        (steps, seconds, score) for steps, seconds, score in result["curve"] if score is not None
    ]


def steps_to(result: Result, score: float) -> int | None:
    """Agent steps until the mean score was first so high."""
    return next((steps for steps, _, found in scored(result) if found >= score), None)


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
