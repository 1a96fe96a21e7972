"""Statistics against slow definitions, hand-made examples and figures of rliable."""

from __future__ import annotations

import itertools
import math
import random
import statistics as plain

import numpy as np
import pytest
from scipy import stats

from scanline.queue import statistics
from scanline.queue.statistics import Estimate, estimate

# Five runs (rows) on four games (columns): figures below were computed with rliable 1.2.0.
A = [
    [0.68, 1.02, 0.02, 0.0],
    [0.55, 1.63, 0.67, 0.76],
    [2.82, 6.06, 3.29, 0.0],
    [2.27, 0.07, 1.07, 0.85],
    [3.15, 0.35, 0.31, 1.49],
]
B = [
    [1.03, 0.59, 2.44, 0.53],
    [0.74, 0.38, 1.0, 1.41],
    [0.59, 2.23, 0.27, 3.31],
    [1.48, 3.56, 4.4, 1.6],
    [1.16, 0.26, 1.7, 0.3],
]
RAGGED = [[1.0, 2.0, 5.0], [0.5, 0.25], [3.0, -1.0, 0.0, 2.0, 9.0, 0.125]]


def games(rows: list[list[float]]) -> list[statistics.Scores]:
    return [np.array(column) for column in zip(*rows, strict=True)]


def ragged() -> list[statistics.Scores]:
    return [np.array(game) for game in RAGGED]


