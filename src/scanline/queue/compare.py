"""Finished runs in groups, with the statistics that a paper prints.

Takes folders of queues and runs, and the setting that makes groups; gives a `Comparison`.
Knows neither how results came about nor how they are shown.

Figures of one kind of score (greedy, sampled, training) never meet those of another. Per game they
are of raw scores. Over games they are of human-normalised scores, on the games that every group
has played and the table of human scores has; probabilities of improvement need no normalisation,
so they are over all games that both groups have played.
"""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import RefusedError
from ..reports.runs import Points
from . import human_scores, statistics
from .outcomes import KINDS, LeftOut, Outcome, read_outcomes
from .statistics import Band, Estimate, Scores

Groups = Mapping[str, Sequence[Outcome]]
ByGame = Mapping[str, Scores]
"""Scores of one group and kind, one array of runs per game."""

OVER_GAMES: Mapping[str, statistics.Statistic] = {
    "mean": statistics.mean_over_games,
    "median": statistics.median_over_games,
    "IQM": statistics.pooled_interquartile_mean,
    "optimality gap": statistics.optimality_gap,
}
OVER_SEEDS: Mapping[str, statistics.Statistic] = {
    "mean": statistics.mean_over_games,
    "median": statistics.median,
    "IQM": statistics.interquartile_mean,
}
_NUM_THRESHOLDS, _NUM_GRID = 101, 100


@dataclass(frozen=True, kw_only=True)
class GameFigures:
    """One game, one group, one kind of score."""

    game: str
    group: str
    num_runs: int
    raw: Mapping[str, Estimate]
    human_normalised: Mapping[str, Estimate]
    """Empty for games without a human score."""


@dataclass(frozen=True, kw_only=True)
class Improvement:
    """Chance that a run of X scores higher than one of Y."""

    x: str
    y: str
    games: Sequence[str]
    chance: Estimate


@dataclass(frozen=True, kw_only=True)
class Figures:
    """All figures of one kind of score."""

    kind: str
    choices: Sequence[str]
    """How actions were chosen, in the evaluations' own words."""
    without: Sequence[str]
    """Runs that have no score of this kind."""
    per_game: Sequence[GameFigures]
    games: Sequence[str]
    """Games of the figures over games."""
    over_games: Mapping[str, Mapping[str, Estimate]]
    """By group; empty where groups share no game with a human score."""
    thresholds: Sequence[float]
    profiles: Mapping[str, Band]
    improvements: Sequence[Improvement]


@dataclass(frozen=True, kw_only=True)
class Curve:
    """Training score of one group: mean over its runs, at points that all of them have reached."""

    points: Sequence[float]
    band: Band


