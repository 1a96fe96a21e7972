"""The sum tree against a walk along all leaves."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from scanline.stores.sum_tree import SumTree, level_lengths, tree_bytes


def place_by_definition(leaves: np.ndarray, mark: float) -> int:
    """First place at which the running sum exceeds the mark."""
    running = 0.0
    for place, value in enumerate(leaves):
        running += value
        if running > mark:
            return place
    raise AssertionError("the mark lies beyond the sum")


@given(st.integers(0, 10**6), st.integers(1, 3000))
@settings(max_examples=60, deadline=None)
def test_finding_equals_a_walk_along_the_leaves(seed: int, num_places: int) -> None:
    random = np.random.default_rng(seed)
    tree, slow = SumTree(num_places), np.zeros(num_places)
    for _ in range(4):
        places = random.integers(0, num_places, 40)
        # Eighths add without rounding, so both walks must agree on every mark.
        values = random.integers(0, 9, 40) / 8.0
        tree.set(places, values)
        for place, value in zip(places, values, strict=True):
            slow[place] = value  # twice named: the last stays
    assert np.array_equal(tree.leaves, slow)
    assert tree.total == slow.sum()
    if tree.total:
        marks = random.integers(0, int(tree.total * 8), 50) / 8.0
        expected = [place_by_definition(slow, mark) for mark in marks]
        found = np.empty(50, np.int64)
        tree.find(marks.copy(), found)
        assert found.tolist() == expected


@given(st.integers(0, 10**6), st.integers(1, 5000))
@settings(max_examples=40, deadline=None)
def test_no_rounding_finds_a_place_with_value_zero(seed: int, num_places: int) -> None:
    random = np.random.default_rng(seed)
    tree = SumTree(num_places)
    places = np.unique(random.integers(0, num_places, 30))
    tree.set(places, 10.0 ** random.uniform(-12, 6, len(places)))
    found = np.empty(200, np.int64)
    marks = np.concatenate([random.random(198), [0.0, 1.0]]) * tree.total
    tree.find(marks, found)
    assert set(found.tolist()) <= set(places.tolist())


@given(st.integers(0, 10**6))
@settings(max_examples=20, deadline=None)
def test_the_tree_depends_on_its_leaves_alone(seed: int) -> None:
    """After any history it equals, bit for bit, a tree that was loaded with the same leaves."""
    random = np.random.default_rng(seed)
    tree = SumTree(40_000)
    for _ in range(30):
        tree.set(random.integers(0, 40_000, 64), random.random(64) * 10.0 ** random.integers(-9, 9))
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
