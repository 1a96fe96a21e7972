"""Leases: a worker shows that it lives, and others see when it no longer does.

Takes a file; a `Lease` rewrites it with a growing count, a `Watch` compares what it reads.
Knows neither cells nor processes.

Clocks of two machines are never compared. A lease is stale when its content has not changed for
its seconds on the watcher's own monotonic clock, counted from the watcher's first look.
"""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..files import json_object, replace_file

LEASE_SECONDS = 120.0
"""Seconds without a heartbeat after which a cell is taken over."""
BEATS = 5
"""Heartbeats within the seconds of a lease."""

Clock = Callable[[], float]


class Lease:
    """The heartbeat of one claim."""

    def __init__(self, path: Path, token: str, seconds: float, clock: Clock = time.monotonic):
        self._path, self._clock, self._every = path, clock, seconds / BEATS
        self._record = {
            "host": platform.node(),
            "pid": os.getpid(),
            "token": token,
            "lease_seconds": seconds,
        }
        self._count = 0
        self.renew()

    def renew(self) -> None:
        """Beats once."""
        self._count += 1
        record = {**self._record, "heartbeat": self._count}
        replace_file(self._path, (json.dumps(record) + "\n").encode())
        self._next = self._clock() + self._every

    def renew_if_due(self) -> None:
        if self._clock() >= self._next:
            self.renew()


class Watch:
    """Leases of other workers, as seen with this worker's clock."""

    def __init__(self, seconds: float, clock: Clock = time.monotonic) -> None:
        self._seconds, self._clock = seconds, clock
        self._seen: dict[str, tuple[bytes, float]] = {}

    def is_stale(self, name: str, path: Path) -> bool:
        """Whether a lease has not changed for its seconds; one that is not there may be stale."""
        content, now = _content(path), self._clock()
        before, since = self._seen.get(name, (None, now))
        if content != before:
            self._seen[name] = content, now
            return False
        return now - since >= max(self._seconds, _declared_seconds(content))

    def forget_all_but(self, names: set[str]) -> None:
        self._seen = {name: seen for name, seen in self._seen.items() if name in names}


def read_lease(path: Path) -> dict[str, Any]:
    """What a lease says; nothing where it cannot be read."""
    return json_object(_content(path)) or {}


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _declared_seconds(content: bytes) -> float:
    try:
        return float(json.loads(content)["lease_seconds"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return 0.0
