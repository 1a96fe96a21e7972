"""GA3C (Babaeizadeh 2017): what a good configuration brings, as score against time.

`ga3c-configurations` measures Figure 5: four settings of agents, predictors and trainers, all from
the same first weights, train for the same time; the frames that they play are counted.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scanline.tables import Table

from .claims import Finding, claim
from .experiment import Cell, Experiment, Result, Results, Scale
from .figures import figure, rank_correlation
from .ga3c import PAPER
from .learning import by_game, last_of, learning_curve, plot_curves

RAW_FRAMES_PER_STEP = 4
COUNTS = ("charts/agents", "charts/predictors", "charts/trainers")

SCALED: Mapping[Scale, Mapping[str, Any]] = {
    "smoke": {
        "games": ["pong"],
        "seconds": 40.0,
        "most_agents": 32,
        "adjust": {"adjust_seconds": 3.0, "settle_seconds": 1.0},
    },
    "desk": {
        "games": ["boxing", "pong"],
        "seconds": 1_800.0,
        "most_agents": 64,
        "adjust": {"adjust_seconds": 20.0, "settle_seconds": 5.0},
    },
    "paper": {
        "games": ["boxing", "pong"],
        "seconds": 10_800.0,
        "most_agents": 128,
        "adjust": {"adjust_seconds": 60.0, "settle_seconds": 10.0},
    },
}
"""The paper's best is 128/2/2 on 16 cores; smaller scales have fewer agents."""


def settings_of(scale: Scale) -> dict[str, dict[str, Any]]:
    """The four settings of the figure, as changes of the recipe."""
    most, one = SCALED[scale]["most_agents"], {"num_predictors": 1, "num_trainers": 1}
    return {
        "single": {"num_envs": 1, **one},
        "sixteen": {"num_envs": 16, **one},
        "optimal": {"num_envs": most, "num_predictors": 2, "num_trainers": 2},
        "dynamic": {
            "num_envs": most,
            "start_agents": 1,
            "adjust": True,
            **one,
            **SCALED[scale]["adjust"],
        },
    }


def cells(scale: Scale) -> list[Cell]:
    """All with seed 0, from which the first weights follow."""
    sizes, chosen = SCALED[scale], settings_of(scale)
    return [
        Cell(
            name=f"{game}-{name}",
            settings={"game": game, "seconds": sizes["seconds"], "seed": 0, "recipe": chosen[name]},
        )
        for game, name in itertools.product(sizes["games"], chosen)
    ]


def measure(cell: Cell, before: Results) -> Result:
    asked = cell.settings
    return learning_curve(
        "ga3c",
        asked["game"],
        metrics=COUNTS,
        seconds=asked["seconds"],
        seed=asked["seed"],
        torch_threads=1,
        **asked["recipe"],
    )


def _numbers(result: Result) -> str:
    """N_A/N_P/N_T at the end."""
    counts = [last_of(result, name) for name in COUNTS]
    return "-" if None in counts else "/".join(f"{count:.0f}" for count in counts)


def tables(scale: Scale, results: Results) -> list[Table]:
    rows = [
        [
            name,
            _numbers(r),
            r["agent_steps"] * RAW_FRAMES_PER_STEP / 1e6,
            r["agent_sps"],
            r["updates"] / r["seconds"],
            r["score"],
        ]
        for name, r in results.items()
    ]
    columns = ("game-setting", "N_A/N_P/N_T", "Mframes", "PPS", "TPS", "score")
    note = (
        "Numbers of threads are those at the end. The paper's figure has curves over 3 hours and "
        "no numbers in its text."
    )
    title = "Figure 5: four settings, the same time"
    return [Table(title=title, columns=columns, rows=rows, digits=2, notes=(note,))]


def plot(scale: Scale, results: Results, path: Path) -> None:
    games = by_game(results)
    with figure(path, len(games)) as axes:
        for each, (game, own) in zip(axes, games.items(), strict=True):
            plot_curves(each, list(own.items()), over="minutes")
            each.set_title(game)


@claim("Configurations that play more frames converge faster.", "Figure 5")
def _frames_decide(results: Results) -> Finding:
    """Whether settings that play more frames end with higher scores."""
    found = {}
    for game, own in by_game(results).items():
        pairs = [(r["agent_steps"], r["score"]) for r in own.values() if r["score"] is not None]
        found[game] = rank_correlation(*zip(*pairs, strict=True)) if len(pairs) > 2 else math.nan
    words = ", ".join(f"{game} {value:.2f}" for game, value in found.items())
    if any(map(math.isnan, found.values())):
        return Finding(None, f"too few finished games ({words})")
    return Finding(min(found.values()) > 0, f"rank correlation of frames and score: {words}")


@claim("1/1/1 and 16/1/1 underuse the machine: the optimal one plays more.", "section 5.2")
def _underused(results: Results) -> Finding:
    gains = {
        game: own["optimal"]["agent_sps"]
        / max(own[setting]["agent_sps"] for setting in ("single", "sixteen"))
        for game, own in by_game(results).items()
    }
    words = ", ".join(f"{game} {gain:.2f}" for game, gain in gains.items())
    holds = all(gain > 1 for gain in gains.values())
    return Finding(holds, f"times the frames of the better one: {words}")


@claim("The dynamic configuration catches up with the optimal one.", "Figure 5")
def _catches_up(results: Results) -> Finding:
    """Whether the search ends with most of the score, in spite of fewer frames."""
    holds, words = [], []
    for game, own in by_game(results).items():
        dynamic, optimal = own["dynamic"], own["optimal"]
        if dynamic["score"] is None or optimal["score"] is None:
            return Finding(None, f"no game of {game} finished")
        holds.append(dynamic["score"] >= optimal["score"] - 0.1 * abs(optimal["score"]))
        share = dynamic["agent_steps"] / optimal["agent_steps"]
        scores = f"{dynamic['score']:.1f} and {optimal['score']:.1f}"
        words.append(f"{game} {scores} with {share:.0%} of the frames")
    return Finding(all(holds), ", ".join(words))


EXPERIMENTS = (
    Experiment(
        name="ga3c-configurations",
        summary="GA3C's score against time with four settings of agents, predictors, trainers.",
        paper=f"{PAPER}, Figure 5",
        cells=cells,
        measure=measure,
        tables=tables,
        claims=(_frames_decide, _underused, _catches_up),
        plot=plot,
        notes=(
            "All settings begin with the same weights. 'single' is 1/1/1, 'sixteen' 16/1/1; "
            "'dynamic' begins with 1/1/1 and is adjusted while it runs.",
        ),
        line=lambda result: f"score {result['score']} at {result['agent_sps']:,.0f} steps/s",
    ),
)
