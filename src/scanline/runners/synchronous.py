"""The synchronous loop: collect, prepare, put, learn, repeat.

Takes the parts of a run and the run itself; gives nothing back: weights, log and checkpoints are
what remains. On-policy and off-policy recipes differ in what their store owes after a rollout.
Knows no algorithm, engine or file by name, and nothing that surrounds a part (`runs/wrappers.py`).
"""

from __future__ import annotations

from ..interfaces import Parts, Run


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
