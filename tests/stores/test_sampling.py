"""Prioritised draws and weights against their definitions (Schaul 2016)."""

from __future__ import annotations

from collections import Counter

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from scanline import random
from scanline.stores import ReplaySettings
from scanline.stores.sampling import (
    Draw,
    Draws,
    PrioritisedRule,
    PrioritisedSampling,
    RingLayout,
    RingRange,
    UniformSampling,
)

LAYOUT = RingLayout(num_rows=20, num_envs=3)
SETTINGS = PrioritisedSampling(
    priority_exponent=0.6,
    weight_exponent_start=0.4,
    weight_exponent_end=1.0,
    weight_exponent_agent_steps=100,
)


def window(first: list[int], last: list[int]) -> RingRange:
    return RingRange(np.array(first), np.array(last))


def priorities_by_definition(steps: list[tuple[RingRange, dict[int, float]]]) -> dict[int, float]:
    """Walks through windows and feedback one place at a time."""
    leaves: dict[int, float] = {}
    largest = 1.0
    before: set[tuple[int, int]] = set()
    for moved, feedback in steps:
        now = {
            (row, env)
            for env in range(LAYOUT.num_envs)
            for row in range(moved.first[env], moved.last[env])
        }
        for row, env in before - now:
            leaves.pop(row % 20 * 3 + env, None)
        for row, env in now - before:
            leaves[row % 20 * 3 + env] = largest
        before = now
        for place, priority in feedback.items():
            if place in leaves:
                leaves[place] = (abs(priority) + 1e-6) ** 0.6
                largest = max(largest, leaves[place])
    return leaves


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_priorities_follow_the_window_and_the_feedback(data: st.DataObject) -> None:
    rule = SETTINGS.start(LAYOUT, 8)
    assert isinstance(rule, PrioritisedRule)
    first, last = np.zeros(3, np.int64), np.zeros(3, np.int64)
    steps = []
    for _ in range(data.draw(st.integers(1, 8))):
        last = last + np.array([data.draw(st.integers(0, 12)) for _ in range(3)])
        first = np.maximum(first, last - 15)
        moved = RingRange(first, last)
        rule.move(moved)
        places = data.draw(st.lists(st.integers(0, 59), max_size=10, unique=True))
        given_ = {place: data.draw(st.floats(-5, 5)) for place in places}
        if places:
            rule.learn(np.array(places), np.array(list(given_.values())))
        steps.append((moved, given_))
    expected = np.zeros(60)
    for place, value in priorities_by_definition(steps).items():
        expected[place] = value
    np.testing.assert_allclose(rule._tree.leaves, expected, rtol=1e-12)


@given(st.integers(0, 10**6), st.integers(0, 200))
@settings(max_examples=30, deadline=None)
def test_weights_equal_their_definition(seed: int, agent_steps: int) -> None:
    rule = SETTINGS.start(LAYOUT, 8)
    assert isinstance(rule, PrioritisedRule)
    rule.move(window([0, 0, 0], [5, 9, 2]))
    values = np.random.default_rng(seed).random(60)
    rule.learn(np.arange(60), values)
    places = np.zeros(8, np.int64)
    rule.draw(Draw(Draws(seed), 0, agent_steps), places)
    beta = 0.4 + 0.6 * min(agent_steps / 100, 1.0)
    leaves = rule._tree.leaves
    slow = [(16 * leaves[place] / leaves.sum()) ** -beta for place in places]
    expected = np.array(slow) / max(slow)
    assert rule.weights is not None
    # float32 weights against float64
    np.testing.assert_allclose(rule.weights.numpy(), expected, rtol=1e-6)


def test_draws_are_stratified_and_in_proportion() -> None:
    rule = PrioritisedSampling(priority_exponent=1.0).start(LAYOUT, 10)
    rule.move(window([0, 0, 0], [1, 1, 1]))
    rule.learn(np.arange(3), np.array([1.0, 3.0, 6.0]))
    counts, places = np.zeros(3), np.zeros(10, np.int64)
    for seed in range(400):
        rule.draw(Draw(Draws(seed), 0, 0), places)
        # Ten strata: shares of 1, 3 and 6 tenths are met within one item in every single batch.
        np.testing.assert_allclose(np.bincount(places, minlength=3), [1, 3, 6], atol=1)
        counts += np.bincount(places, minlength=3)
    np.testing.assert_allclose(counts / counts.sum(), [0.1, 0.3, 0.6], atol=0.005)


