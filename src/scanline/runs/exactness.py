"""Exactness: why a resumed run may not end bit for bit like one that was never stopped.

Takes reasons: of parts that are never exact, of states that are not complete, and of conditions
(versions, threads, schedules) that differ from those of the checkpoint. Gives what a checkpoint
holds of them, and a sentence for the user. Knows no part.

A state that is not complete says why under the key `inexact`, at any depth.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..records import State
from ..settings import differences

INEXACT = "inexact"


class Exactness:
    """The reasons that are known of one run; exact as long as there are none."""

    def __init__(
        self, reasons: Iterable[str] = (), conditions: Mapping[str, Any] | None = None
    ) -> None:
        """`conditions`: plain values that a resumed run must share to end as it would have."""
        self.reasons: list[str] = []
        self._own, self._conditions = tuple(reasons), dict(conditions or {})

    def begin(self) -> list[str]:
        """The reasons that hold from the start; gives those that are new."""
        return self.add(self._own)

    def add(self, reasons: Iterable[str]) -> list[str]:
        """Gives those that are new."""
        new = [reason for reason in dict.fromkeys(reasons) if reason not in self.reasons]
        self.reasons += new
        return new

    def state(self) -> State:
        return {
            "exact": not self.reasons,
            INEXACT: list(self.reasons),
            "conditions": self._conditions,
        }

    def resumed(self, state: State, agent_steps: int) -> list[str]:
        """Reasons that a run has once it goes on from a checkpoint; gives those that are new."""
        found = differences(state.get("conditions", {}), self._conditions)
        changed = [f"resumed after {agent_steps:,} agent steps, {each}" for each in found]
        return self.add([*state.get(INEXACT, ()), *changed])


def reasons_in(state: Any) -> Iterator[str]:
    """What a state, or any state inside it, says of its gaps."""
    if isinstance(state, Mapping):
        for key, value in state.items():
            yield from [value] if key == INEXACT else reasons_in(value)
    elif isinstance(state, (list, tuple)):
        for item in state:
            yield from reasons_in(item)


def sentence(reasons: Iterable[str]) -> str:
    """What a user should know of them."""
    return (
        "This run is not exact: once resumed, it does not end bit for bit like one that was never "
        f"stopped ({'; '.join(reasons)})."
    )
