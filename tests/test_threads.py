"""Bounded queues and heartbeats against a fake clock; real threads whose waits must all end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from scanline import threads
from scanline.threads import (
    BoundedQueue,
    Heartbeats,
    QueueClosedError,
    StuckError,
    WorkerThreads,
    heartbeat,
)


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


class Clock:
    """Time that a test sets."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def test_only_who_gave_no_sign_is_silent() -> None:
    clock = Clock()
    heartbeats = Heartbeats[str](10.0, clock)
    heartbeats.beat("a", "b")
    for clock.seconds in (4.0, 8.0, 12.0):
        heartbeats.beat("a")
        found = heartbeats.silent(["a", "b"])
    assert found == ["b"]
    assert heartbeats.silent(["a"]) == []
    heartbeats.beat("b")
    assert heartbeats.silent(["a", "b"]) == []


def test_a_pause_of_the_asker_is_forgiven_once() -> None:
    clock = Clock()
    heartbeats = Heartbeats[int](10.0, clock)
    heartbeats.beat(0)
    clock.seconds = 100.0
    assert heartbeats.silent([0]) == []
    for clock.seconds in (104.0, 108.0, 112.0):
        found = heartbeats.silent([0])
    assert found == [0]


@pytest.fixture
def pair() -> Iterator[WorkerThreads]:
    made = WorkerThreads(stuck_seconds=0.3)
    yield made
    made.close()


def test_all_jobs_are_done_after_the_wait(pair: WorkerThreads) -> None:
    done: list[str] = []
    for _ in range(3):
        pair.start("first", lambda: done.append("first"))
        pair.start("second", lambda: (time.sleep(0.01), done.append("second"))[1])
        pair.wait()
    assert sorted(done) == ["first"] * 3 + ["second"] * 3


def test_an_error_stops_the_others_and_is_raised_with_its_own_stack(pair: WorkerThreads) -> None:
    stopped = threading.Event()

    def broken() -> None:
        raise KeyError("lost")

    def patient() -> None:
        while not pair.is_stopping:
            time.sleep(0.005)
            heartbeat()
        stopped.set()

    pair.start("second", patient)
    pair.start("first", broken)
    with pytest.raises(KeyError, match="lost") as caught:
        pair.wait()
    assert stopped.is_set()
    assert "broken" in [entry.name for entry in caught.traceback]


def test_a_silent_thread_is_named_with_the_place_where_it_hangs(
    pair: WorkerThreads, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "_GRACE_SECONDS", 0.1)
    release = threading.Event()

    def hanging() -> None:
        release.wait(30)

    pair.start("second", hanging)
    with pytest.raises(StuckError, match=r"(?s)second.*in hanging"):
        pair.wait()
    release.set()


def test_a_slow_thread_with_signs_of_life_is_waited_for(pair: WorkerThreads) -> None:
    def slow() -> None:
        for _ in range(12):
            time.sleep(0.08)
            heartbeat()

    pair.start("first", slow)
    pair.wait()


LIMIT_SECONDS = 10.0


def until(ready: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LIMIT_SECONDS
    while not ready():
        assert time.monotonic() < deadline
        time.sleep(0.002)


def names() -> set[str]:
    return {each.name for each in threading.enumerate() if each.name.startswith("worker-")}


def test_numbers_change_while_threads_run() -> None:
    workers = WorkerThreads(stuck_seconds=LIMIT_SECONDS)

    def work() -> None:
        time.sleep(0.001)

    for num in (2, 4, 1, 3):
        workers.repeat("worker", num, work)
        until(lambda num=num: names() == {f"worker-{n}" for n in range(num)})  # type: ignore[misc]
        workers.check()
    workers.close()
    assert workers.is_stopping and not names()


def test_the_first_error_is_raised_and_a_closed_queue_is_none() -> None:
    workers = WorkerThreads(stuck_seconds=LIMIT_SECONDS)

    def ends() -> None:
        raise QueueClosedError("over")

    def fails() -> None:
        raise KeyError("lost")

    workers.repeat("worker", 1, ends)
    until(lambda: not names())
    workers.check()
    workers.repeat("worker", 1, fails)
    until(lambda: not names())
    with pytest.raises(KeyError, match="lost"):
        workers.check()
    workers.close()


def test_a_silent_thread_is_named_with_its_place() -> None:
    go_on = threading.Event()
    workers = WorkerThreads(stuck_seconds=0.2)
    workers.repeat("worker", 1, lambda: waits_for_ever(go_on))
    time.sleep(0.3)
    workers.check()  # after a pause of the whole process nobody counts as silent yet
    with pytest.raises(StuckError, match=r"worker-0:\n(.|\n)*waits_for_ever"):
        until(lambda: workers.check() is not None)
    go_on.set()
    workers.close()


def test_a_thread_that_gives_signs_of_life_while_it_waits_is_not_stuck() -> None:
    go_on = threading.Event()
    workers = WorkerThreads(stuck_seconds=0.2)

    def waits() -> None:
        while not go_on.wait(0.02):
            heartbeat()

    workers.repeat("worker", 1, waits)
    begun = time.monotonic()
    while time.monotonic() - begun < 0.6:
        workers.check()
        time.sleep(0.02)
    go_on.set()
    workers.close()


def waits_for_ever(go_on: threading.Event) -> None:
    go_on.wait(LIMIT_SECONDS)
