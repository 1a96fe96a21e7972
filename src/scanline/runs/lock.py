"""A lock, so that two processes do not write one run.

Takes a folder; holds `run.lock` in it, which names the process that holds it.
Knows nothing of what the folder is for.

A process is named by its number and its start: a lock whose process is gone is stale and is taken
over without asking. `filelock` alone is not enough: its lock of the operating system would be
inherited by forked workers and outlive the run with them, and its `SoftFileLock` waits for ever
for a file that a crash left empty. It guards the moment in which the record is read and written.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock

from ..errors import UserError
from ..files import UNFINISHED, json_object, replace_file
from ..machine import process_start

LOCK = "run.lock"


class LockedError(UserError):
    """Another process writes this run."""


class Lock:
    """Held from its making until `release`."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / LOCK
        with _guarded(folder):
            holder = _read(self._path)
            if holder is not None and _holds(holder):
                raise LockedError(
                    f"The run {folder} is being written by process {holder['pid']} on "
                    f"{holder.get('host')}; wait for it, or choose another folder with --out "
                    f"(if that process is certainly gone, remove {self._path})."
                )
            replace_file(self._path, json.dumps(_own_record()).encode())

    def release(self) -> None:
        """Gives the folder free; may be called twice, and leaves another process's lock alone."""
        if not self._path.exists():
            return
        with _guarded(self._path.parent):
            if _read(self._path) == _own_record():
                self._path.unlink()


@contextmanager
def released_on_error(lock: Lock) -> Iterator[Lock]:
    """Keeps the lock unless the block fails."""
    try:
        yield lock
    except BaseException:
        lock.release()
        raise


@contextmanager
def _guarded(folder: Path) -> Iterator[None]:
    """No other process is inside at the same time."""
    guard = folder / (UNFINISHED + "guard")
    with FileLock(guard):
        try:
            yield
        finally:
            guard.unlink()  # while it is held: a waiting process sees that and tries again


def _own_record() -> dict[str, Any]:
    pid = os.getpid()
    return {"host": platform.node(), "pid": pid, "started": process_start(pid)}


def _read(path: Path) -> dict[str, Any] | None:
    """The holder; None without a file, or with one that a crash left without its content."""
    record = json_object(path.read_bytes()) if path.exists() else None
    return record if record is not None and type(record.get("pid")) is int else None


def _holds(holder: dict[str, Any]) -> bool:
    """A process of another host cannot be asked and counts as alive."""
    if holder.get("host") != platform.node():
        return True
    started = holder.get("started")
    return started is not None and process_start(holder["pid"]) == started
