"""A crew: threads that do jobs side by side, and a wait that neither hangs nor loses an error.

Takes jobs by the name of a thread; gives control back when all are done, raises what one of them
raised, and says who is stuck and where. Knows nothing of what the jobs do.

A thread that dies unseen would leave the others waiting for ever. So every wait has a time limit
without a sign of life, and a failed job asks the others to stop before its error goes on its way.
"""

from __future__ import annotations

import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue

from ..networks import share_cores_here

Job = Callable[[], None]

_POLL_SECONDS = 0.1
_GRACE_SECONDS = 10.0
"""Longest wait for the other threads once one has failed."""
_CLOSING_SECONDS = 2.0
"""Longest wait for all threads when they are told to end."""


class StuckError(RuntimeError):
    """A thread gave no sign of life, or died without a word."""


class Crew:
    """Named threads, one job at a time each; used by one thread."""

    def __init__(self, names: Sequence[str], silent_seconds: float) -> None:
        self._silent_seconds = silent_seconds
        self._inboxes: dict[str, SimpleQueue[Job | None]] = {n: SimpleQueue() for n in names}
        self._done: SimpleQueue[tuple[str, BaseException | None]] = SimpleQueue()
        self._beats = dict.fromkeys(names, 0)
        self._busy: set[str] = set()
        self._stop = threading.Event()
        self._threads = {
            name: threading.Thread(target=self._work, args=(name,), name=name, daemon=True)
            for name in names
        }
        for thread in self._threads.values():
            thread.start()

    @property
    def is_stopping(self) -> bool:
        """Whether a job should end at its next chance, because another one has failed."""
        return self._stop.is_set()

    def beat(self, name: str) -> None:
        """A sign of life, given by a job between two of its steps."""
        self._beats[name] += 1

    def start(self, name: str, job: Job) -> None:
        self._busy.add(name)
        self._inboxes[name].put(job)

    def wait(self, look: Callable[[], None] = lambda: None) -> None:
        """Until every started job is done; raises the first error. `look` is called meanwhile."""
        error = self._first_error(self._silent_seconds, look)
        if error is not None:
            self._stop.set()
            self._first_error(min(_GRACE_SECONDS, self._silent_seconds), lambda: None)
            raise error

    def close(self) -> None:
        """Lets the threads end; may be called twice. A stuck one dies with the process."""
        self._stop.set()
        for inbox in self._inboxes.values():
            inbox.put(None)
        deadline = time.monotonic() + _CLOSING_SECONDS
        for thread in self._threads.values():
            thread.join(max(0.0, deadline - time.monotonic()))

    def _first_error(self, silent_seconds: float, look: Callable[[], None]) -> BaseException | None:
        beats, since = dict(self._beats), time.monotonic()
        while self._busy:
            look()
            try:
                name, error = self._done.get(timeout=min(_POLL_SECONDS, silent_seconds))
            except Empty:
                if self._beats != beats:
                    beats, since = dict(self._beats), time.monotonic()
                dead = [name for name in self._busy if not self._threads[name].is_alive()]
                if dead or time.monotonic() - since > silent_seconds:
                    return self._stuck(dead or sorted(self._busy), silent_seconds)
                continue
            since = time.monotonic()
            self._busy.discard(name)
            if error is not None:
                return error
        return None

    def _stuck(self, names: list[str], silent_seconds: float) -> StuckError:
        found = [f"{name}:\n{where(self._threads[name])}" for name in names]
        return StuckError(
            f"No sign of life for {silent_seconds:g} seconds from {', '.join(names)}; they are at\n"
            + "\n".join(found)
        )

    def _work(self, name: str) -> None:
        share_cores_here()
        while (job := self._inboxes[name].get()) is not None:
            error: BaseException | None = None
            try:
                job()
            except BaseException as raised:  # the waiting thread raises it again
                error = raised
            self._done.put((name, error))


def where(thread: threading.Thread) -> str:
    """The stack of a thread, as text."""
    frame = sys._current_frames().get(thread.ident or -1)
    return "".join(traceback.format_stack(frame)) if frame is not None else "it has ended"
