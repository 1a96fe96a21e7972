"""Watchdog: when a run stands still, the stacks of all its threads go into its folder.

Takes a function that gives something that changes while the run moves, and one that names the part
that runs; writes `stuck.txt`. Knows nothing of the loop and ends nothing.

The observer is a thread that sleeps, so the hot path pays nothing. A native call that holds the
interpreter would silence it: for that case it keeps setting the alarm of `faulthandler`, whose
own thread needs no interpreter and writes the same file a little later.
"""

from __future__ import annotations

import faulthandler
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ..files import disk_errors
from ..settings import at_least

REPORT = "stuck.txt"
_CHECKS_PER_WAIT = 8
_ALARM_FACTOR = 1.5
"""The alarm waits longer than the observer, whose report is better: it names the part."""


@dataclass(frozen=True, kw_only=True)
class WatchdogSettings:
    """When a run counts as stuck."""

    stuck_seconds: float = 300.0
    """Seconds without progress after which the stacks of all threads are written; 0 for never."""

    def __post_init__(self) -> None:
        at_least(0, self, "stuck_seconds")


class Watchdog:
    """Observes a run inside a `with` block."""

    def __init__(
        self,
        folder: Path,
        settings: WatchdogSettings,
        *,
        position: Callable[[], object],
        part: Callable[[], str],
    ) -> None:
        self._path, self._seconds = folder / REPORT, settings.stuck_seconds
        self._position, self._part = position, part
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._observe, name="watchdog", daemon=True)

    def __enter__(self) -> Watchdog:
        if self._seconds:
            with disk_errors(str(self._path), "free some space and continue with --resume"):
                self._file = open(self._path, "a", encoding="utf-8")
            self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        if not self._seconds:
            return
        self._over.set()
        self._thread.join()
        faulthandler.cancel_dump_traceback_later()
        with suppress(OSError):  # a full disk or a removed folder is another part's to report
            self._file.close()
            if not self._path.stat().st_size:
                self._path.unlink()

    def _observe(self) -> None:
        last, since, reported = self._position(), time.monotonic(), False
        while not self._over.wait(self._seconds / _CHECKS_PER_WAIT):
            faulthandler.dump_traceback_later(self._seconds * _ALARM_FACTOR, file=self._file)
            now = self._position()
            if now != last:
                last, since, reported = now, time.monotonic(), False
            elif not reported and time.monotonic() - since >= self._seconds:
                reported = True
                self._report(time.monotonic() - since)

    def _report(self, seconds: float) -> None:
        what = f"No progress for {seconds:.0f} seconds; the part that runs is: {self._part()}."
        try:
            self._file.write(f"{what} Stacks of all threads, newest call first:\n\n")
            self._file.flush()
            faulthandler.dump_traceback(self._file, all_threads=True)
            self._file.write("\n")
            self._file.flush()
            place = f"The stacks are in {self._path}."
        except OSError as error:
            place = f"The stacks could not be written to {self._path}: {error}."
        print(f"{what} {place}", file=sys.stderr, flush=True)
