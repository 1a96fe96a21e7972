"""`scanline reproduce learning-bounds`: does it still learn? Three recipes against kept bounds.

Each recipe trains on Pong for a fixed number of steps, as a run of a queue; its score must not fall
below a bound that comes from scores of several seeds. `make learning` is this experiment. What the
bounds catch is shown by `benchmarks/learning_faults.py`. Knows no recipe's inside.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scanline.tables import Table

from . import pong
from .claims import Claim, Finding
from .evidence import Row, cell_of, measure_run, toy
from .experiment import Cell, Experiment, Results, Scale
from .learning import plot_groups

LEAST_MARGIN = 3.0
"""Points of a game below the lowest seed that are chance in any case: seeds are few."""


@dataclass(frozen=True, kw_only=True)
class Bound:
    """One recipe, its fixed number of steps, and the scores that seeds had after them."""

    recipe: str
    agent_steps: int
    scores: tuple[float, ...]
    """Mean of the last 100 training games after these steps, by seed."""
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def at_least(self) -> float:
        """The lowest score seen, less a quarter of the seeds' spread."""
        margin = (max(self.scores) - min(self.scores)) / 4
        return round(min(self.scores) - max(margin, LEAST_MARGIN), 1)

    def row(self) -> Row:
        limits = {"agent_steps": self.agent_steps, "anneal": "none"}
        return Row(recipe=self.recipe, settings={**self.settings, **limits}, at_least=self.at_least)


BOUNDS = (
    Bound(
        recipe="vtrace",
        agent_steps=600_000,
        scores=(5.1, 17.6, 14.7, 13.7, 16.9, -6.5, 15.8, -0.7, 16.4, 16.8),
    ),
    Bound(
        recipe="ppo",
        agent_steps=400_000,
        scores=(12.5, -5.5, 15.7),
        settings=pong.LEARNERS["ppo"].settings,
    ),
    Bound(
        recipe="paac",
        agent_steps=1_200_000,
        scores=(4.9, -0.6, -0.9),
        settings=pong.LEARNERS["paac"].settings,
    ),
)
"""Scores of kept runs: `benchmarks/results/pong-seeds.jsonl` (vtrace, seeds 40 to 49; three of them
had won and ended before), `benchmarks/results/pong-minutes` (ppo and paac, seeds 0 to 2). Rates do
not fall here, since they would fall to zero over this short run: those of vtrace's kept runs had
fallen by a quarter, ppo's by a twentieth."""


def rows(scale: Scale) -> list[Row]:
    """Those of the bounds; for the scale smoke one recipe on the toy game, judged by nothing."""
    return [toy("paac")] if scale == "smoke" else [bound.row() for bound in BOUNDS]


def cells(scale: Scale) -> list[Cell]:
    return [cell_of(row) for row in rows(scale)]


def tables(scale: Scale, results: Results) -> list[Table]:
    known = {bound.row().name: bound for bound in BOUNDS}
    lines = [
        [
            row.name,
            results[cell_of(row).name]["agent_steps"],
            results[cell_of(row).name]["minutes"],
            results[cell_of(row).name]["score"],
            row.at_least,
            ", ".join(f"{s:g}" for s in known[row.name].scores) if row.name in known else None,
        ]
        for row in rows(scale)
        if cell_of(row).name in results
    ]
    columns = ("run", "steps", "minutes", "score", "at least", "seeds that it comes from")
    return [Table(title="Scores after a fixed number of steps", columns=columns, rows=lines)]


def holds(bound: Bound, results: Results) -> Finding:
    """Whether the score is within its bound; a run without a finished game breaks it."""
    score = results[cell_of(bound.row()).name]["score"]
    return Finding(
        score is not None and score >= bound.at_least,
        f"score {score} after {bound.agent_steps:,} steps, at least {bound.at_least}",
    )


def plot(scale: Scale, results: Results, path: Path) -> None:
    plot_groups(path, {"Pong" if scale != "smoke" else "Catch": list(results.items())})


EXPERIMENTS = (
    Experiment(
        name="learning-bounds",
        summary="Does it still learn? Three recipes for a fixed number of steps, against bounds.",
        paper="No paper's table: a guard against changes that break learning",
        cells=cells,
        measure_run=measure_run,
        tables=tables,
        claims=tuple(
            Claim(
                f"{bound.recipe} is at {bound.at_least} or more on Pong after "
                f"{bound.agent_steps:,} agent steps.",
                f"{len(bound.scores)} seeds: {min(bound.scores)} to {max(bound.scores)}",
                lambda results, bound=bound: holds(bound, results),  # type: ignore[misc]
            )
            for bound in BOUNDS
        ),
        plot=plot,
        line=lambda result: f"score {result['score']} after {result['agent_steps']:,} steps",
    ),
)
