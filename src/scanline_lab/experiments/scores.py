"""Score experiments: agents over games, beside a paper's numbers and a human's.

Takes a study, which is data: agents (recipe and settings), games, steps by scale, the paper's
scores; gives an experiment whose cells are runs of a queue. Scores are human-normalised with one
table for all, the paper's numbers too (`scanline.queue.human_scores`). Knows no paper.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from scanline.queue import human_scores
from scanline.tables import Table

from .claims import Claim, Finding
from .evidence import mean_of_evaluation, measure_run
from .experiment import Cell, Experiment, Result, Results, Scale
from .learning import mean_of, plot_groups

RATES: Mapping[str, float] = {
    **{"paac": 10_000, "accelerated-a2c": 4_000, "accelerated-a3c": 3_400, "ga3c": 1_700},
    **{"accelerated-ppo": 1_500, "accelerated-appo": 1_300},
    **dict.fromkeys(("fast-dqn", "accelerated-dqn", "accelerated-rainbow"), 130),
    "accelerated-categorical-dqn": 130,
}
"""Agent steps per second of whole runs on Pong on two cores, to tell what a scale costs; moving
pictures and larger networks or batches than a recipe's own take longer."""

Score = Callable[[Result], float | None]
Scores = Mapping[tuple[str, str], float]
"""By contestant and game."""
Judge = Callable[[Scores], Finding]
Published = Mapping[str, Mapping[str, float]]
"""Scores of a paper by agent, then by game."""


DESK_GAMES = ("pong", "breakout", "qbert", "space_invaders")
QUIET = {"evaluation_games": 2, "log_every_agent_steps": 500, "tensorboard": False}
"""Of runs of seconds."""
SHORT_REPLAY = {"learning_starts_agent_steps": 512, "capacity_agent_steps": 4_000}


def by_scale(desk: int, paper: int, smoke: int = 2_048) -> Mapping[Scale, int]:
    """Agent steps of a run."""
    return {"smoke": smoke, "desk": desk, "paper": paper}


@dataclass(frozen=True, kw_only=True)
class Contestant:
    """One agent of a paper's table: a recipe, changed in a few settings."""

    recipe: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    agent_steps: Mapping[Scale, int]


@dataclass(frozen=True, kw_only=True)
class Extent:
    """How much of a study a scale runs."""

    games: Sequence[str]
    contestants: Sequence[str] = ()
    """Names of those that run; all when empty."""
    num_seeds: int = 1
    settings: Mapping[str, Any] = field(default_factory=dict)
    """What the scale sets for every run."""


@dataclass(frozen=True, kw_only=True)
class Study:
    """A paper's table or figure of scores, as data."""

    name: str
    summary: str
    paper: str
    contestants: Mapping[str, Contestant]
    extents: Mapping[Scale, Extent]
    score: Score
    """Which of a run's scores counts."""
    score_words: str
    """The same in words, and what the paper's statistic is."""
    over_seeds: Callable[[Sequence[float]], float] = statistics.fmean
    """One score of several seeds."""
    published: Published = field(default_factory=dict)
    published_normalised: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Where the paper gives no more than them: mean and median over games, 1 is human."""
    claims: Sequence[tuple[str, str, Judge]] = ()
    """Of scores, decided at the scale `paper`: sentence, source, predicate."""
    more_claims: Sequence[Claim] = ()
    """Of all that the runs have left."""
    metrics: Sequence[str] = ()
    """Columns of the log that are kept."""
    notes: Sequence[str] = ()


def tested(result: Result) -> float | None:
    """Mean of the evaluation games with actions as in training."""
    return mean_of_evaluation(result, "sampled")


def trained(result: Result) -> float | None:
    """Mean of the last 100 training games."""
    score: float | None = result["score"]
    return score


def best_pause(result: Result) -> float | None:
    """Highest mean of a pause for evaluation; of the games after the run where it had none."""
    best: float | None = result["best_pause"]
    return tested(result) if best is None else best


def cells(study: Study, scale: Scale) -> list[Cell]:
    """A run per game, contestant and seed."""
    extent = study.extents[scale]
    return [
        Cell(
            name=f"{game}-{name}.{seed}",
            settings={
                **{"recipe": contestant.recipe, "game": game, "seed": seed},
                **{"agent_steps": contestant.agent_steps[scale]},
                **{**contestant.settings, **extent.settings},
            },
        )
        for seed in range(extent.num_seeds)
        for game in extent.games
        for name, contestant in study.contestants.items()
        if name in (extent.contestants or study.contestants)
    ]


def scores_of(study: Study, results: Results) -> Scores:
    """One score per contestant and game that has any."""
    seeds: dict[tuple[str, str], list[float]] = {}
    for cell, result in results.items():
        game, _, name = cell.rpartition(".")[0].partition("-")
        score = study.score(result)
        if score is not None:
            seeds.setdefault((name, game), []).append(score)
    return {place: study.over_seeds(values) for place, values in seeds.items()}


def percent(game: str, score: float | None) -> float | None:
    """Human-normalised: 0 is play at random, 100 the human; None where no human has played it."""
    if score is None or game not in human_scores.SCORES:
        return None
    return 100.0 * float(human_scores.normalised(game, score))


def tables(study: Study, scale: Scale, results: Results) -> list[Table]:
    """Every game, then means and medians over games; smoke prints none of the paper's numbers."""
    found = scores_of(study, results)
    published = {} if scale == "smoke" else study.published
    rows = []
    for (name, game), score in sorted(found.items(), key=lambda item: item[0][::-1]):
        reference = human_scores.SCORES.get(game)
        paper = published.get(name, {}).get(game)
        ends = (reference.random, reference.human) if reference else (None, None)
        rows.append([game, name, *ends, score, percent(game, score), paper, percent(game, paper)])
    columns = ("game", "agent", "random", "human", "here", "%", "paper", "paper %")
    note = f"{study.score_words} %: human-normalised, with {human_scores.SOURCE}."
    own = Table(title="Scores", columns=columns, rows=rows, digits=1, notes=(note,), num_left=2)
    more = [_metrics(results)] if study.metrics else []
    return [own, _over_games(study, scale, found), *more]


