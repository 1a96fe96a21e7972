"""The accumulator against the sum written out."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from scanline.stores.batches import NStep, Sums
from scanline.stores.ring import GOES_ON, TERMINAL, TRUNCATED


@given(st.integers(1, 6), st.integers(1, 20), st.floats(0, 1), st.integers(0, 10**6))
@settings(max_examples=80, deadline=None)
def test_sums_equal_their_definition(n: int, num: int, discount: float, seed: int) -> None:
    random = np.random.default_rng(seed)
    reward = random.normal(size=(n, num)).astype(np.float32)
    end = random.choice([GOES_ON, TERMINAL, TRUNCATED], (n, num), p=[0.6, 0.2, 0.2])
    sums = Sums.allocate(num)
    NStep(n_step=n, discount=discount).accumulate(reward, end.astype(np.uint8), sums)
    for item in range(num):
        total, span = 0.0, 0
        for ahead in range(n):
            total += discount**ahead * float(reward[ahead, item])
            span += 1
            if end[ahead, item] != GOES_ON:
                break
        last = end[span - 1, item]
        assert sums.span[item] == span
        assert sums.end[item] == last
        assert sums.reward[item] == pytest.approx(total, abs=1e-5)  # float32 sum
        expected = 0.0 if last == TERMINAL else discount**span
        assert sums.discount[item] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("wrong", [{"n_step": 0}, {"discount": 1.1}])
def test_settings_out_of_range_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        NStep(**wrong)  # type: ignore[arg-type]