def slow_iqm(values: list[float]) -> float:
    """Sort, drop a quarter (rounded down) at each end, average the rest."""
    kept = sorted(values)
    for _ in range(len(values) // 4):
        kept.pop(0)
        kept.pop()
    return plain.fmean(kept)


@pytest.mark.parametrize("count", range(1, 14))
def test_the_interquartile_mean_is_the_mean_of_the_middle_half(count: int) -> None:
    draw = random.Random(count)
    values = [draw.gauss(0, 10) for _ in range(count)]
    found = statistics.interquartile_mean(np.array(values))
    assert found == pytest.approx(slow_iqm(values))


def test_interquartile_means_by_hand() -> None:
    assert statistics.interquartile_mean(np.array([8.0, 1.0, 2.0, 3.0])) == 2.5
    assert statistics.interquartile_mean(np.array([1.0, 2.0, 3.0, 4.0, 100.0])) == 3.0
    assert statistics.interquartile_mean(np.array([1.0, 2.0, 9.0])) == 4.0  # nothing to drop


def test_figures_over_games_follow_their_definitions_with_unequal_seeds() -> None:
    means = [sum(game) / len(game) for game in RAGGED]
    short = [sum(1 - min(score, 1.0) for score in game) / len(game) for game in RAGGED]
    pooled = [score for game in RAGGED for score in game]
    assert statistics.mean_over_games(*ragged()) == pytest.approx(sum(means) / 3)
    assert statistics.median_over_games(*ragged()) == pytest.approx(sorted(means)[1])
    assert statistics.optimality_gap(*ragged()) == pytest.approx(sum(short) / 3)
    assert statistics.pooled_interquartile_mean(*ragged()) == pytest.approx(slow_iqm(pooled))


def test_an_optimality_gap_by_hand() -> None:
    # Below 1 counts what is missing; above 1 counts nothing: (0.5 + 0 + 1.2 + 0) / 4.
    assert statistics.optimality_gap(np.array([0.5, 3.0]), np.array([-0.2, 1.0])) == pytest.approx(
        0.425
    )
    assert statistics.optimality_gap(np.array([0.5, 3.0]), gamma=2.0) == pytest.approx(0.75)


def test_a_human_normalised_score_by_hand() -> None:
    found = statistics.normalised([-20.7, 14.6, -3.05], random=-20.7, human=14.6)
    assert found.tolist() == pytest.approx([0.0, 1.0, 0.5])


def slow_improvement(x: list[list[float]], y: list[list[float]]) -> float:
    chances = []
    for mine, other in zip(x, y, strict=True):
        wins = 0.0
        for a, b in itertools.product(mine, other):
            wins += 1.0 if a > b else 0.5 if a == b else 0.0
        chances.append(wins / (len(mine) * len(other)))
    return sum(chances) / len(chances)


def test_the_probability_of_improvement_counts_pairs_and_half_of_ties() -> None:
    x, y = [[1.0, 2.0, 2.0], [0.0, 5.0]], [[2.0, 0.5], [5.0, 5.0, 1.0]]
    found = statistics.probability_of_improvement(*map(np.array, x), *map(np.array, y))
    assert found == pytest.approx(slow_improvement(x, y))
    # By hand: (1+1+1 wins over 0.5, two ties at 2, one loss) / 6; (5 ties twice, beats 1) / 6.
    assert found == pytest.approx((4 / 6 + 2 / 6) / 2)


def test_the_probability_of_improvement_of_one_game_is_mann_whitneys_u_per_pair() -> None:
    draw = np.random.default_rng(3)
    x, y = draw.integers(0, 6, 9).astype(float), draw.integers(1, 7, 7).astype(float)
    u = stats.mannwhitneyu(x, y).statistic
    assert statistics.probability_of_improvement(x, y) == pytest.approx(u / (9 * 7))


def test_point_estimates_are_those_of_rliable() -> None:
    figures = [
        statistics.mean_over_games,
        statistics.median_over_games,
        statistics.pooled_interquartile_mean,
        statistics.optimality_gap,
    ]
    assert [f(*games(A)) for f in figures] == pytest.approx([1.353, 1.449, 0.907, 0.337])
    assert [f(*games(B)) for f in figures] == pytest.approx([1.449, 1.417, 1.13, 0.217])
    assert statistics.probability_of_improvement(*games(A), *games(B)) == pytest.approx(0.43)


@pytest.mark.parametrize(
    ("statistic", "low", "high"),
    [
        (statistics.mean_over_games, 0.798, 1.998),
        (statistics.median_over_games, 0.615, 1.999),
        (statistics.pooled_interquartile_mean, 0.511, 1.603),
        (statistics.optimality_gap, 0.185, 0.4995),
    ],
)
def test_intervals_are_those_of_rliable_up_to_chance(
    statistic: statistics.Statistic, low: float, high: float
) -> None:
    found = estimate(statistic, games(A))
    assert found.low == pytest.approx(low, abs=0.06)
    assert found.high == pytest.approx(high, abs=0.06)


def test_the_interval_of_an_improvement_is_that_of_rliable_up_to_chance() -> None:
    found = estimate(statistics.probability_of_improvement, [*games(A), *games(B)])
    assert (found.low, found.high) == (
        pytest.approx(0.25, abs=0.03),
        pytest.approx(0.62, abs=0.03),
    )


def test_a_profile_is_that_of_rliable() -> None:
    found = statistics.performance_profile(games(A), np.array([0, 0.5, 1, 2.0]))
    assert found.values == pytest.approx([0.9, 0.7, 0.45, 0.25])
    assert found.low == pytest.approx([0.8, 0.5, 0.25, 0.1], abs=0.051)
    assert found.high == pytest.approx([1.0, 0.9, 0.65, 0.4], abs=0.051)


def slow_interval(rows: list[list[float]], seed: int) -> tuple[float, float]:
    """Draw runs with replacement within each game, average, sort, cut 2.5 % at each end."""
    draw, results = random.Random(seed), []
    for _ in range(2_000):
        means = [plain.fmean(draw.choices(game, k=len(game))) for game in rows]
        results.append(plain.fmean(means))
    results.sort()
    return results[50], results[1949]


def test_the_bootstrap_draws_runs_within_each_game() -> None:
    found = estimate(statistics.mean_over_games, ragged())
    low, high = slow_interval(RAGGED, seed=1)
    assert found.low == pytest.approx(low, abs=0.12) and found.high == pytest.approx(high, abs=0.12)
    # Far-apart games without spread of their own: drawing across games would give a wide interval.
    apart = [np.array([0.0, 0.0]), np.array([100.0, 100.0])]
    assert estimate(statistics.mean_over_games, apart) == Estimate(50.0, 50.0, 50.0)


def test_equal_input_gives_equal_intervals() -> None:
    first, second = (estimate(statistics.mean_over_games, ragged()) for _ in range(2))
    assert first == second


def test_a_game_with_one_run_leaves_no_interval() -> None:
    found = estimate(statistics.mean_over_games, [np.array([1.0, 3.0]), np.array([4.0])])
    assert found == Estimate(3.0, None, None)


def test_a_band_draws_the_same_runs_at_every_point() -> None:
    runs = np.array([[0.0, 10.0], [0.0, 10.0], [5.0, 5.0]])  # [points, runs]
    found = statistics.band(statistics.mean_over_games, [runs])
    assert found.values == [5.0, 5.0, 5.0]
    assert found.low == [0.0, 0.0, 5.0] and found.high == [10.0, 10.0, 5.0]


def test_intervals_cover_the_truth_about_as_often_as_they_say() -> None:
    draw, covered, trials = np.random.default_rng(5), 0, 40
    for _ in range(trials):
        found = estimate(statistics.mean_over_games, [draw.normal(1.0, 1.0, 20) for _ in range(3)])
        assert found.low is not None and found.high is not None
        covered += found.low <= 1.0 <= found.high
    assert covered >= math.floor(0.8 * trials)
