"""The options of the commands that read runs: `evaluate`, `play` and `report`.

Gives frozen settings with a sentence under each field, which is its help. Knows no command's work;
the options of `train` are in train_options.py.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro

from .errors import UserError


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Which run, and which code that it names may be run."""

    run: tyro.conf.Positional[Path]
    """Folder of the run."""
    recipe: str | None = None
    """The recipe's file, where you have not trained from it: a run's folder alone runs no code."""
    game: str | None = None
    """The game, where it is of a module that you have not trained with."""


@dataclass(frozen=True, kw_only=True)
class PolicyOptions(RunOptions):
    """How the policy of a run chooses its actions."""

    checkpoint: str | None = None
    """Agent steps of the checkpoint, or `best` for that of the best evaluation while it trained;
    the newest when not given."""
    greedy: bool = False
    """Always take the best action, whatever the algorithm's evaluations do."""
    sampled: bool = False
    """Choose actions as in training, whatever the algorithm's evaluations do."""

    def arguments(self) -> dict[str, Any]:
        """All options; `greedy` is None for what the algorithm declares."""
        if self.greedy and self.sampled:
            raise UserError(
                "--greedy and --sampled exclude each other; give one of them, or neither."
            )
        given = {name: value for name, value in vars(self).items() if name != "sampled"}
        return given | {"greedy": self.greedy if self.greedy or self.sampled else None}


@dataclass(frozen=True, kw_only=True)
class EvaluateOptions(PolicyOptions):
    """Play whole games with the newest weights of a run."""

    episodes: int = 30
    """Games to play; games count in the order in which they start."""
    seed: int | None = None
    """Key of the games' random numbers."""


@dataclass(frozen=True, kw_only=True)
class PlayOptions(PolicyOptions):
    """Film one game of a run as mp4 and gif, or show it in a window."""

    live: bool = False
    """Show the game in a window instead, in colour at the console's speed (extra `play`); Escape
    or q closes it."""
    out: Path | None = None
    """Where the films go; the run's folder when not given."""
    seed: int = 0
    """Which game is played."""
    most_agent_steps: int = 4_000
    """Agent steps after which it ends."""


@dataclass(frozen=True, kw_only=True)
class ReportOptions:
    """Write one self-contained page about one run or several."""

    runs: tyro.conf.Positional[tuple[Path, ...]]
    """Folders of runs; several are laid over each other."""
    out: Path | None = None
    """File or folder of the page; report.html in the run's folder, or here for several runs."""


def option_names(kind: Any) -> list[str]:
    """Names of the options, which have defaults; what must be given has a place instead."""
    fields = dataclasses.fields(kind)
    return [field.name for field in fields if field.default is not dataclasses.MISSING]
