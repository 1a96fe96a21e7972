"""Rates for experiments, on the machine's own network or on a simulated one.

Takes a recipe, a game, how long, and settings; gives steps, updates, seconds and the histograms of
a stretch of a real run, or agent steps per second of acting without learning, and how busy the
cores were. Knows no experiment.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from typing import Any, Literal

from scanline import training
from scanline.acting import RandomPolicy
from scanline.interfaces import Policy
from scanline.machine import cpu_seconds
from scanline.processes import granted_cores
from scanline.runs.lags import Lags
from scanline.timing import Stretch, Timing, timed

from .coprocessor import OnCoprocessor, SimulatedCoprocessor, TinyPolicy

Decider = Literal["network", "simulated", "random"]
"""Which policy acts: the run's network, one on a simulated device, or random actions."""


LONGEST_WAIT_SECONDS = 60.0
"""Of samplers for each other."""


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
    with sampler(plan, decider, device) as collect:
        for stretch in (seconds / 10, seconds):
            begun, num = time.perf_counter(), 0
            while (elapsed := time.perf_counter() - begun) < stretch or not num:
                num += collect()
        return num / elapsed


def sampling_rate_side_by_side(
    plans: Sequence[training.Plan],
    devices: Sequence[SimulatedCoprocessor],
    *,
    seconds: float,
    barrier: bool,
) -> float:
    """Agent steps per second of samplers in threads of their own, with a simulated device each.

    With a barrier all wait for each other after every rollout.
    """
    gate = threading.Barrier(len(plans)) if barrier else None
    with ExitStack() as stack, ThreadPoolExecutor(len(plans)) as pool:
        pairs = zip(plans, devices, strict=True)
        samplers = [stack.enter_context(sampler(p, "simulated", d)) for p, d in pairs]
        for collect in samplers:
            collect()  # warms up
        begun = time.perf_counter()
        counts = list(pool.map(lambda collect: _sampled(collect, begun + seconds, gate), samplers))
        return sum(counts) / (time.perf_counter() - begun)


def _sampled(collect: Callable[[], int], until: float, gate: threading.Barrier | None) -> int:
    """Agent steps until a time; the first to end opens the gate for all."""
    num = 0
    try:
        while time.perf_counter() < until:
            num += collect()
            if gate is not None:
                gate.wait(timeout=LONGEST_WAIT_SECONDS)
    except threading.BrokenBarrierError:
        pass
    finally:
        if gate is not None:
            gate.abort()
    return num


@contextmanager
def sampler(
    plan: training.Plan, decider: Decider, device: SimulatedCoprocessor | None
) -> Iterator[Callable[[], int]]:
    """A sampler that acts and does not learn: what is called for a rollout, giving its steps."""
    attachments = training.Attachments()
    if decider == "simulated":
        assert device is not None
        attachments = training.Attachments(around=lambda inner: OnCoprocessor(inner, device))
    parts = training.prepared(plan, lambda part: None, lambda text: None, attachments=attachments)
    with closing(parts.runtime):
        wired, spaces = parts.context.parts, parts.context.spaces
        policy: Policy = RandomPolicy(spaces.num_actions) if decider == "random" else wired.policy
        inner: Any = wired.sampler
        inner.reset()
        slot = wired.store.slot()
        if decider == "random":
            slot.columns.clear()

        def collect() -> int:
            inner.collect(policy, into=slot)
            return slot.actions.numel()

        yield collect


@contextmanager
def utilisation() -> Iterator[dict[str, float]]:
    """Puts `cpu_percent` into a record: the share of all granted cores that were busy meanwhile."""
    record: dict[str, float] = {}
    begun, used = time.perf_counter(), cpu_seconds()
    yield record
    busy = (cpu_seconds() - used) / (time.perf_counter() - begun) / granted_cores()
    record["cpu_percent"] = 100 * min(busy, 1.0)
