"""`scanline reproduce learning`: does every recipe learn, with exactly its own settings?

Rows of recipe, game and seed, each a run of a queue with a limit of steps, training time and score;
results are the run's curve and its evaluation games, beside what was published. A row says what it
must reach. Knows no recipe's inside.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from scanline import recipes
from scanline.queue.result import read_result
from scanline.reports import read_run
from scanline.tables import Table

from .claims import Claim, Finding
from .experiment import Cell, Experiment, Result, Results, Scale
from .figures import figure
from .learning import SCORE, plot_curves, scored, thinned, values_of

MINUTES, AGENT_STEPS = 45.0, 8_000_000
"""Longest training of a policy-gradient recipe on Pong at the desk, whichever ends first: minutes
say little on a machine that is shared."""
WINS = 18.0
"""Mean of the last 100 training games that ends a run on Pong."""
RISES_ABOVE = -10.0
"""What 30 evaluation games of a value-based recipe must exceed on Pong after its steps."""

VALUE_BASED = (
    *("dqn", "fast-dqn", "accelerated-dqn", "accelerated-categorical-dqn", "accelerated-rainbow"),
)
SHORT = {
    **dict.fromkeys(("cule-dqn", "fast-dqn-repo", "accelerated-dqn-async"), 250_000),
    **{name: 500_000 for name in recipes.RECIPES if name.startswith("cule-vtrace-")},
}
"""Rows that are shown and not judged, with their agent steps."""
POLICY_GRADIENT = tuple(name for name in recipes.RECIPES if name not in {*VALUE_BASED, *SHORT})
"""All others, those of new recipes too."""
GAMES = ("breakout", "space_invaders", "qbert", "seaquest")


@dataclass(frozen=True, kw_only=True)
class Row:
    """One run, and what it must show."""

    recipe: str
    game: str = "pong"
    seed: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Limits and logging; a recipe's own settings are left alone."""
    at_least: float | None = None
    """Score that the row must reach; None where its curve is shown and not judged."""

    @property
    def name(self) -> str:
        return f"{self.recipe}-{self.game}.{self.seed}"


def desk() -> list[Row]:
    """What a machine without a GPU can show, in the order in which it is worth most."""
    wins = {"target_score": WINS, "seconds": 60 * MINUTES, "agent_steps": AGENT_STEPS}
    values, paac = {"agent_steps": 850_000}, {"agent_steps": 10_000_000}
    return [
        *(Row(recipe=name, settings=wins, at_least=WINS) for name in POLICY_GRADIENT),
        *(Row(recipe=name, settings=values, at_least=RISES_ABOVE) for name in VALUE_BASED),
        *(Row(recipe=name, settings={"agent_steps": steps}) for name, steps in SHORT.items()),
        *(Row(recipe="paac", game=game, settings=paac) for game in GAMES),
        *(Row(recipe="paac", game="breakout", seed=seed, settings=paac) for seed in (1, 2)),
    ]


def find_row(recipe: str, game: str) -> Row:
    """What a run of any seed must show; nothing where the desk has no row for it."""
    own = (row for row in desk() if (row.recipe, row.game) == (recipe, game))
    return next(own, Row(recipe=recipe, game=game))


def toy(recipe: str) -> Row:
    """Whether it works: the toy game, seconds."""
    short = {"agent_steps": 3_000, "evaluation_games": 2, "network": "mlp", "num_workers": 0}
    kept = {**short, "log_every_agent_steps": 500, "tensorboard": False, "num_envs": 8}
    return Row(recipe=recipe, game="scanline/Catch-v0", settings=kept)


def rows(scale: Scale) -> list[Row]:
    """Those of a scale; the papers' sizes are the desk's rows without limits."""
    if scale == "smoke":
        return [toy("a2c"), toy("paac")]
    return desk() if scale == "desk" else [replace(row, settings={}) for row in desk()]


def cell_of(row: Row) -> Cell:
    """The run of a row."""
    own = {"recipe": row.recipe, "game": row.game, "seed": row.seed}
    return Cell(name=row.name.replace("/", "."), settings={**own, **row.settings})


def cells(scale: Scale) -> list[Cell]:
    return [cell_of(row) for row in rows(scale)]


