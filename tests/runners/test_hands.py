"""Hands: as many threads as wanted, the first error of one, and who is stuck."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from scanline.queues import QueueClosedError
from scanline.runners.crew import StuckError
from scanline.runners.hands import Hands

LIMIT_SECONDS = 10.0


def until(ready: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LIMIT_SECONDS
    while not ready():
        assert time.monotonic() < deadline
        time.sleep(0.002)


def names() -> set[str]:
    return {each.name for each in threading.enumerate() if each.name.startswith("worker-")}


def test_numbers_change_while_threads_run() -> None:
    hands = Hands(silent_seconds=LIMIT_SECONDS)

    def work() -> None:
        time.sleep(0.001)

    for num in (2, 4, 1, 3):
        hands.set("worker", num, work)
        until(lambda num=num: names() == {f"worker-{n}" for n in range(num)})  # type: ignore[misc]
        hands.check()
    hands.close()
    assert hands.is_stopping and not names()


def test_the_first_error_is_raised_and_a_closed_queue_is_none() -> None:
    hands = Hands(silent_seconds=LIMIT_SECONDS)

    def ends() -> None:
        raise QueueClosedError("over")

    def fails() -> None:
        raise KeyError("lost")

    hands.set("worker", 1, ends)
    until(lambda: not names())
    hands.check()
    hands.set("worker", 1, fails)
    until(lambda: not names())
    with pytest.raises(KeyError, match="lost"):
        hands.check()
    hands.close()


def test_a_silent_thread_is_named_with_its_place() -> None:
    go_on = threading.Event()
    hands = Hands(silent_seconds=0.2)
    hands.set("worker", 1, lambda: waits_for_ever(go_on))
    time.sleep(0.3)
    hands.check()  # after a pause of the whole process nobody counts as silent yet
    with pytest.raises(StuckError, match=r"worker-0:\n(.|\n)*waits_for_ever"):
        until(lambda: hands.check() is not None)
    go_on.set()
    hands.close()


def test_a_thread_that_gives_signs_of_life_while_it_waits_is_not_stuck() -> None:
    go_on = threading.Event()
    hands = Hands(silent_seconds=0.2)

    def waits() -> None:
        while not go_on.wait(0.02):
            hands.beat()

    hands.set("worker", 1, waits)
    begun = time.monotonic()
    while time.monotonic() - begun < 0.6:
        hands.check()
        time.sleep(0.02)
    go_on.set()
    hands.close()


def waits_for_ever(go_on: threading.Event) -> None:
    go_on.wait(LIMIT_SECONDS)