@dataclass(frozen=True, kw_only=True)
class CurvePicture:
    """Curves of all groups on one game, or human-normalised over games."""

    game: str | None
    over: str
    curves: Mapping[str, Curve]


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Everything that is shown or written."""

    by: str
    groups: Groups
    left_out: Sequence[LeftOut]
    mixed: Mapping[str, Sequence[str]]
    """By group: settings in which its runs differ, so that its spread is not of seeds alone."""
    without_human_score: Sequence[str]
    figures: Sequence[Figures]
    pictures: Sequence[CurvePicture]
    source: str = human_scores.SOURCE
    resamples: int = statistics.RESAMPLES
    confidence: float = statistics.CONFIDENCE


def compare(paths: Sequence[Path], by: str = "recipe") -> Comparison:
    """Reads, groups and computes."""
    outcomes, left_out = read_outcomes(paths)
    if not outcomes:
        raise RefusedError(_nothing(left_out))
    groups = grouped(outcomes, by)
    _refuse_no_common_game(groups)
    kinds = [kind for kind in KINDS if any(kind in run.scores for run in outcomes)]
    return Comparison(
        by=by,
        groups=groups,
        left_out=left_out,
        mixed={name: _mixed(runs, by) for name, runs in groups.items()},
        without_human_score=sorted({r.game for r in outcomes} - human_scores.SCORES.keys()),
        figures=[_figures(groups, kind) for kind in kinds],
        pictures=[picture for picture in _pictures(groups) if picture.curves],
    )


def _nothing(left_out: Sequence[LeftOut]) -> str:
    first = f": {left_out[0].path}: {left_out[0].reason}" if left_out else ""
    return f"There is no finished run to compare ({len(left_out)} left out{first})."


# Groups


def grouped(outcomes: Iterable[Outcome], by: str) -> dict[str, list[Outcome]]:
    """Runs by the values of one setting or of several, e.g. `recipe,learning_rate`."""
    outcomes = list(outcomes)
    names = [name.strip().replace("-", "_") for name in by.split(",")]
    for name in names:
        _refuse_unknown(name, outcomes)
    keyed = sorted(((_key(run, names), run) for run in outcomes), key=lambda pair: _order(pair[0]))
    groups: dict[str, list[Outcome]] = {}
    for key, run in keyed:
        words = (_label(name, value) for name, value in zip(names, key, strict=True))
        groups.setdefault(", ".join(words), []).append(run)
    return groups


def _key(run: Outcome, names: Sequence[str]) -> list[Any]:
    return [_value(run, name) for name in names]


def _value(run: Outcome, name: str) -> Any:
    own = {"recipe": run.recipe, "game": run.game, "seed": run.seed}
    return own[name] if name in own else run.settings.get(name)


def _label(name: str, value: Any) -> str:
    return str(value) if name == "recipe" else f"{name} {value}"


def _order(key: Sequence[Any]) -> list[tuple[bool, float, str]]:
    """Numbers by size before everything else by its words."""
    numeric = [isinstance(v, int | float) and not isinstance(v, bool) for v in key]
    return [(not n, v if n else 0.0, str(v)) for v, n in zip(key, numeric, strict=True)]


def _refuse_unknown(name: str, outcomes: Sequence[Outcome]) -> None:
    known = {"recipe", "game", "seed"}.union(*(run.settings for run in outcomes))
    if name not in known:
        near = difflib.get_close_matches(name, known, n=3) or ["recipe", "learning_rate"]
        raise RefusedError(
            f"--by {name}: these runs have no setting of that name; try {' or '.join(near)}."
        )


def _refuse_no_common_game(groups: Groups) -> None:
    played = {name: sorted({run.game for run in runs}) for name, runs in groups.items()}
    if not set.intersection(*map(set, played.values())):
        words = "; ".join(f"{name}: {', '.join(found)}" for name, found in played.items())
        raise RefusedError(
            f"The groups have no game in common ({words}); give each group runs of the same games."
        )


def _mixed(runs: Sequence[Outcome], by: str) -> list[str]:
    names = dict.fromkeys(name for run in runs for name in run.settings)
    grouping = {"recipe", *by.replace("-", "_").split(",")}
    seen = {name: {str(run.settings.get(name)) for run in runs} for name in names}
    return [name for name, values in seen.items() if len(values) > 1 and name not in grouping]


# Figures


def _figures(groups: Groups, kind: str) -> Figures:
    """Everything about one kind of score; groups without it do not take part."""
    scores = {name: _by_game(runs, kind) for name, runs in groups.items()}
    scores = {name: by_game for name, by_game in scores.items() if by_game}
    every = [run for runs in groups.values() for run in runs]
    games = _common_games(scores.values())
    normal = {name: [_normal(g, by_game[g]) for g in games] for name, by_game in scores.items()}
    thresholds = _thresholds(normal.values()) if games else np.zeros(0)
    return Figures(
        kind=kind,
        choices=sorted({run.choices[kind] for run in every if kind in run.choices}),
        without=[run.path for run in every if kind not in run.scores],
        per_game=_per_game(scores),
        games=games,
        over_games={n: _estimates(OVER_GAMES, v) for n, v in normal.items() if games},
        thresholds=thresholds.tolist(),
        profiles={
            n: statistics.performance_profile(v, thresholds) for n, v in normal.items() if games
        },
        improvements=[
            found
            for pair in itertools.combinations(scores, 2)
            for found in _improved(scores, *pair)
        ],
    )


def _by_game(runs: Sequence[Outcome], kind: str) -> dict[str, Scores]:
    found: dict[str, list[float]] = {}
    for run in sorted(runs, key=lambda run: run.game):
        if kind in run.scores:
            found.setdefault(run.game, []).append(run.scores[kind])
    return {game: np.array(scores) for game, scores in found.items()}


def _common_games(groups: Iterable[Mapping[str, Any]]) -> list[str]:
    """Games of all groups that have a human score."""
    return sorted(set.intersection(*map(set, groups)) & human_scores.SCORES.keys())


def _normal(game: str, scores: Scores) -> Scores:
    return human_scores.normalised(game, scores)


def _per_game(scores: Mapping[str, ByGame]) -> list[GameFigures]:
    games = sorted({game for by_game in scores.values() for game in by_game})
    return [
        _figures_of_game(game, name, by_game[game])
        for game in games
        for name, by_game in scores.items()
        if game in by_game
    ]


def _figures_of_game(game: str, group: str, scores: Scores) -> GameFigures:
    raw = _estimates(OVER_SEEDS, [scores])
    known = raw if game in human_scores.SCORES else {}
    return GameFigures(
        game=game,
        group=group,
        num_runs=len(scores),
        raw=raw,
        human_normalised={name: _normal_estimate(game, each) for name, each in known.items()},
    )


def _normal_estimate(game: str, raw: Estimate) -> Estimate:
    """Normalisation is linear and keeps the order, so it may follow the bootstrap."""
    low, high = (
        None if end is None else float(human_scores.normalised(game, end))
        for end in (raw.low, raw.high)
    )
    return Estimate(float(human_scores.normalised(game, raw.value)), low, high)


def _estimates(
    figures: Mapping[str, statistics.Statistic], games: Sequence[Scores]
) -> dict[str, Estimate]:
    return {name: statistics.estimate(figure, games) for name, figure in figures.items()}


def _improved(scores: Mapping[str, ByGame], x: str, y: str) -> Iterable[Improvement]:
    games = sorted(scores[x].keys() & scores[y].keys())
    if games:
        both = [scores[name][game] for name in (x, y) for game in games]
        chance = statistics.estimate(statistics.probability_of_improvement, both)
        yield Improvement(x=x, y=y, games=games, chance=chance)


def _thresholds(groups: Iterable[Sequence[Scores]]) -> Scores:
    every = np.concatenate([scores for games in groups for scores in games])
    low, high = max(-1.0, min(0.0, every.min())), min(8.0, max(1.0, every.max()))
    return np.linspace(np.floor(low * 10) / 10, np.ceil(high * 10) / 10, _NUM_THRESHOLDS)


# Curves


def _pictures(groups: Groups) -> Iterable[CurvePicture]:
    """Training scores over agent steps and over hours: over games first, then game by game."""
    games = sorted({run.game for runs in groups.values() for run in runs})
    played = [{run.game: None for run in runs} for runs in groups.values()]
    common = _common_games(played)
    axes: dict[str, Callable[[Outcome], Points]] = {
        "agent steps": lambda run: run.by_steps,
        "hours of training": lambda run: run.by_hours,
    }
    sets = ([(None, common)] if len(common) > 1 else []) + [(game, [game]) for game in games]
    for (game, members), (over, points_of) in itertools.product(sets, axes.items()):
        curves = {
            name: curve
            for name, runs in groups.items()
            for curve in _curve([run for run in runs if run.game in members], points_of, game)
        }
        yield CurvePicture(game=game, over=over, curves=curves)


def _curve(
    runs: Sequence[Outcome], points_of: Callable[[Outcome], Points], game: str | None
) -> Iterable[Curve]:
    """The curve of a group where all its runs have points; raw for one game."""
    lines = [np.array(points_of(run)) for run in runs]
    if not lines or not all(len(line) for line in lines):
        return
    first, last = max(line[0, 0] for line in lines), min(line[-1, 0] for line in lines)
    if first > last:
        return
    grid = np.linspace(first, last, _NUM_GRID if last > first else 1)
    by_game: dict[str, list[Scores]] = {}
    for run, line in zip(runs, lines, strict=True):
        scores = np.interp(grid, line[:, 0], line[:, 1])
        by_game.setdefault(run.game, []).append(scores if game else _normal(run.game, scores))
    statistic = OVER_SEEDS["mean"] if game else statistics.pooled_interquartile_mean
    stacked = [np.stack(scores, axis=-1) for scores in by_game.values()]
    yield Curve(points=grid.tolist(), band=statistics.band(statistic, stacked))
