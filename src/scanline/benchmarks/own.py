"""scanline doing a recipe's work, and the limit that its network alone would reach.

Takes a `Work`; gives agent steps per second of a real run (logging and all), and `limit_sps`: the
rate of acting and learning on ready data in the same process, with no environment.
Knows the loop's parts, not their insides.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import torch

from .. import training
from ..runners.clock import Spans
from .work import Figures, Work


def run(work: Work) -> Figures:
    """Figures of a whole run, then of its network alone."""
    return {**whole_run(work), "limit_sps": limit(work)}


def plan_of(work: Work) -> training.Plan:
    return training.make_plan(
        work.recipe,
        work.game,
        engine=work.engine,
        num_threads=work.num_threads,
        torch_threads=work.torch_threads,
        live=False,
        **work.settings,
    )


def whole_run(work: Work) -> Figures:
    """A run of the given length, timed after its warm-up."""
    plan = plan_of(work)
    marks: list[tuple[float, int, int]] = []
    with tempfile.TemporaryDirectory() as folder:
        parts = training.prepared(plan, Spans().mark, say=lambda sentence: None)
        session = training.open_session(parts, Path(folder) / "run")
        with session.running(parts.saved(session), resume=False, begin=parts.begin):
            begun = time.perf_counter()
            for seconds in (work.warm_up_seconds, work.warm_up_seconds + work.seconds):
                while time.perf_counter() - begun < seconds and session.goes_on():
                    parts.turn(session)
                progress = session.progress
                marks.append((time.perf_counter(), progress.agent_steps, progress.updates))
        note = parts.note()
        parts.close()
    (t0, steps0, updates0), (t1, steps1, updates1) = marks
    rate = (steps1 - steps0) / (t1 - t0)
    skip = parts.protocol.frame_skip
    return {
        "agent_sps": rate,
        "raw_fps": rate * skip,
        "ups": (updates1 - updates0) / (t1 - t0),
        **({"note": note} if note else {}),
    }


def limit(work: Work) -> float:
    """Agent steps per second of acting and learning on a rollout that is already there."""
    plan = training.synchronous(plan_of(work))
    parts = training.assemble(plan, Spans().mark, say=lambda sentence: None)
    loop = parts.loop
    loop.sampler.reset()
    slot = loop.sampler.collect(loop.policy, into=loop.store.slot())
    parts.close()
    uniforms = torch.rand((slot.actions.shape[1], 2))
    rounds, begun, seconds = 0, time.perf_counter(), 0.0
    while seconds < work.seconds / 2:
        for t in range(slot.num_steps):
            loop.policy(slot.observation(t), uniforms, 0)
        with torch.no_grad():
            loop.store.put(loop.algorithm.prepare(loop.parameters.views, slot))
        for batch in loop.store.batches():
            result = loop.algorithm.loss(loop.parameters.views, batch)
            loop.parameters.apply(result.losses, loop.learning_rate(0))
        rounds, seconds = rounds + 1, time.perf_counter() - begun
    return rounds * slot.actions.numel() / seconds
