"""Hands: threads by role, as many of each as wanted, more and fewer while they run.

Takes a piece of work per role; repeats it in so many threads until told to stop, raises the first
error of one of them, and says which one is stuck. Knows nothing of what the work does.

A thread that is too many ends after its turn: nobody waits for it, so numbers can change while all
others go on.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from queue import Empty, SimpleQueue

from ..networks import share_cores_here
from ..queues import QueueClosedError
from .crew import StuckError, where

_GRACE_SECONDS = 10.0


@dataclass
class Hand:
    """One thread."""

    role: str
    thread: threading.Thread
    beat_seconds: float
    number: int


class Hands:
    """Threads of each role, as many as wanted; more and fewer while they run."""

    def __init__(self, silent_seconds: float) -> None:
        self._silent_seconds = silent_seconds
        self._wanted: dict[str, int] = {}
        self._hands: list[Hand] = []
        self._errors: SimpleQueue[BaseException] = SimpleQueue()
        self._stop = threading.Event()
        self._checked_seconds = time.monotonic()

    @property
    def is_stopping(self) -> bool:
        return self._stop.is_set()

    def set(self, role: str, num: int, work: Callable[[], None]) -> None:
        """So many threads repeat the work from now on; those too many end after their turn."""
        self._wanted[role] = num
        self._hands = [hand for hand in self._hands if hand.thread.is_alive()]
        busy = {hand.number for hand in self._hands if hand.role == role}
        for number in range(num):
            if number not in busy:
                self._start(role, number, work)

    def _start(self, role: str, number: int, work: Callable[[], None]) -> None:
        hand = Hand(role, threading.current_thread(), time.monotonic(), number)
        name = f"{role}-{number}"
        hand.thread = threading.Thread(
            target=self._repeat, args=(hand, work), name=name, daemon=True
        )
        self._hands.append(hand)
        hand.thread.start()

    def _repeat(self, hand: Hand, work: Callable[[], None]) -> None:
        share_cores_here()
        try:
            while not self.is_stopping and hand.number < self._wanted[hand.role]:
                work()
                hand.beat_seconds = time.monotonic()
        except QueueClosedError:
            pass  # the run is over
        except BaseException as error:  # the main thread raises it again
            self._errors.put(error)

    def check(self) -> None:
        """Raises the first error of a thread, or says which one is stuck and where.

        To be called often: a long time without a call is no silence of the threads.
        """
        try:
            raise self._errors.get_nowait()
        except Empty:
            pass
        now = time.monotonic()
        if now - self._checked_seconds > self._silent_seconds / 2:
            # Whoever checks was away too: the whole process was stopped for a while.
            for hand in self._hands:
                hand.beat_seconds = now
        self._checked_seconds, limit = now, now - self._silent_seconds
        stuck = [
            hand for hand in self._hands if hand.thread.is_alive() and hand.beat_seconds < limit
        ]
        if stuck:
            found = "\n".join(f"{hand.thread.name}:\n{where(hand.thread)}" for hand in stuck)
            raise StuckError(
                f"No sign of life for {self._silent_seconds:g} seconds from these threads:\n{found}"
            )

    def close(self) -> None:
        """Lets all threads end; close what they wait on first. A stuck one dies as the run does."""
        self._stop.set()
        deadline = time.monotonic() + _GRACE_SECONDS
        for hand in self._hands:
            hand.thread.join(max(0.0, deadline - time.monotonic()))
