"""The log files of a run: one row at a time into JSON lines, CSV and TensorBoard.

Takes a row (equal for equal seeds) and its rates (which depend on the clock); gives
`progress.jsonl`, `progress.csv`, `rates.jsonl` and TensorBoard events.
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
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..files import disk_errors, read_json_lines, refuse_removed, replace_file
from .events import EventFile

PROGRESS, TABLE, RATES = "progress.jsonl", "progress.csv", "rates.jsonl"
STEP = "agent_steps"

Row = Mapping[str, float | int | None]

_REMEDY = "free some space and continue with --resume"


class RowFiles:
    """Open log files, cut back to the rows that count; one writer per folder."""

    def __init__(self, folder: Path, num_rows: int, tensorboard: bool) -> None:
        self._folder = folder
        with disk_errors(f"the log files in {folder}", _REMEDY):
            rows = _cut_back(folder / PROGRESS, num_rows)
            _cut_back(folder / RATES, num_rows)
            self._columns = _columns(rows)
            self._rewrite_table(rows)
            self._progress = open(folder / PROGRESS, "a", encoding="utf-8")  # noqa: SIM115
            self._rates = open(folder / RATES, "a", encoding="utf-8")  # noqa: SIM115
            self._table = self._open_table()
            purge_step = int(rows[-1][STEP]) + 1 if rows else 0
            self._events = EventFile(folder, purge_step) if tensorboard else None

    def write(self, row: Row, rates: Row) -> None:
        """Appends one row everywhere and passes it on to the system."""
        with disk_errors(f"the log files in {self._folder}", _REMEDY):
            refuse_removed(self._progress.fileno(), self._rates.fileno())
            for file, values in ((self._progress, row), (self._rates, rates)):
                file.write(json.dumps(values) + "\n")
                file.flush()
            self._write_table(row)
            self._write_events(row, rates)

    def sync(self) -> None:
        """Waits until the disk has every row."""
        with disk_errors(f"the log files in {self._folder}", _REMEDY):
            for file in (self._progress, self._rates):
                os.fsync(file.fileno())

    def close(self) -> None:
        files = (self._progress, self._rates, self._table, self._events)
        for file in files:
            # Every row was flushed: what a full disk refused was raised by `write`.
            with suppress(OSError):
                if file is not None:
                    file.close()

    def _write_table(self, row: Row) -> None:
        new = [key for key in row if key not in self._columns]
        if not new:
            self._table.write(_table([row], self._columns))
            self._table.flush()
            return
        self._columns += new
        self._table.close()
        self._rewrite_table(read_json_lines(self._folder / PROGRESS))
        self._table = self._open_table()

    def _rewrite_table(self, rows: list[dict[str, Any]]) -> None:
        header = _table([{key: key for key in self._columns}], self._columns)
        text = header + _table(rows, self._columns) if rows else ""
        replace_file(self._folder / TABLE, text.encode())

    def _open_table(self) -> io.TextIOWrapper:
        return open(self._folder / TABLE, "a", encoding="utf-8", newline="")

    def _write_events(self, row: Row, rates: Row) -> None:
        if self._events is None:
            return
        points = {k: v for k, v in {**row, **rates}.items() if v is not None and k != STEP}
        self._events.write(points, int(row[STEP] or 0))


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


def _columns(rows: list[dict[str, Any]]) -> list[str]:
    """Every name in the order of its first appearance."""
    return list(dict.fromkeys(key for row in rows for key in row))


def _table(rows: list[Any], columns: list[str]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([row.get(key) for key in columns] for row in rows)
    return text.getvalue()