def measure_run(folder: Path, metrics: Sequence[str] = ()) -> Result:
    """What a finished run has come to, from the files of its folder: its curve, evaluation games,
    the highest mean of a pause for evaluation, where it had pauses, and columns of the log."""
    result, files = read_result(folder), read_run(folder)
    if result is None:
        raise ValueError(f"{folder} has no result.json that can be read")
    both = [{**rate, **row} for row, rate in zip(files.rows, files.rates, strict=True)]
    shown = thinned(both)
    points = [[r["agent_steps"], round(r["training_seconds"], 1), r[SCORE]] for r in shown]
    kept = ("agent_steps", "settings_sha256", "stop", "inexact", "weights_sha256")
    return {
        **{name: result[name] for name in kept},
        "minutes": result["training_minutes"],
        "score": result["training_score"],
        **{f"evaluation_{name}": record for name, record in result["evaluation"].items()},
        "best_pause": max((row["mean"] for row in files.evaluations), default=None),
        "curve": points,
        "metrics": {name: values_of(shown, name) for name in metrics},
    }


def mean_of_evaluation(result: Result, choice: str) -> float | None:
    record = result.get(f"evaluation_{choice}")
    return None if record is None else float(record["mean"])


def verdict(row: Row, result: Result) -> str:
    """In a few words, from the best of training, evaluation games and pauses for evaluation."""
    games = (mean_of_evaluation(result, choice) for choice in ("greedy", "sampled"))
    seen = [result["score"], result.get("best_pause"), *games]
    best = max((score for score in seen if score is not None), default=None)
    if best is None:
        return "no game finished"
    if row.at_least is not None and best >= row.at_least:
        return "learned"
    curve = [score for _, _, score in scored(result)]
    rises = len(curve) > 1 and curve[-1] > curve[0] + 1.0
    if row.at_least is None:
        return "rises" if rises else "told"
    return "rises, not there" if rises else "has not learned"


def tables(scale: Scale, results: Results) -> list[Table]:
    lines = []
    for row, cell in zip(rows(scale), cells(scale), strict=True):
        result = results.get(cell.name)
        if result is None:
            continue
        evaluations = [mean_of_evaluation(result, choice) for choice in ("greedy", "sampled")]
        figures = [result["agent_steps"], result["minutes"], result["score"], *evaluations]
        lines.append([row.recipe, row.game, row.seed, *figures, verdict(row, result)])
    names = ("recipe", "game", "seed", "steps", "minutes", "score", "greedy", "sampled", "verdict")
    return [Table(title="Runs with the recipes' own settings", columns=names, rows=lines, digits=4)]


def plot(scale: Scale, results: Results, path: Path) -> None:
    """Curves over steps, a picture per game."""
    games = sorted({row.game for row in rows(scale)})
    with figure(path, len(games), 1) as axes:
        for each, game in zip(axes, games, strict=True):
            shown = [
                (cell.name, results[cell.name])
                for row, cell in zip(rows(scale), cells(scale), strict=True)
                if row.game == game and cell.name in results
            ]
            plot_curves(each, shown)
            each.set(title=game)


def _all_learn(results: Results, names: Sequence[str], at_least: float) -> Finding:
    found = {n: results[f"{n}-pong.0"] for n in names if f"{n}-pong.0" in results}
    if not found:
        raise KeyError("any row of them")
    row = {name: Row(recipe=name, at_least=at_least) for name in found}
    wrong = [name for name in found if verdict(row[name], found[name]) != "learned"]
    words = f"{len(found) - len(wrong)} of {len(found)} rows"
    return Finding(not wrong, f"{words}; not {', '.join(wrong)}" if wrong else words)


EXPERIMENTS = (
    Experiment(
        name="learning",
        summary="Every recipe with exactly its own settings: curves, scores, verdicts.",
        paper="No paper's table: what a researcher asks of a package first",
        cells=cells,
        measure_run=measure_run,
        tables=tables,
        claims=(
            Claim(
                f"Policy-gradient recipes win Pong (18) within {MINUTES:g} minutes.",
                "each paper's curves of Pong, on its own hardware",
                lambda results: _all_learn(results, POLICY_GRADIENT, WINS),
            ),
            Claim(
                "Value-based recipes are above -10 on Pong after 850,000 agent steps.",
                "Mnih 2015 and its successors, from far longer runs",
                lambda results: _all_learn(results, VALUE_BASED, RISES_ABOVE),
            ),
        ),
        plot=plot,
        notes=(
            "Training time and steps depend on the machine where a row has a limit of minutes.",
            "A rate that falls over the run falls over the row's agent steps.",
            "Evaluation games: greedy, and with actions sampled as in training.",
        ),
        line=lambda result: f"score {result['score']} after {result['agent_steps']:,} steps",
    ),
)
