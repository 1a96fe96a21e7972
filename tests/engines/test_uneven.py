"""Uneven steps: times within their bounds, nothing before it is due, nothing later than needed."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from scanline import engines, protocols
from scanline.engines import EngineSettings
from scanline.engines.uneven import RATIO, UnevenEngine
from scanline.records import Spaces

SPACES = Spaces(frame_shape=(2,), frame_dtype="float32", stack=1, num_actions=2)


class Clock:
    """Time passes only in sleeps."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.now += seconds


class Instant:
    """An engine whose steps are ready at once."""

    name, spaces, can_snapshot = "instant", SPACES, False

    def __init__(self, **options: Any) -> None:
        protocol = protocols.get("as-is")
        self.settings = EngineSettings(game="none", protocol=protocol, **options)
        self.sent: list[int] = []

    def send(self, group: int, actions: Any, out: Any = None) -> None:
        self.sent.append(group)

    def recv(self, group: int, out: Any) -> None:
        self.sent.remove(group)

    def poll(self, timeout_seconds: float) -> list[int]:
        return sorted(self.sent)


def uneven(**options: Any) -> tuple[UnevenEngine, Clock]:
    clock = Clock()
    inner: Any = Instant(**{"num_envs": 6, "uneven_seconds": 0.01, **options})
    return UnevenEngine(inner, clock, clock.sleep), clock


def times(engine: UnevenEngine, num_steps: int) -> np.ndarray:
    groups = range(engine.settings.num_groups)
    return np.array([[engine.step_seconds(g, s) for g in groups] for s in range(num_steps)])


def test_times_vary_tenfold_evenly_in_their_logarithm() -> None:
    found = times(uneven(num_groups=6)[0], 2_000)
    assert found.min() >= 0.01 and found.max() < RATIO * 0.01
    assert found.max() / found.min() > 9.5
    assert np.log10(found / 0.01).mean() == pytest.approx(0.5, abs=0.02)


def test_times_belong_to_an_environment_and_its_step_and_a_group_waits_for_its_slowest() -> None:
    alone, pairs = times(uneven(num_groups=6)[0], 20), times(uneven(num_groups=3)[0], 20)
    np.testing.assert_array_equal(pairs, np.maximum(alone[:, ::2], alone[:, 1::2]))
    later = times(uneven(num_envs=2, num_groups=2, first_env_id=4)[0], 20)
    np.testing.assert_array_equal(later, alone[:, 4:])
    other = times(uneven(num_groups=6, seed=1)[0], 20)
    assert not np.array_equal(other, alone)


def test_a_step_is_received_when_it_is_due() -> None:
    engine, clock = uneven()
    for step in range(3):
        begun = clock.now
        engine.send(0, None)  # type: ignore[arg-type]
        clock.now += 0.001  # what is done meanwhile is not waited for again
        engine.recv(0, None)  # type: ignore[arg-type]
        assert clock.now == pytest.approx(begun + engine.step_seconds(0, step))


def test_polling_gives_groups_in_the_order_in_which_they_are_due() -> None:
    engine, clock = uneven(num_groups=6)
    for group in range(6):
        engine.send(group, None)  # type: ignore[arg-type]
    order = []
    while len(order) < 6:
        for group in engine.poll(1.0):
            assert clock.now >= engine.step_seconds(group, 0)
            before = clock.now
            engine.recv(group, None)  # type: ignore[arg-type]
            assert clock.now == before
            order.append(group)
    assert order == sorted(range(6), key=lambda g: engine.step_seconds(g, 0))
    assert clock.now == pytest.approx(max(times(engine, 1)[0]), abs=1e-3)


def test_polling_ends_with_its_patience() -> None:
    engine, clock = uneven()
    engine.send(0, None)  # type: ignore[arg-type]
    assert engine.poll(0.004) == []
    assert clock.now == pytest.approx(0.004)


def test_the_setting_puts_it_around_any_engine() -> None:
    options = {"game": "scanline/Catch-v0", "protocol": protocols.get("as-is"), "num_envs": 2}
    for seconds, kind in itertools.product((0.0, 1e-4), ("gymnasium",)):
        settings = EngineSettings(**options, num_workers=0, uneven_seconds=seconds)
        engine = engines.build(kind, settings)
        try:
            assert isinstance(engine, UnevenEngine) == (seconds > 0)
        finally:
            engine.close()
    with pytest.raises(ValueError, match="must not be negative"):
        EngineSettings(**options, uneven_seconds=-1.0)
