"""The synchronous loop: collect, prepare, put, learn, repeat.

Takes the parts of a run and the run itself; gives nothing back: weights, log and checkpoints are
what remains. On-policy and off-policy recipes differ in what their store owes after a rollout.
Knows no algorithm, engine or file by name, and nothing that surrounds a part: see `around.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from ..records import Algorithm, Metric, Parameters, Policy, Sampler, Slot, Store


class Run(Protocol):
    """What surrounds a loop: it counts, logs, saves and ends it."""

    def goes_on(self) -> bool:
        """Does what is due; false at a limit, after a signal, or when another learner ends it."""

    def collected(self, slot: Slot) -> None:
        """Counts the steps of a rollout and takes the games that have ended."""

    def updated(self, metrics: Mapping[str, Metric], norms: Mapping[str, Metric]) -> None:
        """Counts an update and keeps its metrics."""


@dataclass(frozen=True, kw_only=True)
class Parts:
    """The parts that take turns."""

    sampler: Sampler
    policy: Policy
    store: Store
    algorithm: Algorithm
    parameters: Parameters


def loop(parts: Parts, run: Run) -> None:
    while run.goes_on():
        slot = parts.sampler.collect(parts.policy, into=parts.store.slot())
        experience = parts.algorithm.prepare(parts.parameters.read(), slot)
        parts.parameters.keep(experience.state)
        parts.store.put(experience)
        run.collected(slot)
        learn(parts, run)


def learn(parts: Parts, run: Run) -> None:
    """The updates that the store owes now: none, one, several."""
    for batch in parts.store.batches():
        views = parts.parameters.read()
        result = parts.algorithm.loss(views, batch)
        norms = parts.parameters.apply(views, result.losses, batch.agent_steps)
        parts.store.feedback(batch, result.priorities)
        run.updated(result.metrics, norms)
