"""The log of a run: one row at a time into its own files and to its loggers.

Takes a row (equal for equal seeds) and its rates (which depend on the clock); gives
`progress.jsonl`, `progress.csv` and `rates.jsonl`, and passes both on to loggers.
Knows no metrics: a row is names and numbers.

The JSON lines are the truth. The CSV is derived from them, so that a column that first appears
late, or a row that is cut away on resume, leaves the same bytes as if it had always been so.
"""

from __future__ import annotations

import csv
import io
import json
import os
import warnings
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any, TextIO

from ..files import disk_errors, read_json_lines, refuse_removed, replace_file
from .loggers import PROGRESS, STEP, Logger

TABLE, RATES = "progress.csv", "rates.jsonl"

Row = Mapping[str, float | int | None]


class JsonLines:
    """A logger: a file of JSON lines, cut back to the rows that count, and a table of the same."""

    def __init__(self, name: str, num_rows: int = 0, table: str = "") -> None:
        self._name, self._num_rows, self._table_name = name, num_rows, table

    def open(self, settings: Mapping[str, Any], folder: Path) -> None:
        self._folder = folder
        self.rows = _cut_back(folder / self._name, self._num_rows)
        self._file = open(folder / self._name, "a", encoding="utf-8")  # noqa: SIM115
        self._columns = list(dict.fromkeys(key for row in self.rows for key in row))
        self._table: TextIO | None = self._rewritten_table(self.rows) if self._table_name else None

    def row(self, agent_steps: int, values: Row) -> None:
        """Appends one row and passes it on to the system."""
        refuse_removed(self._file.fileno())
        row = {STEP: agent_steps, **values}
        self._file.write(json.dumps(row) + "\n")
        self._file.flush()
        if self._table is not None:
            self._table = self._with_row(self._table, row)

    def sync(self) -> None:
        """Waits until the disk has every row."""
        os.fsync(self._file.fileno())

    def close(self) -> None:
        for file in (self._file, self._table):
            # Every row was flushed: what a full disk refused was raised by `row`.
            with suppress(OSError):
                if file is not None:
                    file.close()

    def _with_row(self, table: TextIO, row: Row) -> TextIO:
        new = [key for key in row if key not in self._columns]
        if new:
            self._columns += new
            table.close()
            return self._rewritten_table(read_json_lines(self._folder / self._name))
        table.write(_table([row], self._columns))
        table.flush()
        return table

    def _rewritten_table(self, rows: Sequence[Row]) -> TextIO:
        """The table of these rows, open for more."""
        header: Any = dict(zip(self._columns, self._columns, strict=True))
        text = _table([header, *rows], self._columns) if rows else ""
        replace_file(self._folder / self._table_name, text.encode())
        return open(self._folder / self._table_name, "a", encoding="utf-8", newline="")


class RunLog:
    """All open loggers of a run; one writer per folder."""

    def __init__(
        self,
        folder: Path,
        num_rows: int,
        loggers: Sequence[Logger] = (),
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self._folder, self._open = folder, list[Logger]()
        self._progress = JsonLines(PROGRESS, num_rows, TABLE)
        self._rates, self._others = JsonLines(RATES, num_rows), loggers
        with self._disk_errors():
            for each in (self._progress, self._rates, *loggers):
                each.open(settings or {}, folder)
                self._open.append(each)

    @property
    def rows(self) -> Sequence[Row]:
        """The rows before this process."""
        return self._progress.rows

    def write(self, row: Row, rates: Row) -> None:
        """Passes one row on to every logger."""
        agent_steps = int(row[STEP] or 0)
        own, clock = ({k: v for k, v in each.items() if k != STEP} for each in (row, rates))
        points = {k: v for k, v in {**own, **clock}.items() if v is not None}
        with self._disk_errors():
            self._progress.row(agent_steps, own)
            self._rates.row(agent_steps, clock)
            for each in self._others:
                each.row(agent_steps, points)

    def sync(self) -> None:
        """Waits until the disk has every row of the run's own files."""
        with self._disk_errors():
            self._progress.sync()
            self._rates.sync()

    def close(self) -> None:
        while self._open:
            with suppress(OSError):
                self._open.pop().close()

    def _disk_errors(self) -> AbstractContextManager[None]:
        remedy = "free some space and continue with --resume"
        return disk_errors(f"the log files in {self._folder}", remedy)


def _cut_back(path: Path, num_rows: int) -> list[dict[str, Any]]:
    rows = read_json_lines(path)
    if len(rows) < num_rows:
        warnings.warn(
            f"{path} holds {len(rows)} rows where the checkpoint counts {num_rows}; "
            "the curve will have a gap.",
            stacklevel=4,
        )
    rows = rows[:num_rows]
    if path.exists():
        lines = path.read_bytes().splitlines(keepends=True)[: len(rows)]
        os.truncate(path, sum(map(len, lines)))
    return rows


def _table(rows: Sequence[Row], columns: Sequence[str]) -> str:
    text = io.StringIO()
    csv.DictWriter(text, columns, lineterminator="\n").writerows(rows)
    return text.getvalue()
