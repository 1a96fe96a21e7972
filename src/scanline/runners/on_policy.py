"""The on-policy loop: collect, prepare, learn, repeat.

Takes the parts of a synchronous run and its session; gives nothing back: weights, log and
checkpoints are what remains. Knows no algorithm, engine or file by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch

from ..parameters import LocalParameters
from ..records import Algorithm, Batch, Policy, Store
from ..samplers import LockstepSampler
from .clock import LEARNING, OTHER
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


def turn(loop: Loop, session: Listener) -> None:
    """One rollout, and what can be learned from it."""
    collect(loop, session)
    learn(loop, session, loop.store.batches())


def collect(loop: Loop, session: Listener) -> None:
    """One rollout into the store."""
    into = loop.store.slot()
    into.agent_steps = session.progress.agent_steps
    slot = loop.sampler.collect(loop.policy, into=into)
    session.spans.mark(LEARNING)
    with torch.no_grad():
        experience = loop.algorithm.prepare(loop.parameters.views, slot)
    loop.parameters.keep(experience.state)
    loop.store.put(experience)
    session.collected(slot, loop.sampler.drain_episodes())


def learn(loop: Loop, session: Listener, batches: Iterable[Batch]) -> None:
    """One update per batch."""
    session.spans.mark(LEARNING)
    for batch in batches:
        result = loop.algorithm.loss(loop.parameters.views, batch)
        rate = loop.learning_rate(batch.agent_steps)
        norms = loop.parameters.apply(result.losses, rate)
        loop.store.feedback(batch, result.priorities)
        session.updated({**result.metrics, **named(norms), "charts/learning_rate": rate})
    session.spans.mark(OTHER)


def named(norms: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Gradient norms under the names of the log."""
    if norms.keys() == {"all"}:
        return {"losses/gradient_norm": norms["all"]}
    return {f"losses/gradient_norm_{name}": norm for name, norm in norms.items()}
