"""Sampling rates for experiments: acting without learning, on a real or a simulated network.

Takes a recipe's plan and who decides; gives agent steps per second. Knows no experiment.
"""

from __future__ import annotations

import time
from typing import Literal

from scanline import training
from scanline.acting import RandomPolicy
from scanline.interfaces import Policy

from .coprocessor import OnCoprocessor, SimulatedCoprocessor

Decider = Literal["network", "simulated", "random"]


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
    parts = training.assemble(plan, lambda part: None, lambda text: None, attachments=attachments)
    try:
        wired, spaces = parts.wired, parts.engine.spaces
        policy: Policy = RandomPolicy(spaces.num_actions) if decider == "random" else wired.policy
        parts.samplers[0].reset()
        slot = wired.store.slot()
        if decider == "random":
            slot.columns.clear()
        per_slot = slot.actions.numel()
        for stretch in (seconds / 10, seconds):
            begun, num = time.perf_counter(), 0
            while (elapsed := time.perf_counter() - begun) < stretch or not num:
                wired.sampler.collect(policy, into=slot)
                num += per_slot
        return num / elapsed
    finally:
        parts.close()
