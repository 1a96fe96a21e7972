"""A lock, so that two processes do not write one run.

Takes a folder; holds `run.lock` in it, with the process that holds it.
Knows nothing of what the folder is for.

The file names a process by its number and its start: a lock whose process is gone is stale and is
taken over without asking. A lock of the operating system would be inherited by forked workers and
outlive the run with them.
"""

from __future__ import annotations

import errno
import json
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..errors import UserError
from .machine import (is_running, process_start)

try:
    import fcntl
except ImportError:  # Windows: two starts in the same millisecond are not told apart
    fcntl = None  # type: ignore[assignment]

LOCK = "run.lock"


class LockedError(UserError):
    """Another process writes this run."""


class Lock:
    """Held from its making until `release`."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / LOCK
        with _alone(self._path) as descriptor:
            holder = _read(descriptor)
            if holder is not None and _holds(holder):
                raise LockedError(
                    f"The run {folder} is being written by process {holder.get('pid')} on "
                    f"{holder.get('host')}; wait for it, or choose another folder with --out "
                    f"(if that process is certainly gone, remove {self._path})."
                )
            _write(descriptor, _own_record())

    def release(self) -> None:
        """Gives the folder free; may be called twice, and takes nobody else's lock."""
        if not self._path.exists():
            return
        with _alone(self._path) as descriptor:
            if _read(descriptor) == _own_record():
                self._path.unlink()


def _own_record() -> dict[str, Any]:
    pid = os.getpid()
    return {"host": platform.node(), "pid": pid, "started": process_start(pid)}


def _holds(holder: dict[str, Any]) -> bool:
    """A process of another host cannot be asked and counts as alive."""
    if holder.get("host") != platform.node():
        return True
    return is_running(holder["pid"], holder.get("started"))


@contextmanager
def _alone(path: Path) -> Iterator[int]:
    """The open lock file, with no other process between reading and writing it."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            if fcntl is not None:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            # Whoever held it may have removed the file meanwhile: then this is no lock any more.
            if path.exists() and os.path.samestat(os.fstat(descriptor), path.stat()):
                yield descriptor
                return
        finally:
            os.close(descriptor)


def _read(descriptor: int) -> dict[str, Any] | None:
    """The holder; None for a new file or one that a crash left without its content."""
    try:
        record = json.loads(os.pread(descriptor, 4096, 0))
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) and type(record.get("pid")) is int else None


def _write(descriptor: int, record: dict[str, Any]) -> None:
    data = json.dumps(record).encode()
    os.ftruncate(descriptor, 0)
    if os.pwrite(descriptor, data, 0) < len(data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
