"""Rates for experiments, on the machine's own network or on a simulated one.

Takes a recipe, a game, how long, and settings; gives steps, updates, seconds and the histograms of
a stretch of a real run, or agent steps per second of acting without learning. Knows no experiment.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Literal

from scanline import training
from scanline.acting import RandomPolicy
from scanline.interfaces import Policy
from scanline.runs.lags import Lags

from ..timing import Stretch, Timing, timed
from .coprocessor import OnCoprocessor, SimulatedCoprocessor, TinyPolicy

Decider = Literal["network", "simulated", "random"]
"""Which policy acts: the run's network, one on a simulated device, or random actions."""


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


def sampling_rate(
    plan: training.Plan,
    decider: Decider,
    *,
    seconds: float,
    device: SimulatedCoprocessor | None = None,
) -> float:
    """Agent steps per second of a sampler alone, after a tenth of the time for warming up."""
    attachments = training.Attachments()
    if decider == "simulated":
        assert device is not None
        attachments = training.Attachments(around=lambda inner: OnCoprocessor(inner, device))
    parts = training.prepared(plan, lambda part: None, lambda text: None, attachments=attachments)
    try:
        wired, spaces = parts.context.parts, parts.context.spaces
        policy: Policy = RandomPolicy(spaces.num_actions) if decider == "random" else wired.policy
        sampler: Any = wired.sampler
        sampler.reset()
        slot = wired.store.slot()
        if decider == "random":
            slot.columns.clear()
        per_slot = slot.actions.numel()
        for stretch in (seconds / 10, seconds):
            begun, num = time.perf_counter(), 0
            while (elapsed := time.perf_counter() - begun) < stretch or not num:
                sampler.collect(policy, into=slot)
                num += per_slot
        return num / elapsed
    finally:
        parts.runtime.close()
