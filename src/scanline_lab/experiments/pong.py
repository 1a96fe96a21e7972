"""Pong learned from nothing: minutes, agent steps and curves of four recipes.

`pong-minutes` trains V-trace, PPO, PAAC and GA3C until the mean of the last 100 games reaches a
score; a run that does not within its time counts as failed. The settings are chosen for few CPU
cores (the small network, normalised pixels, A2C's optimiser); at the scale `paper` they are the
recipes' own, and V-trace is the published `cule-vtrace` instead of the retuned `vtrace`.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scanline.tables import Table

from .claims import Finding, claim
from .cule import PAPER, PAPER_ROWS
from .experiment import Cell, Experiment, Result, Results, Scale
from .learning import by_game, learning_curve, plot_groups

GAME = "pong"
MEMORY = "perf/memory_bytes"
FIRST_SECONDS = 60.0
"""Until then buffers fill; memory that grows later is lost."""


@dataclass(frozen=True)
class Learner:
    """A recipe, the score that it is trained to, and what is set otherwise on a CPU."""

    target_score: float
    settings: Mapping[str, Any] = field(default_factory=dict)


_PIXELS = {"network": "nips-orthogonal", "normalise_pixels": True}
"""What decides on Pong: a pixel that the ball seldom visits stands out by many deviations when it
does. With bytes as they come, V-trace had learned nothing after 600,000 steps."""

_RMSPROP = {
    "learning_rate": 7e-4,
    "epsilon": 1e-5,
    "epsilon_inside_root": False,
    "square_starts_at": 0.0,
    "max_grad_norm": 0.5,
}
"""CuLE's form with A2C's rate. With an epsilon of 0.1, as in PAAC and GA3C, gradients are hardly
divided by their size: expected to be slower here, not measured."""

LEARNERS: Mapping[str, Learner] = {
    "vtrace": Learner(18.0),
    "ppo": Learner(18.0, {**_PIXELS, "learning_rate": 5e-4}),
    "paac": Learner(
        18.0,
        {
            **_PIXELS,
            **_RMSPROP,
            "scale_with_envs": "none",
            "num_envs": 16,
            "rollout_agent_steps": 10,
            "entropy_coef": 0.003,
        },
    ),
    "ga3c": Learner(
        0.0,
        {
            **_PIXELS,
            **_RMSPROP,
            "reduction": "mean",
            "rollout_agent_steps": 10,
            "min_batch_agent_steps": 80,
            "envs_per_agent": 8,
            "entropy_coef": 0.003,
            "num_envs": 32,
            "value_coef": 0.5,
        },
    ),
}
PUBLISHED = {"vtrace": "cule-vtrace"}
"""Rows of a paper that are retuned here for a CPU."""
PAPER_MINUTES = {"cule-vtrace": PAPER_ROWS[GAME, (120, 20, 20, 1)][2]}
"""To 18, with six cores and a Titan V on Gym environments, for the settings of that row alone; the
other papers give none."""

SIZES: Mapping[Scale, Mapping[str, Any]] = {
    "smoke": {"seeds": [0], "seconds": 15.0},
    "desk": {"seeds": [0, 1, 2], "seconds": 7_200.0},
    "paper": {"seeds": [0, 1, 2], "seconds": 86_400.0},
}


def learners(scale: Scale) -> Mapping[str, Learner]:
    """The recipes, at the scale `paper` as they are published."""
    if scale != "paper":
        return LEARNERS
    return {PUBLISHED.get(n, n): Learner(each.target_score) for n, each in LEARNERS.items()}


def cells(scale: Scale) -> list[Cell]:
    """One run per recipe and seed; every recipe has its first before any has its second."""
    sizes = SIZES[scale]
    return [
        Cell(
            name=f"{recipe}.{seed}",
            settings={
                "recipe": recipe,
                "seed": seed,
                "seconds": sizes["seconds"],
                "target_score": learner.target_score,
                "settings": dict(learner.settings),
            },
        )
        for seed, (recipe, learner) in itertools.product(sizes["seeds"], learners(scale).items())
    ]


def measure(cell: Cell, before: Results) -> Result:
    asked = cell.settings
    return learning_curve(
        asked["recipe"],
        GAME,
        seconds=asked["seconds"],
        target_score=asked["target_score"],
        seed=asked["seed"],
        log_every_agent_steps=5_000,
        metrics=(MEMORY,),
        **asked["settings"],
    )


def by_recipe(results: Results) -> dict[str, dict[str, Result]]:
    """Results by recipe, then by seed."""
    return by_game(results, ".") if results else {}


def grown_megabytes(result: Result) -> float | None:
    """What the process has taken since its first minute, at most."""
    later = {steps for steps, seconds, _ in result["curve"] if seconds >= FIRST_SECONDS}
    taken = [num_bytes for steps, num_bytes in result["metrics"][MEMORY] if steps in later]
    return (max(taken) - taken[0]) / 1e6 if taken else None


def tables(scale: Scale, results: Results) -> list[Table]:
    rows = [
        [
            name,
            learners(scale)[name.rpartition(".")[0]].target_score,
            "yes" if result["reached"] else "no",
            result["seconds"] / 60,
            result["agent_steps"] / 1e6,
            result["agent_sps"],
            result["score"],
            grown_megabytes(result),
            PAPER_MINUTES.get(name.rpartition(".")[0]),
        ]
        for name, result in results.items()
    ]
    columns = (
        *("recipe.seed", "target", "reached", "min", "Msteps", "steps/s", "score"),
        *("grown MB", "paper min"),
    )
    title = "Pong: minutes and million agent steps until the mean of 100 games reaches the target"
    return [Table(title=title, columns=columns, rows=rows, digits=1)]


def plot(scale: Scale, results: Results, path: Path) -> None:
    recipes = by_recipe(results).items()
    plot_groups(path, {name: [(f"seed {s}", r) for s, r in own.items()] for name, own in recipes})


@claim(
    "A2C with V-trace and CuLE's batching reaches 18 on Pong in 8.4 minutes.",
    "Table 3, 120 Gym environments, 20 batches and 20 steps, six cores and a Titan V",
    scales=("paper",),
)
def _learns_within_minutes(results: Results) -> Finding:
    """Of the published row alone: `vtrace` is another one, retuned, and says nothing of it."""
    found = by_recipe(results)
    runs = [run for name in PAPER_MINUTES for run in found.get(name, {}).values()]
    if not runs:
        raise KeyError("cule-vtrace, which the scale paper runs")
    reached = [run["seconds"] / 60 for run in runs if run["reached"]]
    words = f"{len(reached)} of {len(runs)} runs reached it"
    if not reached:
        return Finding(None, words)
    median, paper = statistics.median(reached), PAPER_MINUTES["cule-vtrace"]
    return Finding(
        paper is not None and median <= paper, f"{words}, after {median:.1f} min (median)"
    )


EXPERIMENTS = (
    Experiment(
        name="pong-minutes",
        summary="Pong from nothing: minutes and steps of V-trace, PPO, PAAC and GA3C to a score.",
        paper=f"{PAPER}, Table 3; curves of the others have no numbers in their text",
        cells=cells,
        measure=measure,
        tables=tables,
        claims=(_learns_within_minutes,),
        plot=plot,
        notes=(
            "Minutes are training time: without evaluation, start and checkpoints.",
            "Grown: memory of the process since its first minute, at most.",
            "Below the scale paper the settings are ours, made for few cores: no paper's minutes "
            "stand beside them.",
        ),
        line=lambda result: (
            f"score {result['score']} after {result['seconds'] / 60:.1f} min, "
            f"{result['agent_sps']:,.0f} steps/s"
        ),
    ),
)
