"""The pace of a synchronous loop: acting and learning take turns.

Takes and gives nothing: what happens at intervals is said here, and done by the run.
"""

from __future__ import annotations

from dataclasses import dataclass


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
