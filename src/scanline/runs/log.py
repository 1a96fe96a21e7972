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
import platform
import time
import warnings
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from itertools import count
from pathlib import Path
from typing import IO, Any, TextIO

from ..files import disk_errors, read_json_lines, refuse_removed, replace_file

PROGRESS, TABLE, RATES = "progress.jsonl", "progress.csv", "rates.jsonl"
STEP = "agent_steps"

Row = Mapping[str, float | int | None]

_event_files = count()
"""Numbers the event files of this process: two that begin within one second get two names."""


class LogFiles:
    """Open log files, cut back to the rows that count; one writer per folder."""

    def __init__(self, folder: Path, num_rows: int, tensorboard: bool) -> None:
        self._folder = folder
        with self._disk_errors():
            rows = _cut_back(folder / PROGRESS, num_rows)
            _cut_back(folder / RATES, num_rows)
            self._progress = open(folder / PROGRESS, "a", encoding="utf-8")  # noqa: SIM115
            self._rates = open(folder / RATES, "a", encoding="utf-8")  # noqa: SIM115
            self._columns = list(dict.fromkeys(key for row in rows for key in row))
            self._table = self._rewritten_table(rows)
            purge_step = int(rows[-1][STEP]) + 1 if rows else 0
            self._events = EventFile(folder, purge_step) if tensorboard else None

    def write(self, row: Row, rates: Row) -> None:
        """Appends one row everywhere and passes it on to the system."""
        with self._disk_errors():
            refuse_removed(self._progress.fileno(), self._rates.fileno())
            for file, values in ((self._progress, row), (self._rates, rates)):
                file.write(json.dumps(values) + "\n")
                file.flush()
            self._write_table(row)
            if self._events is not None:
                points = {k: v for k, v in {**row, **rates}.items() if v is not None and k != STEP}
                self._events.write(points, int(row[STEP] or 0))

    def sync(self) -> None:
        """Waits until the disk has every row."""
        with self._disk_errors():
            for file in (self._progress, self._rates):
                os.fsync(file.fileno())

    def close(self) -> None:
        for file in (self._progress, self._rates, self._table, self._events):
            # Every row was flushed: what a full disk refused was raised by `write`.
            with suppress(OSError):
                if file is not None:
                    file.close()

    def _write_table(self, row: Row) -> None:
        new = [key for key in row if key not in self._columns]
        if new:
            self._columns += new
            self._table.close()
            self._table = self._rewritten_table(read_json_lines(self._folder / PROGRESS))
        else:
            self._table.write(_table([row], self._columns))
            self._table.flush()

    def _rewritten_table(self, rows: Sequence[Row]) -> TextIO:
        """The table of these rows, open for more."""
        header: Any = dict(zip(self._columns, self._columns, strict=True))
        text = _table([header, *rows], self._columns) if rows else ""
        replace_file(self._folder / TABLE, text.encode())
        return open(self._folder / TABLE, "a", encoding="utf-8", newline="")

    def _disk_errors(self) -> AbstractContextManager[None]:
        remedy = "free some space and continue with --resume"
        return disk_errors(f"the log files in {self._folder}", remedy)


class EventFile:
    """An open file of TensorBoard events; steps of an earlier file from `purge_step` on are void.

    TensorBoard's own writer passes events to a thread, in which a disk that refuses them ends that
    thread with a traceback. Here a refused row raises where it is written, as with any log file.
    """

    def __init__(self, folder: Path, purge_step: int) -> None:
        # Half a second to import: not for runs without TensorBoard.
        from tensorboard.compat.proto.event_pb2 import Event, SessionLog
        from tensorboard.compat.proto.summary_pb2 import Summary
        from tensorboard.summary.writer.record_writer import RecordWriter

        self._event, self._summary = Event, Summary
        name = f"{time.time():010.0f}.{platform.node()}.{os.getpid()}.{next(_event_files)}"
        self._file: IO[bytes] = open(folder / f"events.out.tfevents.{name}", "xb")  # noqa: SIM115
        self._records = RecordWriter(self._file)
        self._add(file_version="brain.Event:2")
        if purge_step:
            self._add(step=purge_step, session_log=SessionLog(status=SessionLog.START))
        self._file.flush()

    def write(self, values: Mapping[str, float | int], step: int) -> None:
        """One point of every curve, passed on to the system."""
        points = [self._summary.Value(tag=name, simple_value=v) for name, v in values.items()]
        self._add(step=step, summary=self._summary(value=points))
        self._file.flush()

    def close(self) -> None:
        self._file.close()

    def _add(self, **content: object) -> None:
        event = self._event(wall_time=time.time(), **content)
        self._records.write(event.SerializeToString())


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