def _over_games(study: Study, scale: Scale, found: Scores) -> Table:
    rows = []
    for name in dict.fromkeys(name for name, _ in found):
        own = [percent(game, score) for (agent, game), score in found.items() if agent == name]
        values = [value / 100 for value in own if value is not None]
        here = (statistics.fmean(values), statistics.median(values)) if values else (None, None)
        paper = None if scale == "smoke" else study.published_normalised.get(name)
        rows.append([name, len(values), *here, *(paper or (None, None))])
    columns = ("agent", "games", "mean", "median", "paper mean", "paper median")
    return Table(title="Human-normalised, over games (1 is human)", columns=columns, rows=rows)


def _metrics(results: Results) -> Table:
    """Means of the kept metrics over each run."""
    names = sorted({name for result in results.values() for name in result["metrics"]})
    rows = [
        [cell, *(mean_of(result, name) if name in result["metrics"] else None for name in names)]
        for cell, result in results.items()
    ]
    short = [name.removeprefix("norms/") for name in names]
    return Table(title="Means over the run", columns=("run", *short), rows=rows, digits=6)


def plot(scale: Scale, results: Results, path: Path) -> None:
    """Curves of training scores by game, over steps and over minutes."""
    games: dict[str, list[tuple[str, Result]]] = {}
    for cell, result in results.items():
        game, _, rest = cell.partition("-")
        games.setdefault(game, []).append((rest, result))
    plot_groups(path, games)


def reaches(name: str, other: Mapping[str, float], at_least: int, share: float = 1.0) -> Judge:
    """Whether a contestant has this share of other scores in so many games; the share is of the
    distance from play at random."""

    def find(scores: Scores) -> Finding:
        found = {game: score for (agent, game), score in scores.items() if agent == name}
        games = [game for game in other if game in found]
        if not games:
            raise KeyError(name)
        random = {game: human_scores.SCORES[game].random for game in games}
        good = [g for g in games if found[g] - random[g] >= share * (other[g] - random[g])]
        return Finding(len(good) >= at_least, f"{len(good)} of {len(games)} games")

    return find


def hours(runs: Sequence[Cell]) -> float:
    """About how long two cores need for runs, from rates that are rough."""
    seconds = (float(c.settings["agent_steps"]) / RATES[c.settings["recipe"]] for c in runs)
    return sum(seconds) / 3_600


def experiment(study: Study) -> Experiment:
    """The study as something that `scanline reproduce` runs."""
    desk, paper = (hours(cells(study, scale)) for scale in ("desk", "paper"))
    claims = (
        Claim(sentence, source, lambda found, j=judge: j(scores_of(study, found)), ("paper",))  # type: ignore[misc]
        for sentence, source, judge in study.claims
    )
    return Experiment(
        name=study.name,
        summary=study.summary,
        paper=study.paper,
        cells=lambda scale: cells(study, scale),
        measure_run=partial(measure_run, metrics=study.metrics),
        tables=lambda scale, results: tables(study, scale, results),
        claims=(*claims, *study.more_claims),
        plot=plot,
        notes=(
            *study.notes,
            f"On two cores desk takes about {desk:,.0f} hours, paper about {paper:,.0f}.",
        ),
        line=lambda result: f"score {result['score']} after {result['agent_steps']:,} steps",
    )
