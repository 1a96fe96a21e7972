"""The on-policy loop: collect, prepare, learn, repeat.

Takes the parts of a synchronous run and its session; gives nothing back: weights, log and
checkpoints are what remains. Knows no algorithm, engine or file by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import torch

from ..networks import Memory
from ..parameters import LocalParameters
from ..records import Algorithm, Batch, Policy, Store
from ..samplers import LockstepSampler
from .clock import LEARNING, OTHER
from .instruments import Instruments
from .progress import Metric
from .session import Listener


@dataclass(frozen=True, kw_only=True)
class Loop:
    """The parts that take turns."""

    sampler: LockstepSampler
    policy: Policy
    store: Store
    algorithm: Algorithm
    parameters: LocalParameters
    learning_rate: Callable[[int], float]
    """Of agent steps."""
    memory: Memory
    """What acting computed and learning can use again."""
    instruments: Instruments


def turn(loop: Loop, session: Listener) -> None:
    """One rollout, and what can be learned from it."""
    if work(loop, session):
        session.progress.end_turn()


def work(loop: Loop, session: Listener) -> bool:
    """What is left of a turn; gives whether all of it is done, or the session has broken it off."""
    under_way = session.progress.begin_turn()
    if not under_way.collected_agent_steps:
        under_way.collected_agent_steps = collect(loop, session)
    is_done = learn(loop, session)
    if is_done and loop.instruments.settings.log_intensity:
        intensity = under_way.learned_agent_steps / under_way.collected_agent_steps
        session.noted({"perf/training_intensity": intensity})
    return is_done


def collect(loop: Loop, session: Listener) -> int:
    """One rollout into the store; gives its number of steps."""
    into = loop.store.slot()
    into.agent_steps = session.progress.agent_steps
    with loop.memory.keeping():
        slot = loop.sampler.collect(loop.policy, into=into)
        session.spans.mark(LEARNING)
        with torch.no_grad():
            experience = loop.algorithm.prepare(loop.parameters.views, slot)
    loop.parameters.keep(experience.state)
    loop.store.put(experience)
    session.collected(slot, loop.sampler.drain_episodes())
    return slot.actions.numel()


def learn(loop: Loop, session: Listener) -> bool:
    """One update per batch that the store owes; gives whether it owes no more.

    A batch is drawn only when it is learned from, so that a turn can be broken off after it.
    """
    session.spans.mark(LEARNING)
    under_way = session.progress.begin_turn()
    for batch in loop.store.batches():
        session.updated(update(loop, batch))
        under_way.learned_agent_steps += len(batch.actions)
        if loop.store.owes and session.breaks_off():
            return False
    session.spans.mark(OTHER)
    return True


def update(loop: Loop, batch: Batch) -> dict[str, Metric]:
    """One update; gives its metrics."""
    learner, instruments = loop.parameters, loop.instruments
    loss = partial(loop.algorithm.loss, learner.views)
    with loop.memory.recalling():
        result = loss(batch)
    cosine = instruments.cosine_at(learner.version, batch, result, loss, learner.network)
    watch = instruments.norms_at(learner.version)
    rate = loop.learning_rate(batch.agent_steps)
    norms = learner.apply(result.losses, rate, watch)
    loop.store.feedback(batch, result.priorities)
    measured = {**cosine, **(watch.metrics if watch is not None else {})}
    return {**result.metrics, **named(norms), "charts/learning_rate": rate, **measured}


def named(norms: Mapping[str, Metric]) -> dict[str, Metric]:
    """Gradient norms under the names of the log."""
    if norms.keys() == {"all"}:
        return {"losses/gradient_norm": norms["all"]}
    return {f"losses/gradient_norm_{name}": norm for name, norm in norms.items()}
