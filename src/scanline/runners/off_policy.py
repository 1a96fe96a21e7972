"""The off-policy loop: collect, store, learn what is owed, copy the target now and then.

Takes the parts of a synchronous run with a replay, and its session; gives nothing back.
Knows no algorithm, engine or file by name.

Acting and learning are those of the on-policy loop: a replay owes updates by the training intensity
where a rollout hands out itself. All that is added is the lagged copy of the weights.
"""

from __future__ import annotations

from dataclasses import dataclass

from . import on_policy
from .on_policy import Loop
from .session import Listener


@dataclass(frozen=True, kw_only=True)
class Alternate:
    """Acting and learning take turns."""

    target_agent_steps: int = 0
    """Agent steps between two copies of the live weights into the target; 0 for no target."""

    def __post_init__(self) -> None:
        if self.target_agent_steps < 0:
            raise ValueError(
                f"target_agent_steps={self.target_agent_steps} is negative; use 0 for no target."
            )


def turn(loop: Loop, session: Listener, target_agent_steps: int) -> None:
    """One rollout, the updates that it owes, and the target where its time has come."""
    progress = session.progress
    before = progress.begin_turn().began_at
    if not on_policy.work(loop, session):
        return
    if reached(target_agent_steps, before, progress.agent_steps):
        loop.parameters.sync_target()
    progress.end_turn()


def reached(every: int, before: int, now: int) -> bool:
    """Whether a multiple of `every` lies in before < multiple <= now; a resumed run agrees."""
    return now // every > before // every
