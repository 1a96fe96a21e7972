"""Evaluation while a run trains: when it is due, what it gave, and the best so far.

Takes a function that plays games with the present weights; gives `evaluations.jsonl` and the best
mean. Knows neither policy nor engine: the function is given.

Papers of value learning report scores of such pauses. They have an environment and random numbers
of their own, so a run that evaluates learns exactly what one that does not would.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..files import disk_errors, replace_file
from ..records import State
from ..settings import at_least
from .limits import passed

EVALUATIONS = "evaluations.jsonl"
Evaluate = Callable[[int], Mapping[str, Any]]
"""Plays games after so many agent steps; gives plain figures, `mean` among them."""


@dataclass(frozen=True, kw_only=True)
class EvaluationSettings:
    """How a run is evaluated while it trains."""

    evaluate_every_agent_steps: int = 0
    """Agent steps between two pauses in which games are played; 0 for none."""
    pause_games: int = 30
    """Games of a pause, in the order of their start; 0 for what `pause_agent_steps` allows."""
    pause_agent_steps: int = 0
    """Most agent steps of a pause, over all its games; 0 for no limit."""

    def __post_init__(self) -> None:
        at_least(0, self, "evaluate_every_agent_steps", "pause_games", "pause_agent_steps")
        if not self.pause_games and not self.pause_agent_steps:
            raise ValueError(
                "pause_games=0 and pause_agent_steps=0 leave a pause without an end; set one."
            )


class Evaluations:
    """The evaluations of one run; load a state first, if there is one, then open."""

    def __init__(self, settings: EvaluationSettings, evaluate: Evaluate) -> None:
        self._every, self._evaluate = settings.evaluate_every_agent_steps, evaluate
        self.records: list[dict[str, Any]] = []
        """What every pause gave, oldest first."""
        self._reached = 0
        self._path: Path | None = None

    @property
    def best(self) -> dict[str, Any] | None:
        """The evaluation with the highest mean, the first of equals; None before the first."""
        scored = [r for r in self.records if r["mean"] is not None]
        return max(scored, key=lambda r: float(r["mean"]), default=None)

    def open(self, folder: Path) -> None:
        """Begins to write; the file is cut back to what this run knows."""
        self._path = folder / EVALUATIONS
        if self.records or self._path.exists():
            self._write()

    def due(self, agent_steps: int) -> bool:
        """Whether a multiple of the interval was reached since the last evaluation."""
        return passed(self._every, self._reached, agent_steps)

    def hold(self, agent_steps: int, around: AbstractContextManager[None] | None = None) -> None:
        """Plays games now; games that end with an error, e.g. of `around`, leave no trace."""
        with around or nullcontext():
            figures = self._evaluate(agent_steps)
        self.records.append({"agent_steps": agent_steps, **figures})
        self._reached = agent_steps
        self._write()

    def state(self) -> State:
        return {"records": [json.dumps(r) for r in self.records], "reached": self._reached}

    def load(self, state: State) -> None:
        self.records = [json.loads(text) for text in state["records"]]
        self._reached = state["reached"]

    def _write(self) -> None:
        if self._path is None:
            return
        text = "".join(json.dumps(record) + "\n" for record in self.records)
        with disk_errors(str(self._path), "free some space and continue with --resume"):
            replace_file(self._path, text.encode())
