"""GA3C (Babaeizadeh 2017): what the smallest training batch does to lag, speed and learning.

`ga3c-batch-size` measures Figure 7: trainers join segments until an update has so many steps, from
a single segment upwards; scores against time, and the policy lag of what was learned.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from scanline.tables import Table

from .claims import Finding, claim
from .experiment import Cell, Experiment, Result, Results, Scale, grid
from .figures import figure
from .ga3c import PAPER
from .learning import best_score, by_game, deepest_fall, learning_curve, mean_of, plot_curves

LAG = "perf/policy_lag"
SEGMENT_AGENT_STEPS = 5
GOOD = (20, 40)
"""Between these the paper's results are best."""

SIZES: Mapping[Scale, Mapping[str, Any]] = {
    "smoke": {"games": ["pong"], "batches": [1, 20, 40, 80], "seconds": 40.0, "num_envs": 32},
    "desk": {
        "games": ["pong", "boxing"],
        "batches": [1, 10, 20, 40, 80, 160],
        "seconds": 1_800.0,
        "num_envs": 32,
    },
    "paper": {
        "games": ["pong", "boxing", "qbert"],
        "batches": [1, 10, 20, 40, 80, 160],
        "seconds": 10_800.0,
        "num_envs": 128,
    },
}


def cells(scale: Scale) -> list[Cell]:
    sizes = dict(SIZES[scale])
    axes = {"game": sizes.pop("games"), "batch": sizes.pop("batches")}
    return grid("{game}-{batch}", axes, **sizes)


def measure(cell: Cell, before: Results) -> Result:
    asked = cell.settings
    return learning_curve(
        "ga3c",
        asked["game"],
        metrics=(LAG,),
        seconds=asked["seconds"],
        num_envs=asked["num_envs"],
        min_batch_agent_steps=asked["batch"],
        torch_threads=1,
    )


def learned_agent_steps(batch: int) -> int:
    """Steps of an update: whole segments."""
    return -(-batch // SEGMENT_AGENT_STEPS) * SEGMENT_AGENT_STEPS


def tables(scale: Scale, results: Results) -> list[Table]:
    rows = [
        [
            name,
            learned_agent_steps(int(name.rpartition("-")[2])),
            r["updates"] / r["seconds"],
            r["agent_sps"],
            mean_of(r, LAG),
            r["score"],
            best_score(r),
            deepest_fall(r),
        ]
        for name, r in results.items()
    ]
    columns = ("game-least", "steps", "TPS", "PPS", "lag", "score", "best", "fall")
    notes = (
        "steps: of an update, whole segments of 5. lag: updates between acting and learning. fall: "
        "the most that the score lost since an earlier height.",
        "The paper's figure has curves and no numbers in its text; best between 20 and 40.",
    )
    title = "Figure 7: least steps of an update"
    return [Table(title=title, columns=columns, rows=rows, digits=2, notes=notes)]


def plot(scale: Scale, results: Results, path: Path) -> None:
    games = by_game(results)
    with figure(path, 2, len(games)) as axes:
        for row, (game, own) in enumerate(games.items()):
            named = [(f"least {batch}", result) for batch, result in own.items()]
            plot_curves(axes[2 * row], named, over="minutes")
            axes[2 * row].set_title(game)
            lags = [mean_of(result, LAG) or 0.0 for result in own.values()]
            axes[2 * row + 1].plot(list(own), lags, "o-")
            axes[2 * row + 1].set(title=game, xlabel="least steps", ylabel="policy lag, updates")


def _pairs(results: Results, value: Callable[[Result], float | None]) -> dict[str, list[Any]]:
    """What a game has with a minimum of 1, and with one of 40."""
    return {
        game: [value(own[batch]) for batch in ("1", "40")] for game, own in by_game(results).items()
    }


def _falls(pairs: Mapping[str, list[Any]], name: str) -> Finding:
    """Whether a figure is lower with 40 than with 1, in every game."""
    if any(None in pair for pair in pairs.values()):
        return Finding(None, f"some runs have no {name}")
    words = ", ".join(f"{game} {one:.2f} to {many:.2f}" for game, (one, many) in pairs.items())
    return Finding(all(many < one for one, many in pairs.values()), f"{name}: {words}")


@claim("A minimum of 40 instead of 1 reduces the policy lag.", "section 5.3")
def _less_lag(results: Results) -> Finding:
    return _falls(_pairs(results, lambda result: mean_of(result, LAG)), "lag in updates")


@claim("Larger training batches mean fewer updates per second.", "section 5.3")
def _fewer_updates(results: Results) -> Finding:
    return _falls(_pairs(results, lambda r: r["updates"] / r["seconds"]), "updates per second")


@claim("A minimum of 40 instead of 1 makes convergence more stable.", "Figure 7")
def _steadier(results: Results) -> Finding:
    return _falls(_pairs(results, deepest_fall), "deepest fall of the score")


@claim("The best results come with a minimum between 20 and 40.", "Figure 7")
def _best_between(results: Results) -> Finding:
    """Whether the best score of all is reached with 20 to 40 steps."""
    found = {}
    for game, own in by_game(results).items():
        scores = {batch: best_score(result) for batch, result in own.items()}
        reached = {int(batch): score for batch, score in scores.items() if score is not None}
        if len(reached) < len(scores):
            return Finding(None, f"no game of {game} finished with some of them")
        found[game] = max(reached, key=reached.__getitem__)
    words = ", ".join(f"{game} {batch}" for game, batch in found.items())
    holds = all(GOOD[0] <= batch <= GOOD[1] for batch in found.values())
    return Finding(holds, f"best with {words}")


EXPERIMENTS = (
    Experiment(
        name="ga3c-batch-size",
        summary="GA3C's policy lag, speed and score with larger and larger training batches.",
        paper=f"{PAPER}, Figure 7",
        cells=cells,
        measure=measure,
        tables=tables,
        claims=(_less_lag, _fewer_updates, _steadier, _best_between),
        plot=plot,
        notes=("A minimum of 1 is one segment of 5 steps, as in the released code.",),
        line=lambda result: f"score {result['score']} at {result['agent_sps']:,.0f} steps/s",
    ),
)
