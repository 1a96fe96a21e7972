"""Prioritised draws and weights against their definitions (Schaul 2016)."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
import torch
from hypothesis import given, settings

from scanline.stores.sampling import (
    Circle,
    PrioritisedRule,
    PrioritisedSampling,
    Window,
)

CIRCLE = Circle(num_rows=20, num_envs=3)
SETTINGS = PrioritisedSampling(
    priority_exponent=0.6,
    weight_exponent_start=0.4,
    weight_exponent_end=1.0,
    weight_exponent_agent_steps=100,
)


def window(first: list[int], last: list[int]) -> Window:
    return Window(np.array(first), np.array(last))


def priorities_by_definition(steps: list[tuple[Window, dict[int, float]]]) -> dict[int, float]:
    """Walks through windows and feedback one place at a time."""
    leaves: dict[int, float] = {}
    largest = 1.0
    before: set[tuple[int, int]] = set()
    for moved, feedback in steps:
        now = {
            (row, env)
            for env in range(CIRCLE.num_envs)
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
    rule = SETTINGS.start(CIRCLE, 8)
    assert isinstance(rule, PrioritisedRule)
    first, last = np.zeros(3, np.int64), np.zeros(3, np.int64)
    steps = []
    for _ in range(data.draw(st.integers(1, 8))):
        last = last + np.array([data.draw(st.integers(0, 12)) for _ in range(3)])
        first = np.maximum(first, last - 15)
        moved = Window(first, last)
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
    rule = SETTINGS.start(CIRCLE, 8)
    assert isinstance(rule, PrioritisedRule)
    rule.move(window([0, 0, 0], [5, 9, 2]))
    values = np.random.default_rng(seed).random(60)
    rule.learn(np.arange(60), values)
    places = np.zeros(8, np.int64)
    rule.draw(torch.Generator().manual_seed(seed), agent_steps, places)
    beta = 0.4 + 0.6 * min(agent_steps / 100, 1.0)
    leaves = rule._tree.leaves
    slow = [(16 * leaves[place] / leaves.sum()) ** -beta for place in places]
    expected = np.array(slow) / max(slow)
    assert rule.weights is not None
    # float32 weights against float64
    np.testing.assert_allclose(rule.weights.numpy(), expected, rtol=1e-6)


def test_draws_are_stratified_and_in_proportion() -> None:
    rule = PrioritisedSampling(priority_exponent=1.0).start(CIRCLE, 10)
    rule.move(window([0, 0, 0], [1, 1, 1]))
    rule.learn(np.arange(3), np.array([1.0, 3.0, 6.0]))
    counts, places = np.zeros(3), np.zeros(10, np.int64)
    for seed in range(400):
        rule.draw(torch.Generator().manual_seed(seed), 0, places)
        # Ten strata: shares of 1, 3 and 6 tenths are met within one item in every single batch.
        np.testing.assert_allclose(np.bincount(places, minlength=3), [1, 3, 6], atol=1)
        counts += np.bincount(places, minlength=3)
    np.testing.assert_allclose(counts / counts.sum(), [0.1, 0.3, 0.6], atol=0.005)


def test_draws_within_a_stratum_follow_the_priorities() -> None:
    """One item per batch: no stratification, 4,000 draws against their expected numbers."""
    rule = PrioritisedSampling(priority_exponent=0.5).start(CIRCLE, 1)
    rule.move(window([0, 0, 0], [2, 2, 2]))
    rule.learn(np.arange(6), np.arange(1.0, 7.0) ** 2)
    counts, places = np.zeros(6), np.zeros(1, np.int64)
    for seed in range(4000):
        rule.draw(torch.Generator().manual_seed(seed), 0, places)
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
