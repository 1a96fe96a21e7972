"""Small statistics and pictures that experiments share.

Takes numbers; gives means, deviations, rank correlations and an open figure to draw into.
Knows no experiment.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any


def deviation(values: Sequence[float]) -> float | None:
    """Sample standard deviation; None of a single value."""
    return statistics.stdev(values) if len(values) > 1 else None


def ranks(values: Sequence[float]) -> list[float]:
    """Ranks from 1; equal values share the mean of theirs."""
    ordered = sorted(values)
    first = {value: ordered.index(value) + 1 for value in set(values)}
    return [first[value] + (ordered.count(value) - 1) / 2 for value in values]


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> float:
    """Spearman's: the correlation of the ranks; no number where one side is constant."""
    if len(set(first)) < 2 or len(set(second)) < 2:
        return math.nan
    return statistics.correlation(ranks(first), ranks(second))


@contextmanager
def figure(path: Path, columns: int = 1, rows: int = 1, *, width: float = 5.0) -> Iterator[Any]:
    """A list of axes, row by row; the picture is in the file afterwards."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    size = (width * columns, 0.75 * width * rows)
    drawn, axes = pyplot.subplots(rows, columns, figsize=size, layout="constrained", squeeze=False)
    try:
        yield list(axes.flat)
        drawn.savefig(path, dpi=110)
    finally:
        pyplot.close(drawn)
