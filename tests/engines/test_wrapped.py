"""Engines around an engine: uneven steps take their time, paused ones cost and change nothing."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from scanline import engines, protocols
from scanline.devices import HOST
from scanline.engines import Engine, EngineSettings
from scanline.engines.wrapped import RATIO, PausableEngine, UnevenEngine
from scanline.records import Slot, Spaces, StepArrays
from scanline.samplers.slot_views import Scratch

SPACES = Spaces(frame_shape=(2,), frame_dtype="float32", stack=1, num_actions=2)
NUM_ENVS, NUM_GROUPS = 4, 2
ENVS = slice(0, NUM_ENVS // NUM_GROUPS)


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

    name, spaces, can_snapshot, memory = "instant", SPACES, False, HOST

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

    def reset(self, *args: Any) -> None:
        raise AssertionError("not asked for here")

    counters = close = snapshot = restore = reset


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


class Switch:
    """Pauses an engine while it is on."""

    is_on = False

    def __call__(self) -> bool:
        return self.is_on


def engine(is_paused: Switch | None = None, stack: int = 1) -> Engine:
    settings = EngineSettings(
        game="scanline/Catch-v0",
        num_envs=NUM_ENVS,
        num_groups=NUM_GROUPS,
        protocol=protocols.get("as-is").replace(stack=stack),
        num_workers=0,
        is_paused=is_paused,
    )
    return engines.build("gymnasium", settings)


def arrays(made: Engine) -> StepArrays:
    size = ENVS.stop
    slot = Slot.allocate(made.spaces, 1, size, {})
    return Scratch.allocate(made.spaces, size).step_arrays(slot, 0, ENVS)


def step(made: Engine, out: StepArrays, group: int = 0) -> StepArrays:
    made.send(group, np.ones(ENVS.stop, np.int64))
    made.recv(group, out)
    return out


def test_only_an_engine_that_may_be_paused_is_wrapped() -> None:
    plain, pausable = engine(), engine(Switch())
    assert not isinstance(plain, PausableEngine) and isinstance(pausable, PausableEngine)
    plain.close()
    pausable.close()


def test_while_paused_nothing_is_stepped_gained_or_ended_and_then_the_games_go_on() -> None:
    switch = Switch()
    plain, pausable = engine(), engine(switch)
    expected, found = arrays(plain), arrays(pausable)
    plain.reset(0, expected)
    pausable.reset(0, found)
    for _ in range(4):
        assert np.array_equal(step(plain, expected).frame, step(pausable, found).frame)
    switch.is_on = True
    for _ in range(30):  # longer than a game
        found.terminated[:] = found.truncated[:] = found.life_lost[:] = True
        found.reward[:] = found.raw_reward[:] = 1.0
        step(pausable, found)
        assert np.array_equal(found.frame, expected.frame)
        assert not any(map(np.any, (found.terminated, found.truncated, found.life_lost)))
        assert not found.reward.any() and not found.raw_reward.any()
    switch.is_on = False
    for _ in range(30):
        step(plain, expected)
        step(pausable, found)
        assert np.array_equal(found.frame, expected.frame)
        assert np.array_equal(found.terminated, expected.terminated)
        assert np.array_equal(found.raw_reward, expected.raw_reward)
    plain.close()
    pausable.close()


def test_steps_of_both_kinds_are_ready_and_are_received_as_they_were_sent() -> None:
    switch = Switch()
    made = engine(switch)
    out = [arrays(made) for _ in range(NUM_GROUPS)]
    for group in range(NUM_GROUPS):
        made.reset(group, out[group])
    made.send(0, np.ones(ENVS.stop, np.int64))
    switch.is_on = True
    made.send(1, np.ones(ENVS.stop, np.int64))
    before = [each.frame.copy() for each in out]
    assert sorted(made.poll(5.0)) == [0, 1]
    switch.is_on = False
    for group in range(NUM_GROUPS):
        made.recv(group, out[group])
    assert not np.array_equal(out[0].frame, before[0])
    assert np.array_equal(out[1].frame, before[1])
    assert made.poll(0.0) == []
    made.close()


def test_stacks_count_as_full_from_a_pause_until_the_next_game() -> None:
    switch = Switch()
    stack, pausable = 20, engine(switch, stack=20)
    out = arrays(pausable)
    pausable.reset(0, out)
    switch.is_on = True
    assert step(pausable, out).depth.tolist() == [stack] * ENVS.stop
    switch.is_on = False
    for _ in range(200):
        if step(pausable, out).terminated.any():
            break
        assert out.depth.tolist() == [stack] * ENVS.stop
    assert out.depth[out.terminated].tolist() == [1] * int(out.terminated.sum())
    pausable.close()
