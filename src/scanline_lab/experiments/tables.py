"""Tables of an experiment: rows for the terminal, for Markdown and for JSON.

Takes columns and rows of strings and numbers; gives text. Knows no experiment.

A number is printed with the digits that its column asks for and nothing else: what was not
measured is a dash.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

WIDTH = 80
"""Columns of a terminal that a table should fit into."""


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows under named columns."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    digits: int = 2
    """Digits after the point of every float."""
    notes: Sequence[str] = field(default_factory=tuple)

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
        """For a terminal: first column to the left, numbers to the right."""
        cells = self.cells()
        widths = [
            max(len(row[place]) for row in [list(self.columns), *cells])
            for place in range(len(self.columns))
        ]
        lines = [_line(row, widths) for row in [list(self.columns), *cells]]
        rule = "-" * len(lines[0])
        return "\n".join([self.title, lines[0], rule, *lines[1:], *self.notes])

    def markdown(self) -> str:
        head = "| " + " | ".join(self.columns) + " |"
        rule = "|---|" + "---:|" * (len(self.columns) - 1)
        body = ["| " + " | ".join(row) + " |" for row in self.cells()]
        notes = ["", *self.notes] if self.notes else []
        return "\n".join([f"### {self.title}", "", head, rule, *body, *notes])


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = zip(row, widths, strict=True)
    return "  ".join([f"{first[0]:<{first[1]}}", *(f"{text:>{width}}" for text, width in others)])
