"""An experiment: a paper's table or figure as data plus functions.

Takes nothing; gives the records that an experiment's file fills: cells to measure, how one is
measured, tables, a picture, and the paper's claims. Knows no recipe, engine or file.

A cell is named by plain values, so that its result can be kept and compared with what is asked
later. Everything after measuring is a function of results alone: a report can be made again from
kept results without measuring anything.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from scanline.tables import Table

from .claims import Claim

Scale = Literal["smoke", "desk", "paper"]
SCALES: tuple[Scale, ...] = ("smoke", "desk", "paper")
"""smoke: minutes, whether it works; desk: hours on one machine; paper: the paper's sizes."""

Result = Mapping[str, Any]
"""What one cell gave: plain values that JSON can hold."""
Results = Mapping[str, Result]
"""Results by the name of their cell, as far as they are there."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One measurement of an experiment."""

    name: str
    """Unique in its experiment, and the name of its file."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """All that the measurement depends on, in plain values."""


def grid(form: str, axes: Mapping[str, Sequence[Any]], **shared: Any) -> list[Cell]:
    """A cell for every combination of the axes' values, the last axis fastest.

    `form` makes its name of its settings; `shared` settings are those of all.
    """
    combinations = (
        dict(zip(axes, each, strict=True)) for each in itertools.product(*axes.values())
    )
    every = ({**values, **shared} for values in combinations)
    return [Cell(name=form.format(**settings), settings=settings) for settings in every]


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """One table or figure of a paper, ready to be measured again."""

    name: str
    """What `scanline reproduce` calls it."""
    summary: str
    """One sentence for `scanline list experiments`."""
    paper: str
    """Whose result it is, and where it stands."""
    cells: Callable[[Scale], Sequence[Cell]]
    """What is measured at a scale, in order."""
    tables: Callable[[Scale, Results], Sequence[Table]]
    """Results in the form of the paper, beside its numbers."""
    measure: Callable[[Cell, Results], Result] | None = None
    """One cell; the second argument holds the results of the cells before it."""
    measure_run: Callable[[Path], Result] | None = None
    """Instead of `measure`: cells are training runs of a queue, and this reads a finished one."""
    claims: Sequence[Claim] = ()
    """What the paper says, to be confirmed or contradicted."""
    plot: Callable[[Scale, Results, Path], None] | None = None
    """Draws one picture into a file."""
    notes: Sequence[str] = ()
    """What a reader must know to judge the figures."""
    line: Callable[[Result], str] = lambda result: ""
    """A result in a few words, for the progress of the command."""
