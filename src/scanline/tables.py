"""Tables: rows for the terminal, for Markdown and for JSON.

Takes columns and rows of strings and numbers; gives text. Knows no command.

A number is printed with the digits that its column asks for and nothing else: what was not
measured is a dash.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

WIDTH = 80
"""Columns of a terminal that a table should fit into."""
_WIDEST = 10_000


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows under named columns."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    digits: int = 2
    """Digits after the point of every float."""
    notes: Sequence[str] = field(default_factory=tuple)
    num_left: int = 1
    """Leading columns that are aligned to the left: names, not numbers."""

    def cells(self) -> list[list[str]]:
        return [[self._text(value) for value in row] for row in self.rows]

    def _text(self, value: Any) -> str:
        if value is None:
            return "-"
        if isinstance(value, float):
            return f"{value:,.{self.digits}f}"
        return f"{value:,}" if isinstance(value, int) else str(value)

    def record(self) -> Mapping[str, Any]:
        """As JSON holds it."""
        return {
            "title": self.title,
            "columns": list(self.columns),
            "rows": [list(row) for row in self.rows],
            "notes": list(self.notes),
        }

    def text(self) -> str:
        """For a terminal: names to the left, numbers to the right."""
        head, *body = aligned([list(self.columns), *self.cells()], num_left=self.num_left)
        return "\n".join([self.title, head, "-" * len(head), *body, *self.notes])

    def markdown(self) -> str:
        head = "| " + " | ".join(self.columns) + " |"
        rule = "|---|" + "---:|" * (len(self.columns) - 1)
        body = ["| " + " | ".join(row) + " |" for row in self.cells()]
        notes = ["", *self.notes] if self.notes else []
        return "\n".join([f"### {self.title}", "", head, rule, *body, *notes])


def aligned(rows: Sequence[Sequence[str]], *, gap: int = 2, num_left: int = 1) -> list[str]:
    """A line per row, never cut: leading columns to the left, the rest right, `gap` apart."""
    grid = Grid.grid(padding=(0, gap, 0, 0))
    for place in range(len(rows[0])):
        grid.add_column(justify="left" if place < num_left else "right", no_wrap=True)
    for row in rows:
        grid.add_row(*map(Text, row))
    console = Console(file=io.StringIO(), width=_WIDEST, color_system=None)
    with console.capture() as printed:
        console.print(grid)
    return [line.rstrip() for line in printed.get().splitlines()]
