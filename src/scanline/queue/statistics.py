"""Statistics of a few runs on many games, with intervals (Agarwal et al. 2021, NeurIPS).

Takes scores as one array per game, each with one score per run (seed); games may have different
numbers of runs. Gives point estimates with stratified bootstrap intervals: runs are drawn with
replacement within each game, and an interval lies between two percentiles of the results. Equal
input gives equal output. Knows nothing of folders, groups or pages.

scipy draws the resamples and trims the means (extra `compare`; decision 0012).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import MissingPackageError

try:
    from scipy import stats
except ImportError as error:
    raise MissingPackageError(
        "`scanline compare` needs scipy; install it with `pip install scanline[compare]`."
    ) from error

Scores = NDArray[np.float64]
"""[..., N]: the last axis is the run."""
Statistic = Callable[..., Scores]
"""From one array [..., N] per game to an array [...]; `axis` is the last one."""

RESAMPLES, CONFIDENCE, SEED = 2_000, 0.95, 0
_TRIMMED_SHARE = 0.25
_MOST_VALUES = 2_000_000
"""Numbers that one batch of resamples may hold."""


@dataclass(frozen=True)
class Estimate:
    """A figure and its interval; no interval where a game has a single run."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Band:
    """Values over a grid, with an interval at each point where there is one."""

    values: list[float]
    low: list[float] | None = None
    high: list[float] | None = None


def normalised(scores: Any, random: float, human: float) -> Scores:
    """0 for random play, 1 for the human player of the table."""
    return (np.asarray(scores, dtype=np.float64) - random) / (human - random)


def interquartile_mean(scores: Scores, axis: int = -1) -> Scores:
    """Mean of the middle half: a quarter of the runs, rounded down, is left out at each end."""
    trimmed: Scores = np.asarray(stats.trim_mean(scores, _TRIMMED_SHARE, axis=axis))
    return trimmed


def median(scores: Scores, axis: int = -1) -> Scores:
    """Median of the runs of one game."""
    return np.asarray(np.median(scores, axis=axis))


def mean_over_games(*games: Scores, axis: int = -1) -> Scores:
    """Mean of the games' means: each game counts alike."""
    return np.asarray(np.mean(_means(games, axis), axis=0))


def median_over_games(*games: Scores, axis: int = -1) -> Scores:
    """Median of the games' means."""
    return np.median(_means(games, axis), axis=0)


def pooled_interquartile_mean(*games: Scores, axis: int = -1) -> Scores:
    """Mean of the middle half of all runs of all games."""
    return interquartile_mean(np.concatenate(games, axis=axis), axis=axis)


def optimality_gap(*games: Scores, axis: int = -1, gamma: float = 1.0) -> Scores:
    """How far runs fall short of gamma in the mean; what is above gamma counts as gamma."""
    return gamma - mean_over_games(*(np.minimum(game, gamma) for game in games), axis=axis)


def probability_of_improvement(*games: Scores, axis: int = -1) -> Scores:
    """Chance that a run of X beats a run of Y, a tie counting half, in the mean of the games.

    The first half of the arrays are X's, the second Y's, in the same order of games.
    Within one game it is Mann-Whitney's U divided by the number of pairs.
    """
    half = len(games) // 2
    pairs = zip(games[:half], games[half:], strict=True)
    return np.asarray(np.mean([_chance(x, y) for x, y in pairs], axis=0))


def _chance(x: Scores, y: Scores) -> Scores:
    signs = np.sign(x[..., :, None] - y[..., None, :])
    return np.asarray((1.0 + signs.mean(axis=(-2, -1))) / 2)


def estimate(statistic: Statistic, games: Sequence[Scores]) -> Estimate:
    """The figure of all runs, with its interval."""
    found = band(statistic, games)
    low = None if found.low is None else found.low[0]
    high = None if found.high is None else found.high[0]
    return Estimate(found.values[0], low, high)


def band(statistic: Statistic, games: Sequence[Scores]) -> Band:
    """A figure at each point of a grid: games are arrays [G, N], or [N] for a single point.

    A resample draws whole runs: the same ones at every point.
    """
    games = [np.atleast_2d(np.asarray(game, dtype=np.float64)) for game in games]
    values = np.atleast_1d(statistic(*games, axis=-1)).tolist()
    if min(game.shape[-1] for game in games) < 2:
        return Band(values)
    found = stats.bootstrap(
        games,
        statistic,
        axis=-1,
        vectorized=True,
        n_resamples=RESAMPLES,
        confidence_level=CONFIDENCE,
        method="percentile",
        batch=max(1, _MOST_VALUES // sum(game.size for game in games)),
        rng=np.random.default_rng(SEED),
    ).confidence_interval
    return Band(values, np.atleast_1d(found.low).tolist(), np.atleast_1d(found.high).tolist())


def performance_profile(games: Sequence[Scores], thresholds: Scores) -> Band:
    """Share of all runs whose score is above each threshold."""
    above = [(np.asarray(game)[None, :] > thresholds[:, None]).astype(float) for game in games]
    return band(_pooled_mean, above)


def _pooled_mean(*games: Scores, axis: int = -1) -> Scores:
    totals = sum(game.sum(axis=axis) for game in games)
    return np.asarray(totals / sum(game.shape[axis] for game in games))


def _means(games: Sequence[Scores], axis: int) -> list[Scores]:
    return [np.asarray(game.mean(axis=axis)) for game in games]
