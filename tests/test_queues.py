"""Bounded queues against a fake clock, and with real threads that must all wake."""

from __future__ import annotations

import threading
import time

import pytest

from scanline.queues import BoundedQueue, QueueClosedError


class FakeTime:
    """A clock that moves when somebody waits; `events` happen on the way."""

    def __init__(self, *events: tuple[float, object]) -> None:
        self.now, self.events, self.queue = 0.0, list(events), None

    def clock(self) -> float:
        return self.now

    def wait(self, condition: threading.Condition, seconds: float) -> None:
        """Until the next event or the end of the wait, as a condition would."""
        due = self.events[0][0] if self.events else float("inf")
        if due > self.now + seconds:
            self.now += seconds
            return
        self.now = due
        self.queue._items.append(self.events.pop(0)[1])


def fake(*events: tuple[float, object], capacity: int = 10) -> tuple[BoundedQueue, FakeTime]:
    times = FakeTime(*events)
    queue: BoundedQueue = BoundedQueue(capacity, times.clock, times.wait)
    times.queue = queue
    return queue, times


def test_what_is_there_is_taken_at_once_in_order_up_to_the_maximum() -> None:
    queue, times = fake()
    for item in "abcd":
        assert queue.put(item, 0.0)
    assert queue.take(1, 3, timeout_seconds=5.0) == ["a", "b", "c"]
    assert queue.take(1, 3, timeout_seconds=5.0) == ["d"]
    assert times.now == 0.0


def test_a_minimum_is_waited_for_until_the_timeout_which_begins_with_the_first() -> None:
    queue, times = fake((2.0, "a"), (2.5, "b"), (4.0, "c"))
    taken = queue.take(3, 8, timeout_seconds=1.0, patience_seconds=10.0)
    assert (taken, times.now) == (["a", "b"], 3.0)
    assert queue.take_seconds == 3.0


def test_a_minimum_that_is_reached_ends_the_wait() -> None:
    queue, times = fake((1.0, "a"), (1.2, "b"), (1.3, "c"))
    taken = queue.take(2, 8, timeout_seconds=1.0, patience_seconds=10.0)
    assert (taken, times.now) == (["a", "b"], 1.2)


def test_patience_ends_with_nothing() -> None:
    queue, times = fake()
    assert queue.take(patience_seconds=0.5) == []
    assert times.now == 0.5


def test_items_are_taken_together_or_not_at_all() -> None:
    queue, times = fake((1.0, "a"), (2.0, "b"), (6.0, "c"), (7.0, "d"), capacity=3)
    assert queue.take_together(3, patience_seconds=5.0) == []
    assert (len(queue), times.now) == (2, 5.0)
    assert queue.take_together(3, patience_seconds=5.0) == ["a", "b", "c"]
    assert (times.now, queue.take_seconds) == (6.0, 6.0)
    for num in (0, 4):
        with pytest.raises(ValueError, match=f"{num} items are never together in a queue of"):
            queue.take_together(num, patience_seconds=1.0)


def test_a_full_queue_refuses_when_the_time_is_over() -> None:
    queue, times = fake(capacity=1)
    assert queue.put("a", 0.0)
    assert not queue.put("b", 2.0)
    assert (len(queue), times.now, queue.put_seconds) == (1, 2.0, 2.0)


def test_closing_wakes_everybody_who_waits_on_either_side() -> None:
    empty: BoundedQueue[int] = BoundedQueue(1)
    full: BoundedQueue[int] = BoundedQueue(1)
    full.put(0, 0.0)
    ended: list[str] = []

    def wait(name: str, call) -> None:
        with pytest.raises(QueueClosedError):
            call()
        ended.append(name)

    calls = [lambda: empty.take(patience_seconds=60.0)] * 3 + [lambda: full.put(1, 60.0)] * 3
    threads = [threading.Thread(target=wait, args=(str(n), c)) for n, c in enumerate(calls)]
    for thread in threads:
        thread.start()
    time.sleep(0.05)
    empty.close()
    full.close()
    full.close()
    for thread in threads:
        thread.join(10.0)
    assert sorted(ended) == [str(n) for n in range(6)]
    with pytest.raises(QueueClosedError):
        empty.put(1, 0.0)


def test_many_threads_lose_and_double_nothing() -> None:
    queue: BoundedQueue[int] = BoundedQueue(7)
    found: list[int] = []
    lock = threading.Lock()

    def produce(first: int) -> None:
        for number in range(first, first + 500):
            assert queue.put(number, 30.0)

    def consume() -> None:
        while taken := queue.take(2, 5, timeout_seconds=0.001, patience_seconds=1.0):
            with lock:
                found.extend(taken)

    threads = [threading.Thread(target=produce, args=(n * 500,)) for n in range(3)]
    threads += [threading.Thread(target=consume) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60.0)
    assert sorted(found) == list(range(1_500))


def test_a_queue_that_holds_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="capacity 0 can hold nothing"):
        BoundedQueue(0)
