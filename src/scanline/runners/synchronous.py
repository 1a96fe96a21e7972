"""The synchronous loop: collect, prepare, put, learn, repeat.

Takes the parts of a run and the run itself; gives nothing back: weights, log and checkpoints are
what remains. On-policy and off-policy recipes differ in what their store owes after a rollout.
Knows no algorithm, engine or file by name, and nothing that surrounds a part (`runs/wrappers.py`).
`Alternate` is the pace that runs it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ..interfaces import Parts, Run, Runtime, RuntimeContext, Saved
from ..records import Views
from ..settings import fractions


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


@dataclass(frozen=True, kw_only=True)
class Alternate:
    """Acting and learning take turns."""

    target_agent_steps: int = 0
    """Agent steps between two copies of the live weights into the target; 0 for none."""
    target_rate: float = 0.0
    """Share of the live weights that every update mixes into the target (Polyak); 0 for none."""
    needs: ClassVar[frozenset[str]] = frozenset()
    staged_agent_steps: ClassVar[int] = 0
    acts_with_target: ClassVar[bool] = False
    num_network_threads: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if self.target_agent_steps < 0:
            raise ValueError(
                f"target_agent_steps={self.target_agent_steps} is negative; use 0 for no target."
            )
        fractions(self, "target_rate")
        if self.target_agent_steps and self.target_rate:
            raise ValueError(
                f"target_agent_steps={self.target_agent_steps} copies what target_rate="
                f"{self.target_rate} mixes; set one of them to 0."
            )

    @property
    def gives(self) -> frozenset[str]:
        target = ("target",) if self.target_agent_steps or self.target_rate else ()
        return frozenset({"turns", "pauses", "running statistics", *target})

    def num_samplers(self, num_envs: int) -> int:
        return 1

    def check(self, sampling: object, store: object) -> None:
        """Any rollout can take its turn."""

    def build(self, context: RuntimeContext) -> Runtime:
        return SynchronousRuntime(context)


class SynchronousRuntime:
    """One sampler and one learner in one thread."""

    def __init__(self, context: RuntimeContext) -> None:
        self._context, self._parts, self.inexact = context, context.parts, context.inexact

    def begin(self, is_resumed: bool) -> None:
        if not is_resumed:
            self._parts.sampler.begin()

    def run(self, run: Run) -> None:
        parts = self._context.surround(self._parts, run)
        if parts.store.owes:  # a turn that was left, in this process or an earlier one
            learn(parts, run)
        loop(parts, run)

    def weights(self) -> tuple[Views, int]:
        return self._parts.parameters.read(), self._parts.parameters.version

    def saved(self) -> Mapping[str, Saved]:
        parts = self._parts
        return {"sampler": parts.sampler, "store": parts.store, "parameters": parts.parameters}

    def note(self) -> Mapping[str, Any]:
        return {}

    def halt(self) -> None:
        """Nothing learns by itself."""

    def close(self) -> None:
        self._context.close()
