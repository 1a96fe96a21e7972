"""A paused engine: steps cost nothing and change nothing, and afterwards the games go on."""

from __future__ import annotations

import numpy as np

from scanline import protocols
from scanline.engines import Engine, EngineSettings, build
from scanline.engines.pausing import PausableEngine
from scanline.records import Slot, StepArrays
from scanline.samplers.slot_views import Scratch

NUM_ENVS, NUM_GROUPS = 4, 2
ENVS = slice(0, NUM_ENVS // NUM_GROUPS)


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
    return build("gymnasium", settings)


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
