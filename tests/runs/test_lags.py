"""Lags against counting by hand."""

from __future__ import annotations

import numpy as np
import torch

from scanline.runs.lags import Lags


def test_mean_and_quantiles_are_those_of_the_steps() -> None:
    draws = torch.Generator().manual_seed(0)
    lags, steps = Lags(), list[int]()
    for _ in range(20):
        found = torch.randint(0, 12, (5, 3), generator=draws)
        lags.note(found, steps_each=2)
        steps += found.flatten().tolist() * 2
    assert lags.num_steps == len(steps)
    assert lags.mean == np.mean(steps)
    for share in (0.0, 0.1, 0.5, 0.95, 1.0):
        assert lags.quantile(share) == np.quantile(steps, share, method="inverted_cdf")
    assert lags.metrics()["perf/policy_lag_most"] == max(steps)


def test_nothing_learned_has_no_lag() -> None:
    assert Lags().metrics() == {}


def test_histograms_add_up() -> None:
    lags = Lags({1: 2})
    lags.add({1: 3, 4: 5})
    assert lags.counts == {1: 5, 4: 5}
