"""Policy lag: how many updates old the weights were that chose a step.

Takes lags in updates, one per step; gives their histogram, mean and quantiles.
Knows no learner.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import accumulate

from torch import Tensor


class Lags:
    """A histogram: lag in updates to number of agent steps."""

    def __init__(self, counts: Mapping[int, int] | None = None) -> None:
        self._counts = Counter(counts or {})

    @property
    def counts(self) -> dict[int, int]:
        return dict(self._counts)

    def note(self, lags: Tensor, steps_each: int = 1) -> None:
        """Integers of any shape, each the lag of `steps_each` agent steps."""
        for lag in lags.flatten().tolist():
            self._counts[int(lag)] += steps_each

    def add(self, counts: Mapping[int, int]) -> None:
        self._counts.update(counts)

    @property
    def num_steps(self) -> int:
        return sum(self._counts.values())

    @property
    def mean(self) -> float:
        return sum(lag * count for lag, count in self._counts.items()) / max(self.num_steps, 1)

    def quantile(self, share: float) -> int:
        """The smallest lag that at least this share of the steps does not exceed."""
        lags = sorted(self._counts)
        seen = accumulate(self._counts[lag] for lag in lags)
        wanted = share * self.num_steps
        return next((lag for lag, count in zip(lags, seen, strict=True) if count >= wanted), 0)

    def metrics(self) -> dict[str, float]:
        """Under the names of the log; nothing where nothing was learned."""
        if not self._counts:
            return {}
        return {
            "perf/policy_lag": self.mean,
            "perf/policy_lag_median": float(self.quantile(0.5)),
            "perf/policy_lag_95": float(self.quantile(0.95)),
            "perf/policy_lag_most": float(max(self._counts)),
        }
