"""Bounded queues between threads: many items at once, waits with limits, and a clean end.

Takes small items, such as numbers of buffers; gives them out in order, one or many at a time.
Knows nothing of what they stand for.

A queue that closes wakes every thread that waits on it, so that none is left behind. `take` follows
the rule of dynamic batching: wait for the first item, then a little for a minimum, then take all
that is there up to a maximum. `take_together` gives a whole number of items or none: a thread that
waits holds nothing, so that takers cannot wait for what other takers hold.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

Item = TypeVar("Item")
Wait = Callable[[threading.Condition, float], object]


class QueueClosedError(RuntimeError):
    """The queue was closed: whoever waits on it should end."""


class BoundedQueue(Generic[Item]):
    """First in, first out; for any number of threads on both sides."""

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

    @property
    def is_closed(self) -> bool:
        return self._closed

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
