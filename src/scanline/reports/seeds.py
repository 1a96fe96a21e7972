"""Several seeds of one recipe and game as one curve: their mean, and a band around it.

Takes runs; gives those that differ in nothing but their seed under one name, and the mean of their
curves with its lowest and highest values. Knows neither files nor pages.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import numpy as np

from ..settings import flat
from .charts import Point, Span
from .runs import Points, RunFiles

Curves = Mapping[str, Sequence[RunFiles]]
"""Name of a curve to its runs: one, or several seeds."""


def curves_of(runs: Mapping[str, RunFiles]) -> Curves:
    """The runs by the curves that they are drawn as; those with equal seeds stay apart."""
    kinds: dict[str, dict[str, RunFiles]] = {}
    for name, run in runs.items():
        settings = {**flat(run.record["settings"]), "run.seed": None}
        kinds.setdefault(json.dumps(settings, sort_keys=True), {})[name] = run
    found: dict[str, Sequence[RunFiles]] = {}
    for same in kinds.values():
        seeds = {str(run.seed) for run in same.values()}
        if len(same) == 1 or len(seeds) < len(same):
            found |= {name: [run] for name, run in same.items()}
            continue
        first = next(iter(same.values()))
        words = f"{first.subject}: mean of {len(same)} seeds, band from lowest to highest"
        folders = ", ".join(run.path.name for run in same.values())
        found[words if words not in found else f"{words} ({folders})"] = list(same.values())
    return found


def mean_with_band(lines: Sequence[Points]) -> tuple[list[Point], list[Span]]:
    """At every place that a line has: mean, lowest and highest of the lines that reach it.

    Between two points a line is straight. A single line has no band.
    """
    drawn = [np.array(points) for points in lines if points]
    if len(drawn) < 2:
        return [(x, y) for line in drawn for x, y in line.tolist()], []
    xs = np.unique(np.concatenate([line[:, 0] for line in drawn]))
    ends = {"left": np.nan, "right": np.nan}
    values = np.stack([np.interp(xs, line[:, 0], line[:, 1], **ends) for line in drawn])
    with np.errstate(over="ignore"):  # what overflows is not drawn
        mean = np.nanmean(values, axis=0)
    low, high = np.nanmin(values, axis=0), np.nanmax(values, axis=0)
    points = list(zip(xs.tolist(), mean.tolist(), strict=True))
    return points, list(zip(xs.tolist(), low.tolist(), high.tolist(), strict=True))
