"""The simulated coprocessor: latency overlaps, items queue, and the waiting is real."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field

import pytest

from scanline.algorithms import Dqn
from scanline.interfaces import Algorithm
from scanline_lab.experiments.coprocessor import OnCoprocessor, SimulatedCoprocessor


@dataclass
class FakeTime:
    """A clock that only sleeping moves."""

    now: float = 0.0
    slept: list[float] = field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def device(fake: FakeTime, call: float = 1.0, item: float = 0.5) -> SimulatedCoprocessor:
    return SimulatedCoprocessor(call, item, lambda: fake.now, fake.sleep)


def test_a_call_takes_its_latency_and_its_items() -> None:
    fake = FakeTime()
    simulated = device(fake)
    simulated.compute(4)
    assert fake.now == 1.0 + 4 * 0.5
    simulated.compute(2)
    assert fake.now == 3.0 + 1.0 + 2 * 0.5
    assert (simulated.num_calls, simulated.busy_seconds) == (2, 3.0)


def test_latencies_overlap_and_items_queue() -> None:
    """Two calls that arrive at once end as a device with one queue would end them."""
    fake = FakeTime()
    simulated = device(fake)
    ends = [simulated._reserve(4), simulated._reserve(2)]
    assert ends == [3.0, 4.0]


def test_threads_wait_on_the_real_clock_side_by_side() -> None:
    simulated = SimulatedCoprocessor(0.05, 0.0)
    threads = [threading.Thread(target=simulated.compute, args=(1,)) for _ in range(8)]
    begun = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 0.05 <= time.perf_counter() - begun < 8 * 0.05


def test_an_algorithm_on_it_is_still_an_algorithm() -> None:
    wrapped = OnCoprocessor(Dqn(), SimulatedCoprocessor(0.0, 0.0))
    assert isinstance(wrapped, Algorithm)
    assert isinstance(wrapped.spanning(10), OnCoprocessor)
    assert wrapped.head == "q"


def test_negative_times_are_refused() -> None:
    with pytest.raises(ValueError, match="seconds_per_item=-1"):
        SimulatedCoprocessor(0.0, -1.0)
