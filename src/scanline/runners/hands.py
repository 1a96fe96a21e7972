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
from .silence import Silence

_GRACE_SECONDS = 10.0


@dataclass
class Hand:
    """One thread."""

    role: str
    thread: threading.Thread
    number: int

    @property
    def name(self) -> str:
        return f"{self.role}-{self.number}"


class Hands:
    """Threads of each role, as many as wanted; more and fewer while they run."""

    def __init__(self, silent_seconds: float) -> None:
        self._silence = Silence[str](silent_seconds)
        self._wanted: dict[str, int] = {}
        self._hands: list[Hand] = []
        self._errors: SimpleQueue[BaseException] = SimpleQueue()
        self._stop = threading.Event()

    @property
    def is_stopping(self) -> bool:
        return self._stop.is_set()

    def beat(self) -> None:
        """A sign of life of the calling thread, for waits inside of its work."""
        self._silence.heard(threading.current_thread().name)

    def set(self, role: str, num: int, work: Callable[[], None]) -> None:
        """So many threads repeat the work from now on; those too many end after their turn."""
        self._wanted[role] = num
        self._hands = [hand for hand in self._hands if hand.thread.is_alive()]
        busy = {hand.number for hand in self._hands if hand.role == role}
        for number in range(num):
            if number not in busy:
                self._start(role, number, work)

    def _start(self, role: str, number: int, work: Callable[[], None]) -> None:
        hand = Hand(role, threading.current_thread(), number)
        hand.thread = threading.Thread(
            target=self._repeat, args=(hand, work), name=hand.name, daemon=True
        )
        self._hands.append(hand)
        self._silence.heard(hand.name)
        hand.thread.start()

    def _repeat(self, hand: Hand, work: Callable[[], None]) -> None:
        share_cores_here()
        try:
            while not self.is_stopping and hand.number < self._wanted[hand.role]:
                work()
                self._silence.heard(hand.name)
        except QueueClosedError:
            pass  # the run is over
        except BaseException as error:  # the main thread raises it again
            self._errors.put(error)

    def check(self) -> None:
        """Raises the first error of a thread, or says which one is stuck; to be called often."""
        try:
            raise self._errors.get_nowait()
        except Empty:
            pass
        silent = self._silence.silent(hand.name for hand in self._hands if hand.thread.is_alive())
        if silent:
            stuck = [hand.thread for hand in self._hands if hand.name in silent]
            found = "\n".join(f"{thread.name}:\n{where(thread)}" for thread in stuck)
            raise StuckError(
                f"No sign of life for {self._silence.patience_seconds:g} seconds from these "
                f"threads:\n{found}"
            )

    def close(self) -> None:
        """Lets all threads end; close what they wait on first. A stuck one dies as the run does."""
        self._stop.set()
        deadline = time.monotonic() + _GRACE_SECONDS
        for hand in self._hands:
            hand.thread.join(max(0.0, deadline - time.monotonic()))
