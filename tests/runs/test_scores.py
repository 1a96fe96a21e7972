"""The score counts games in the order of their start, against a slow definition."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scanline.records import EpisodeEnd
from scanline.runs.scores import Scores


def end(started_at: int, score: float, length: int = 1) -> EpisodeEnd:
    return EpisodeEnd(0, score, length, started_at)


def counted_by_definition(finished: dict[int, tuple[float, int]]) -> list[tuple[float, int]]:
    """Every finished game all of whose predecessors have finished, in the order of start."""
    return [
        finished[start]
        for start in sorted(finished)
        if all(earlier in finished for earlier in range(start))
    ]


@st.composite
def finishing_orders(draw: st.DrawFn) -> list[list[EpisodeEnd]]:
    num = draw(st.integers(0, 30))
    games = [end(i, draw(st.integers(-5, 5)), draw(st.integers(1, 9))) for i in range(num)]
    order = draw(st.permutations(games))
    cuts = sorted(draw(st.lists(st.integers(0, num), max_size=5)))
    return [order[a:b] for a, b in zip([0, *cuts], [*cuts, num], strict=True)]


@given(finishing_orders(), st.integers(1, 7), st.integers(0, 5))
def test_the_mean_equals_its_definition_after_every_delivery(
    deliveries: list[list[EpisodeEnd]], window: int, resume_at: int
) -> None:
    scores, finished, best = Scores(window), {}, None
    for place, delivery in enumerate(deliveries):
        if place == resume_at:
            saved, scores = scores.state(), Scores(window)
            scores.load(saved)
        scores.add(delivery)
        finished |= {e.started_at: (e.score, e.length_agent_steps) for e in delivery}
        games = counted_by_definition(finished)
        newest = games[-window:]
        assert scores.counted == len(games)
        assert scores.waiting == len(finished) - len(games)
        if newest:
            assert scores.mean == pytest.approx(sum(s for s, _ in newest) / len(newest))
            assert scores.mean_length == pytest.approx(sum(n for _, n in newest) / len(newest))
        else:
            assert scores.mean is None
        windows = [games[i - window : i] for i in range(window, len(games) + 1)]
        best = max((sum(s for s, _ in w) / window for w in windows), default=None)
        assert scores.best == (None if best is None else pytest.approx(best))
        assert (scores.full_mean is None) == (len(games) < window)


def test_short_games_are_not_favoured() -> None:
    """Half of the games are short and score 0, half are long and score 1: the truth is 0.5."""
    rng = random.Random(0)
    waiting = Scores(10_000)
    as_finished: list[float] = []
    num_envs, started = 64, 0
    running: dict[int, tuple[int, int, float]] = {}
    for now in range(1_500):
        for env in range(num_envs):
            if env not in running:
                long = rng.random() < 0.5
                running[env] = (now + (1_000 if long else 10), started, float(long))
                started += 1
            done_at, number, score = running[env]
            if now >= done_at:
                del running[env]
                as_finished.append(score)
                waiting.add([end(number, score)])
    biased = sum(as_finished) / len(as_finished)
    assert biased < 0.4
    assert waiting.mean == pytest.approx(0.5, abs=0.1)


def test_a_game_that_was_counted_cannot_come_again() -> None:
    scores = Scores()
    scores.add([end(0, 1.0)])
    with pytest.raises(AssertionError, match="game 0"):
        scores.add([end(0, 1.0)])
