"""TensorBoard events: a file of scalars, written by the thread that gives them.

Takes names and numbers with their agent step; gives a file that TensorBoard reads.
Knows no metric and no run.

TensorBoard's own writer passes events to a thread, in which a disk that refuses them ends that
thread with a traceback. Here a refused row raises where it is written, as with any other log file.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import IO

_numbers = count()
"""Of the event files of this process: two that begin within one second get two names."""


class EventFile:
    """One open file; steps that an earlier file of the folder has from `purge_step` on are void."""

    def __init__(self, folder: Path, purge_step: int) -> None:
        # Half a second to import: not for runs without TensorBoard.
        from tensorboard.compat.proto.event_pb2 import Event, SessionLog
        from tensorboard.compat.proto.summary_pb2 import Summary
        from tensorboard.summary.writer.record_writer import RecordWriter

        self._event, self._summary = Event, Summary
        place = f"{time.time():010.0f}.{platform.node()}.{os.getpid()}.{next(_numbers)}"
        self._file: IO[bytes] = open(folder / f"events.out.tfevents.{place}", "xb")  # noqa: SIM115
        self._records = RecordWriter(self._file)
        self._add(file_version="brain.Event:2")
        if purge_step:
            self._add(step=purge_step, session_log=SessionLog(status=SessionLog.START))
        self.flush()

    def write(self, values: Mapping[str, float | int], step: int) -> None:
        """One point of every curve, passed on to the system."""
        points = [self._summary.Value(tag=name, simple_value=v) for name, v in values.items()]
        self._add(step=step, summary=self._summary(value=points))
        self.flush()

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        self._file.close()

    def _add(self, **content: object) -> None:
        event = self._event(wall_time=time.time(), **content)
        self._records.write(event.SerializeToString())
