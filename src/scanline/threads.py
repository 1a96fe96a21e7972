"""Threads: a bounded queue, worker threads, and heartbeats, so that every wait ends.

Takes jobs by the name of a thread, and small items such as numbers of buffers; raises in one place
what a thread raised, and says which thread is stuck and where.
Knows nothing of what the jobs do and what the items stand for.

A thread that dies unseen would leave others waiting for ever. So every thread gives heartbeats,
a failed one is noticed by the thread that checks, and a queue that closes wakes all that wait.
"""

from __future__ import annotations

import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from queue import Empty, SimpleQueue
from typing import Generic, TypeVar

Item = TypeVar("Item")
Name = TypeVar("Name")
Job = Callable[[], object]
Wait = Callable[[threading.Condition, float], object]

_POLL_SECONDS = 0.1
_GRACE_SECONDS = 10.0
"""Longest wait for threads that were asked to stop."""
_SECOND_GRACE_SECONDS = 2.0
"""The same, once they were waited for."""


class StuckError(RuntimeError):
    """A thread or process gave no heartbeat for too long."""


class QueueClosedError(RuntimeError):
    """The queue was closed: a thread that waits on it should end."""


class BoundedQueue(Generic[Item]):
    """First in, first out; for any number of threads on both sides.

    `take` follows the rule of dynamic batching: wait for the first item, then a little for a
    minimum, then take all that is there up to a maximum. `take_together` gives a whole number of
    items or none: a thread that waits holds nothing, so that takers cannot wait for each other.
    """

    def __init__(
        self,
        capacity: int,
        clock_seconds: Callable[[], float] = time.monotonic,
        wait: Wait = threading.Condition.wait,
    ) -> None:
        if capacity < 1:
            raise ValueError(f"A queue of capacity {capacity} can hold nothing; use 1 or more.")
        self.capacity = capacity
        self._clock_seconds, self._wait = clock_seconds, wait
        self._items: deque[Item] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self.take_seconds = 0.0
        """Time that takers have waited, all together."""
        self.put_seconds = 0.0
        """Time that putters have waited because the queue was full."""

    def __len__(self) -> int:
        return len(self._items)

    def put(self, item: Item, timeout_seconds: float) -> bool:
        """Appends an item once there is room; False if there was none in time."""
        with self._changed:
            begun = self._clock_seconds()
            there = self._until(lambda: len(self._items) < self.capacity, begun + timeout_seconds)
            self.put_seconds += self._clock_seconds() - begun
            if there:
                self._items.append(item)
                self._changed.notify_all()
            return there

    def take(
        self,
        minimum: int = 1,
        maximum: int = 1,
        *,
        timeout_seconds: float = 0.0,
        patience_seconds: float = 0.1,
    ) -> list[Item]:
        """Up to `maximum` items, fewer than `minimum` only when the timeout is over.

        The timeout counts from the moment at which there is one; nothing if none comes within the
        patience.
        """
        with self._changed:
            begun = self._clock_seconds()
            if self._until(lambda: len(self._items) > 0, begun + patience_seconds):
                since = self._clock_seconds()
                self._until(lambda: len(self._items) >= minimum, since + timeout_seconds)
            self.take_seconds += self._clock_seconds() - begun
            return self._popped(min(maximum, len(self._items)))

    def take_together(self, num: int, *, patience_seconds: float) -> list[Item]:
        """Exactly `num` items, or none if there are not so many within the patience."""
        if not 1 <= num <= self.capacity:
            raise ValueError(
                f"{num} items are never together in a queue of capacity {self.capacity}; use 1 to "
                f"{self.capacity}."
            )
        with self._changed:
            begun = self._clock_seconds()
            there = self._until(lambda: len(self._items) >= num, begun + patience_seconds)
            self.take_seconds += self._clock_seconds() - begun
            return self._popped(num if there else 0)

    def _popped(self, num: int) -> list[Item]:
        taken = [self._items.popleft() for _ in range(num)]
        if taken:
            self._changed.notify_all()
        return taken

    def close(self) -> None:
        """Nothing goes in or out any more; every waiting thread is woken. May be called twice."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _until(self, ready: Callable[[], bool], deadline_seconds: float) -> bool:
        """Waits, with the lock held, until it is so or the time is over; raises when closed."""
        while not self._closed:
            left = deadline_seconds - self._clock_seconds()
            if ready():
                return True
            if left <= 0:
                return False
            self._wait(self._changed, left)
        raise QueueClosedError("The queue is closed.")


class Heartbeats(Generic[Name]):
    """When each thread or process last gave a sign of life; heartbeats may come from any thread.

    Ask often: if more than half the patience has passed since the last call, the whole process
    stood still, and that time counts against none of them.
    """

    def __init__(
        self, patience_seconds: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.patience_seconds, self._clock = patience_seconds, clock
        self._last: dict[Name, float] = {}
        self._asked_seconds = clock()

    def beat(self, *names: Name) -> None:
        """A sign of life of each."""
        now = self._clock()
        for name in names:
            self._last[name] = now

    def silent(self, names: Iterable[Name]) -> list[Name]:
        """Those of the names whose last heartbeat is too long ago; each has given one."""
        now = self._clock()
        if now - self._asked_seconds > self.patience_seconds / 2:
            self.beat(*self._last)
        self._asked_seconds = now
        return [name for name in names if now - self._last[name] > self.patience_seconds]


class _Current(threading.local):
    """The heartbeat of a worker thread; nothing in other threads."""

    beat: Job = staticmethod(lambda: None)


_current = _Current()


def heartbeat() -> None:
    """A sign of life of the calling thread, between two steps of a job or inside a long wait."""
    _current.beat()


class WorkerThreads:
    """Named daemon threads that run jobs side by side; used by one thread."""

    def __init__(self, stuck_seconds: float, initializer: Job = lambda: None) -> None:
        """`initializer` runs first in every thread."""
        self._heartbeats = Heartbeats[str](stuck_seconds)
        self._initializer = initializer
        self._wanted: dict[str, int] = {}
        self._threads: dict[str, threading.Thread] = {}
        self._errors: SimpleQueue[BaseException] = SimpleQueue()
        self._stop = threading.Event()

    @property
    def is_stopping(self) -> bool:
        """Whether a job should end at its next chance."""
        return self._stop.is_set()

    def start(self, name: str, job: Job) -> None:
        """Runs the job once, in a new thread."""
        thread = threading.Thread(target=self._run, args=(name, job), name=name, daemon=True)
        self._threads[name] = thread
        self._heartbeats.beat(name)
        thread.start()

    def repeat(self, role: str, num: int, job: Job) -> None:
        """So many threads repeat the job from now on; those too many end after their turn."""
        self._wanted[role] = num
        running = {thread.name for thread in self._running()}
        for number in range(num):
            if (name := f"{role}-{number}") not in running:
                self.start(name, partial(self._repeat, role, number, job))

    def _repeat(self, role: str, number: int, job: Job) -> None:
        while not self.is_stopping and number < self._wanted[role]:
            job()
            heartbeat()

    def _run(self, name: str, job: Job) -> None:
        _current.beat = partial(self._heartbeats.beat, name)
        try:
            self._initializer()
            job()
        except QueueClosedError:
            pass  # the run is over
        except BaseException as error:  # `check` raises it again
            self._errors.put(error)

    def check(self) -> None:
        """Raises the first error of a thread, or says which one is stuck; to be called often."""
        try:
            raise self._errors.get_nowait()
        except Empty:
            pass
        silent = self._heartbeats.silent(thread.name for thread in self._running())
        if silent:
            found = "\n".join(f"{name}:\n{stack_of(self._threads[name])}" for name in silent)
            raise StuckError(
                f"No sign of life for {self._heartbeats.patience_seconds:g} seconds from these "
                f"threads:\n{found}"
            )

    def wait(self, meanwhile: Job = lambda: None) -> None:
        """Until every job is done; raises the first error once the others have stopped.

        `meanwhile` is called about ten times a second.
        """
        while running := self._running():
            meanwhile()
            self._check_or_stop()
            running[0].join(_POLL_SECONDS)
        self._check_or_stop()

    def _check_or_stop(self) -> None:
        try:
            self.check()
        except BaseException:
            self._stop_within(min(_GRACE_SECONDS, self._heartbeats.patience_seconds))
            raise

    def close(self) -> None:
        """Lets all threads end; close the queues that they wait on first; may be called twice.

        A stuck one dies with the process.
        """
        self._stop_within(_SECOND_GRACE_SECONDS if self.is_stopping else _GRACE_SECONDS)

    def _stop_within(self, seconds: float) -> None:
        self._stop.set()
        deadline = time.monotonic() + seconds
        for thread in self._running():
            thread.join(max(0.0, deadline - time.monotonic()))

    def _running(self) -> list[threading.Thread]:
        return [thread for thread in self._threads.values() if thread.is_alive()]


def stack_of(thread: threading.Thread) -> str:
    """Where a thread is, as text."""
    frame = sys._current_frames().get(thread.ident or -1)
    return "".join(traceback.format_stack(frame)) if frame is not None else "it has ended"
