"""Experiments: the papers' tables and figures, measured again beside the papers' numbers.

Gives the table of experiments and `reproduce`. One file per paper, or per topic of one; the frame
is shared.
"""

from __future__ import annotations

from collections.abc import Mapping

from . import (
    accelerated,
    accelerated_async,
    accelerated_gradients,
    accelerated_learners,
    accelerated_sampling,
    accelerated_scores,
    accelerated_secondary,
    bounds,
    cule,
    cule_load,
    evidence,
    fast_dqn,
    fast_dqn_timeline,
    ga3c,
    ga3c_batch_size,
    ga3c_configurations,
    ga3c_epsilon,
    ga3c_throughput,
    paac,
    pong,
    score_studies,
)
from .experiment import SCALES, Cell, Experiment, Result, Results, Scale
from .frame import CellError, Outcome, reproduce

__all__ = [
    "EXPERIMENTS",
    "SCALES",
    "Cell",
    "CellError",
    "Experiment",
    "Outcome",
    "Result",
    "Results",
    "Scale",
    "reproduce",
]

_PAPERS = (
    cule_load,
    cule,
    accelerated_sampling,
    accelerated,
    accelerated_async,
    accelerated_gradients,
    accelerated_learners,
    accelerated_scores,
    accelerated_secondary,
    fast_dqn,
    fast_dqn_timeline,
    ga3c,
    ga3c_throughput,
    ga3c_configurations,
    ga3c_batch_size,
    ga3c_epsilon,
    paac,
    score_studies,
    pong,
    evidence,
    bounds,
)

EXPERIMENTS: Mapping[str, Experiment] = {
    each.name: each for paper in _PAPERS for each in paper.EXPERIMENTS
}
