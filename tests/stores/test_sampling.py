"""Prioritised draws, weights (Schaul 2016) and the sum tree against their definitions."""

from __future__ import annotations

from collections import Counter

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from scanline import random
from scanline.stores import ReplaySettings
from scanline.stores.ring import RingLayout, RingRange
from scanline.stores.sampling import (
    Draw,
    PrioritisedRule,
    PrioritisedSampling,
    SumTree,
    UniformSampling,
    level_lengths,
    tree_bytes,
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
    """Walks through windows and feedback one index at a time."""
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
        for index, priority in feedback.items():
            if index in leaves:
                leaves[index] = (abs(priority) + 1e-6) ** 0.6
                largest = max(largest, leaves[index])
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
        indices = data.draw(st.lists(st.integers(0, 59), max_size=10, unique=True))
        given_ = {index: data.draw(st.floats(-5, 5)) for index in indices}
        if indices:
            rule.learn(np.array(indices), np.array(list(given_.values())))
        steps.append((moved, given_))
    expected = np.zeros(60)
    for index, value in priorities_by_definition(steps).items():
        expected[index] = value
    np.testing.assert_allclose(rule._tree.leaves, expected, rtol=1e-12)


@given(st.integers(0, 10**6), st.integers(0, 200))
@settings(max_examples=30, deadline=None)
def test_weights_equal_their_definition(seed: int, agent_steps: int) -> None:
    rule = SETTINGS.start(LAYOUT, 8)
    assert isinstance(rule, PrioritisedRule)
    rule.move(window([0, 0, 0], [5, 9, 2]))
    values = np.random.default_rng(seed).random(60)
    rule.learn(np.arange(60), values)
    indices = np.zeros(8, np.int64)
    rule.draw(Draw(seed, agent_steps=agent_steps), indices)
    beta = 0.4 + 0.6 * min(agent_steps / 100, 1.0)
    leaves = rule._tree.leaves
    slow = [(16 * leaves[index] / leaves.sum()) ** -beta for index in indices]
    expected = np.array(slow) / max(slow)
    assert rule.weights is not None
    # float32 weights against float64
    np.testing.assert_allclose(rule.weights.numpy(), expected, rtol=1e-6)


def test_draws_are_stratified_and_in_proportion() -> None:
    rule = PrioritisedSampling(priority_exponent=1.0).start(LAYOUT, 10)
    rule.move(window([0, 0, 0], [1, 1, 1]))
    rule.learn(np.arange(3), np.array([1.0, 3.0, 6.0]))
    counts, indices = np.zeros(3), np.zeros(10, np.int64)
    for seed in range(400):
        rule.draw(Draw(seed), indices)
        # Ten strata: shares of 1, 3 and 6 tenths are met within one item in every single batch.
        np.testing.assert_allclose(np.bincount(indices, minlength=3), [1, 3, 6], atol=1)
        counts += np.bincount(indices, minlength=3)
    np.testing.assert_allclose(counts / counts.sum(), [0.1, 0.3, 0.6], atol=0.005)


def test_draws_within_a_stratum_follow_the_priorities() -> None:
    """One item per batch: no stratification, 4,000 draws against their expected numbers."""
    rule = PrioritisedSampling(priority_exponent=0.5).start(LAYOUT, 1)
    rule.move(window([0, 0, 0], [2, 2, 2]))
    rule.learn(np.arange(6), np.arange(1.0, 7.0) ** 2)
    counts, indices = np.zeros(6), np.zeros(1, np.int64)
    for seed in range(4000):
        rule.draw(Draw(seed), indices)
        counts[indices[0]] += 1
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
    indices = []
    for item in range(size):
        turn, env = divmod(draw.number * size + item, layout.num_envs)
        chance = random.uniforms(draw.seed, "replay", layout.first_env_id + env, turn)
        number = int((float(chance[0]) + float(chance[1]) / 2**24) * (moved.last - moved.first)[0])
        row = int(moved.first[env]) + number
        indices.append(row % layout.num_rows * layout.num_envs + env)
    return indices


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
            indices = np.zeros(size // learners, np.int64)
            rule = UniformSampling(spread="per-env").start(layout, len(indices))
            rule.move(moved)
            draw = Draw(seed, first_env_id=layout.first_env_id, number=update)
            rule.draw(draw, indices)
            assert indices.tolist() == per_env_by_definition(draw, len(indices), layout, moved)
            row, env = np.divmod(indices, layout.num_envs)
            drawn += list(zip(row.tolist(), (env + layout.first_env_id).tolist(), strict=True))
        found.append(Counter(drawn))
    assert found[0] == found[1]


def test_draws_per_environment_are_uniform_over_its_steps() -> None:
    rule = UniformSampling(spread="per-env").start(LAYOUT, 6)
    rule.move(window([15, 15, 15], [25, 25, 25]))
    counts, indices = np.zeros(60), np.zeros(6, np.int64)
    for update in range(2000):
        rule.draw(Draw(3, number=update), indices)
        counts += np.bincount(indices, minlength=60)
        assert (np.bincount(indices % 3) == 2).all()
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


def index_by_definition(leaves: np.ndarray, mark: float) -> int:
    """First index at which the running sum exceeds the mark."""
    running = 0.0
    for index, value in enumerate(leaves):
        running += value
        if running > mark:
            return index
    raise AssertionError("the mark lies beyond the sum")


@given(st.integers(0, 10**6), st.integers(1, 3000))
@settings(max_examples=60, deadline=None)
def test_finding_equals_a_walk_along_the_leaves(seed: int, size: int) -> None:
    rng = np.random.default_rng(seed)
    tree, slow = SumTree(size), np.zeros(size)
    for _ in range(4):
        indices = rng.integers(0, size, 40)
        # Eighths add without rounding, so both walks must agree on every mark.
        values = rng.integers(0, 9, 40) / 8.0
        tree.set(indices, values)
        for index, value in zip(indices, values, strict=True):
            slow[index] = value  # twice named: the last stays
    assert np.array_equal(tree.leaves, slow)
    assert tree.total == slow.sum()
    if tree.total:
        marks = rng.integers(0, int(tree.total * 8), 50) / 8.0
        expected = [index_by_definition(slow, mark) for mark in marks]
        found = np.empty(50, np.int64)
        tree.find(marks.copy(), found)
        assert found.tolist() == expected


@given(st.integers(0, 10**6), st.integers(1, 5000))
@settings(max_examples=40, deadline=None)
def test_no_rounding_finds_a_place_with_value_zero(seed: int, size: int) -> None:
    rng = np.random.default_rng(seed)
    tree = SumTree(size)
    indices = np.unique(rng.integers(0, size, 30))
    tree.set(indices, 10.0 ** rng.uniform(-12, 6, len(indices)))
    found = np.empty(200, np.int64)
    marks = np.concatenate([rng.random(198), [0.0, 1.0]]) * tree.total
    tree.find(marks, found)
    assert set(found.tolist()) <= set(indices.tolist())


@given(st.integers(0, 10**6))
@settings(max_examples=20, deadline=None)
def test_the_tree_depends_on_its_leaves_alone(seed: int) -> None:
    """After any history it equals, bit for bit, a tree that was loaded with the same leaves."""
    rng = np.random.default_rng(seed)
    tree = SumTree(40_000)
    for _ in range(30):
        tree.set(rng.integers(0, 40_000, 64), rng.random(64) * 10.0 ** rng.integers(-9, 9))
    loaded = SumTree(40_000)
    loaded.load(tree.leaves.copy())
    for mine, theirs in zip(tree._levels, loaded._levels, strict=True):
        assert np.array_equal(mine, theirs)


def test_values_that_would_poison_the_sums_are_refused() -> None:
    tree = SumTree(4)
    for wrong in (np.nan, np.inf, -1.0):
        with pytest.raises(ValueError, match="learning rate"):
            tree.set(np.array([1]), np.array([wrong]))
    tree.set(np.array([], np.int64), np.array([]))
    assert tree.total == 0.0


def test_a_million_places_need_four_levels_and_nine_bytes_each() -> None:
    assert len(level_lengths(1_000_000)) == 4
    assert tree_bytes(1_000_000) < 9e6
