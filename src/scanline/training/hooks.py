"""Hooks: code of a user that a run calls whenever a row is logged.

Takes loggers and a callback; hangs them on a run. Knows no part. The callback gets numbers and
copies of the weights: whatever it does, what the run learns stays the same; it may only end it.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..records import Views
from ..runs.leader import LeaderRun
from ..runs.loggers import Logger


@dataclass(frozen=True, kw_only=True)
class TrainingProgress:
    """How far a run is at a row of its log."""

    folder: Path
    agent_steps: int
    updates: int
    episodes: int
    score: float | None
    """Mean of the last 100 training games; None before the first has finished."""
    row: Mapping[str, float | int | None]
    """What was logged, by name: losses, charts."""
    training_seconds: float
    _weights: Callable[[], Views] = field(repr=False)

    def views(self) -> Views:
        """A copy of the newest weights: `views().live` is the network, `target` its lagged copy."""
        return copy.deepcopy(self._weights())


Callback = Callable[[TrainingProgress], bool | None]
"""Called after every row; False ends the run as a limit does, with a checkpoint."""


@dataclass(frozen=True)
class Hooks:
    """What a user hangs on a run."""

    loggers: Sequence[Logger] = ()
    callback: Callback | None = None

    def attach(self, run: LeaderRun, weights: Callable[[], Views]) -> None:
        """Before the run begins."""
        run.progress.loggers = [*run.progress.loggers, *self.loggers]
        callback = self.callback
        if callback is not None:
            run.after_row = lambda: callback(_progress_of(run, weights)) is not False


def _progress_of(run: LeaderRun, weights: Callable[[], Views]) -> TrainingProgress:
    progress = run.progress
    return TrainingProgress(
        folder=run.folder.path,
        agent_steps=progress.agent_steps,
        updates=progress.updates,
        episodes=progress.episodes,
        score=progress.scores.mean,
        row=dict(progress.last_row),
        training_seconds=progress.time_split.training_seconds(),
        _weights=weights,
    )
