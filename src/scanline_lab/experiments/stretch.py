"""A stretch of a real run for experiments, on the machine's own network or on a simulated one.

Takes a recipe, a game, how long, and settings; gives steps, updates, seconds and the histograms of
the measured stretch. Knows no experiment.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scanline import training
from scanline.runs.lags import Lags

from ..timing import Stretch, Timing, timed
from .coprocessor import OnCoprocessor, SimulatedCoprocessor, TinyPolicy


def stretch(
    recipe: str,
    game: str,
    *,
    seconds: float,
    warm_up: Stretch,
    device: SimulatedCoprocessor | None = None,
    **settings: Any,
) -> Timing:
    """Times a run; with a device its network costs next to nothing and waits for it instead."""
    attachments = None
    if device is not None:
        settings["network"] = TinyPolicy
        attachments = training.Attachments(around=lambda inner: OnCoprocessor(inner, device))
    return timed(
        training.make_plan(recipe, game, tensorboard=False, **settings),
        warm_up=warm_up,
        measured=Stretch(seconds=seconds),
        attachments=attachments,
    )


def histogram_mean(note: Mapping[str, Any], histogram: str) -> float:
    """Mean of a histogram that the parts of a run have noted; 0 of an empty one."""
    return Lags(note[histogram]).mean
