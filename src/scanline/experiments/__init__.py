"""Experiments: the papers' tables and figures, measured again beside the papers' numbers.

Gives the table of experiments and `reproduce`. One file per paper; the frame is shared.
"""

from __future__ import annotations

from collections.abc import Mapping

from . import (
    accelerated,
    accelerated_gradients,
    accelerated_learners,
    accelerated_secondary,
    cule,
    cule_load,
    fast_dqn,
    fast_dqn_timeline,
    ga3c,
    paac,
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
    cule_load.EXPERIMENTS,
    cule.EXPERIMENTS,
    accelerated.EXPERIMENTS,
    accelerated_gradients.EXPERIMENTS,
    accelerated_learners.EXPERIMENTS,
    accelerated_secondary.EXPERIMENTS,
    fast_dqn.EXPERIMENTS,
    fast_dqn_timeline.EXPERIMENTS,
    ga3c.EXPERIMENTS,
    paac.EXPERIMENTS,
)

EXPERIMENTS: Mapping[str, Experiment] = {each.name: each for paper in _PAPERS for each in paper}