def test_draws_within_a_stratum_follow_the_priorities() -> None:
    """One item per batch: no stratification, 4,000 draws against their expected numbers."""
    rule = PrioritisedSampling(priority_exponent=0.5).start(LAYOUT, 1)
    rule.move(window([0, 0, 0], [2, 2, 2]))
    rule.learn(np.arange(6), np.arange(1.0, 7.0) ** 2)
    counts, places = np.zeros(6), np.zeros(1, np.int64)
    for seed in range(4000):
        rule.draw(Draw(Draws(seed), 0, 0), places)
        counts[places[0]] += 1
    expected = 4000 * np.arange(1.0, 7.0) / 21
    chi = ((counts - expected) ** 2 / expected).sum()
    assert chi < 5 + 5 * np.sqrt(10)  # mean 5, deviation sqrt(10), five deviations


@pytest.mark.parametrize(
    "wrong", [{"priority_exponent": -0.1}, {"priority_offset": 0.0}, {"weight_exponent_end": 1.5}]
)
def test_settings_out_of_range_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        PrioritisedSampling(**wrong)  # type: ignore[arg-type]


def per_env_by_definition(draw: Draw, size: int, layout: RingLayout, moved: RingRange) -> list[int]:
    """One step after the other: whose turn it is, and which of its steps chance picks."""
    places = []
    for item in range(size):
        turn, env = divmod(draw.number * size + item, layout.num_envs)
        chance = random.uniforms(draw.of.seed, "replay", layout.first_env_id + env, turn)
        number = int((float(chance[0]) + float(chance[1]) / 2**24) * (moved.last - moved.first)[0])
        row = int(moved.first[env]) + number
        places.append(row % layout.num_rows * layout.num_envs + env)
    return places


@given(st.integers(0, 10**6), st.integers(0, 50), st.integers(1, 4), st.integers(1, 9))
@settings(max_examples=40, deadline=None)
def test_two_learners_draw_what_one_draws(seed: int, update: int, num: int, each: int) -> None:
    """Half the environments and half the batch each: together the very same steps."""
    num_envs, size, rows = 2 * num, 2 * num * each, 20
    first, last = np.full(num_envs, 31), np.full(num_envs, 48)
    found: list[Counter[tuple[int, int]]] = []
    for learners in (1, 2):
        drawn = []
        for rank in range(learners):
            layout = RingLayout(rows, num_envs // learners, rank * num_envs // learners)
            part = slice(layout.first_env_id, layout.first_env_id + layout.num_envs)
            moved = RingRange(first[part], last[part])
            places = np.zeros(size // learners, np.int64)
            rule = UniformSampling(spread="per-env").start(layout, len(places))
            rule.move(moved)
            draw = Draw(Draws(seed, first_env_id=layout.first_env_id), update, 0)
            rule.draw(draw, places)
            assert places.tolist() == per_env_by_definition(draw, len(places), layout, moved)
            row, env = np.divmod(places, layout.num_envs)
            drawn += list(zip(row.tolist(), (env + layout.first_env_id).tolist(), strict=True))
        found.append(Counter(drawn))
    assert found[0] == found[1]


def test_draws_per_environment_are_uniform_over_its_steps() -> None:
    rule = UniformSampling(spread="per-env").start(LAYOUT, 6)
    rule.move(window([15, 15, 15], [25, 25, 25]))
    counts, places = np.zeros(60), np.zeros(6, np.int64)
    for update in range(2000):
        rule.draw(Draw(Draws(3), update, 0), places)
        counts += np.bincount(places, minlength=60)
        assert (np.bincount(places % 3) == 2).all()
    drawable = {row % 20 * 3 + env for row in range(15, 25) for env in range(3)}
    assert set(np.flatnonzero(counts)) == drawable
    chi = ((counts[sorted(drawable)] - 400.0) ** 2 / 400.0).sum()
    assert chi < 27 + 5 * np.sqrt(2 * 27)  # 10 steps of each of 3 environments, five deviations


def test_draws_per_environment_need_equally_many_steps() -> None:
    rule = UniformSampling(spread="per-env").start(LAYOUT, 6)
    with pytest.raises(ValueError, match="use spread='steps'"):
        rule.move(window([0, 0, 0], [3, 3, 4]))
    with pytest.raises(ValueError, match="flush='completed' stores more"):
        ReplaySettings(flush="completed", sampling=UniformSampling(spread="per-env"))
