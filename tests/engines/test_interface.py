"""One contract, held by every engine: the same assertions over all of them."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
import toy_envs
import toys

from scanline import protocols
from scanline.engines import Engine, EngineError

NUM_ENVS, NUM_STEPS = 4, 220
GAMES = {"ale": "breakout", "native": "breakout", "gymnasium": toy_envs.catch_with_lives}
LIMITS_FRAMES = {
    "ale": 700,
    "native": 700,
    "gymnasium": 16,
}  # some episodes end by themselves, some by the limit
SETUPS: dict[str, tuple[str, dict[str, Any]]] = {
    "ale-1-thread": ("ale", {"num_threads": 1}),
    "ale-2-threads": ("ale", {"num_threads": 2}),
    "native-1-thread": ("native", {"num_threads": 1, "reset": "ale"}),
    "native-2-threads": ("native", {"num_threads": 2, "reset": "ale"}),
    "native-cached-1-thread": ("native", {"num_threads": 1}),
    "native-cached": ("native", {"num_threads": 2}),
    "gymnasium-here": ("gymnasium", {"num_workers": 0}),
    "gymnasium-1-worker": ("gymnasium", {"num_workers": 1}),
    "gymnasium-2-workers": ("gymnasium", {"num_workers": 2}),
    "gymnasium-uneven": ("gymnasium", {"num_workers": 0, "uneven_seconds": 1e-5}),
}
REFERENCE = {
    "ale": "ale-1-thread",
    "native": "ale-1-thread",  # with ALE's resets the two engines give the same data
    "native-cached": "native-cached-1-thread",
    "gymnasium": "gymnasium-here",
}
FAST = [
    "ale-2-threads",
    "native-2-threads",
    "native-cached",
    "gymnasium-here",
    "gymnasium-2-workers",
    "gymnasium-uneven",
]
setups = pytest.mark.parametrize("setup", FAST)


def engine_of(setup: str, **options: Any) -> Engine:
    kind, own = SETUPS[setup]
    preset = protocols.get(
        {"ale": "ale-vector", "native": "ale-vector", "gymnasium": "as-is"}[kind]
    )
    rules = preset.replace(
        episode_limit_frames=LIMITS_FRAMES[kind],
        stack=4,
        reward_clip="sign",
        life_loss="end-return",
    )
    chosen = {"num_envs": NUM_ENVS, "seed": 3, **own, **options}
    return toys.build(kind, GAMES[kind], protocol=rules, **chosen)


@functools.cache
def played(setup: str, *, tells_early: bool = False, **options: Any) -> dict[str, np.ndarray]:
    engine = engine_of(setup, **options)
    try:
        num_envs, actions = engine.settings.num_envs, engine.spaces.num_actions
        first = engine.settings.first_env_id
        drawn = toys.random_actions(NUM_STEPS, first + num_envs, actions)
        return toys.record(engine, drawn[:, first:], tells_early=tells_early)
    finally:
        engine.close()


def assert_equal_data(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> None:
    for name in one:
        np.testing.assert_array_equal(one[name], other[name], err_msg=name)


@pytest.mark.parametrize("setup", SETUPS)
def test_threads_and_workers_do_not_change_the_data(setup: str) -> None:
    kind = "native-cached" if setup.startswith("native-cached") else SETUPS[setup][0]
    assert_equal_data(played(setup), played(REFERENCE[kind]))


@setups
def test_groups_do_not_change_the_data(setup: str) -> None:
    assert_equal_data(played(setup, num_groups=2), played(setup))


@setups
def test_arrays_may_be_known_when_actions_are_sent(setup: str) -> None:
    assert_equal_data(played(setup, num_groups=2, tells_early=True), played(setup))


def test_results_go_to_the_arrays_that_were_known() -> None:
    engine = engine_of("native-2-threads")
    one, other = (toys.step_arrays(NUM_ENVS, engine.spaces) for _ in range(2))
    engine.reset(0, one)
    engine.send(0, np.zeros(NUM_ENVS, np.int64), one)
    with pytest.raises(ValueError, match="sent with other arrays"):
        engine.recv(0, other)
    engine.recv(0, one)
    engine.close()


@setups
def test_an_environment_depends_on_its_global_number_only(setup: str) -> None:
    half = played(setup, num_envs=2, first_env_id=2)
    assert_equal_data(half, {name: data[:, 2:] for name, data in played(setup).items()})


@setups
def test_a_seed_decides(setup: str) -> None:
    other = played(setup, seed=4)
    assert not np.array_equal(other["frame"], played(setup)["frame"])
    one = played(setup)["frame"]
    assert not all(np.array_equal(one[:, 0], one[:, env]) for env in range(1, NUM_ENVS))


@setups
@pytest.mark.parametrize("autoreset", ["same-step", "next-step"])
def test_the_three_ends_are_apart(setup: str, autoreset: str) -> None:
    data = played(setup, autoreset=autoreset)
    for name in ("terminated", "truncated", "life_lost"):
        assert data[name][1:].any(), f"the recording has no {name}"
        assert not data[name][0].any()
    assert not (data["life_lost"] & (data["terminated"] | data["truncated"])).any()
    assert not (data["terminated"] & data["truncated"]).any()
    fell = data["lives"][1:] < data["lives"][:-1]
    ended = (data["terminated"] | data["truncated"])[1:]
    np.testing.assert_array_equal(data["life_lost"][1:], fell & ~ended)


@setups
def test_raw_and_clipped_reward_are_apart(setup: str) -> None:
    data = played(setup)
    assert data["raw_reward"].any()
    np.testing.assert_array_equal(data["reward"], np.sign(data["raw_reward"]))


@setups
def test_depth_counts_from_every_reset(setup: str) -> None:
    data = played(setup)
    ended = data["terminated"] | data["truncated"]
    wanted, depth = [], np.ones(NUM_ENVS, int)
    for row in ended:
        depth = np.where(row, 1, np.minimum(depth + 1, 4)) if wanted else depth
        wanted.append(depth)
    np.testing.assert_array_equal(data["depth"], wanted)


@setups
def test_every_array_is_written_and_final_frames_only_where_an_episode_ended(setup: str) -> None:
    data = played(setup)
    frames = (data["frame"] == toys.POISON).reshape(NUM_STEPS + 1, NUM_ENVS, -1).all(axis=2)
    assert not frames.any()
    for name in ("depth", "lives", "reward", "raw_reward"):
        assert not (data[name] == toys.POISON).any(), name
    kept = (data["final_frame"] == toys.POISON).reshape(NUM_STEPS + 1, NUM_ENVS, -1).all(axis=2)
    np.testing.assert_array_equal(~kept, data["terminated"] | data["truncated"])


@setups
def test_the_final_frame_is_the_last_frame_of_the_old_episode(setup: str) -> None:
    """With next-step resets `frame` is that frame: the two must agree up to the first end."""
    same, later = played(setup), played(setup, autoreset="next-step")
    ended = same["terminated"] | same["truncated"]
    for env in range(NUM_ENVS):
        end = int(np.argmax(ended[:, env]))
        assert ended[end, env]
        np.testing.assert_array_equal(same["final_frame"][end, env], later["frame"][end, env])
        np.testing.assert_array_equal(same["frame"][:end, env], later["frame"][:end, env])
        np.testing.assert_array_equal(same["frame"][end, env], later["frame"][end + 1, env])
        assert not np.array_equal(same["frame"][end, env], same["final_frame"][end, env])


@setups
def test_next_step_gives_a_reset_step_after_every_end(setup: str) -> None:
    data = played(setup, autoreset="next-step")
    ended = data["terminated"] | data["truncated"]
    after = np.zeros_like(ended)
    after[1:] = ended[:-1]
    assert after.any()
    for name in ("reward", "raw_reward", "terminated", "truncated", "life_lost"):
        assert not data[name][after].any(), name
    assert (data["depth"][after] == 1).all()
    frames = data["final_frame"][ended]
    np.testing.assert_array_equal(frames, data["frame"][ended])


@setups
def test_disabled_waits_for_a_reset_by_mask(setup: str) -> None:
    engine = engine_of(setup, autoreset="disabled")
    try:
        out = toys.step_arrays(NUM_ENVS, engine.spaces)
        engine.reset(0, out)
        for _ in range(400):
            engine.send(0, np.zeros(NUM_ENVS, np.int64))
            engine.recv(0, out)
            if (ended := out.terminated | out.truncated).any():
                break
        before = {name: column.copy() for name, column in toys.columns(out).items()}
        with pytest.raises(RuntimeError, match="have ended and autoreset is disabled"):
            engine.send(0, np.zeros(NUM_ENVS, np.int64))
        ended[1:] = False if ended[0] else ended[1:]
        engine.reset(0, out, ended)
        assert (out.depth[ended] == 1).all()
        assert not (out.terminated | out.truncated)[ended].any()
        for name, column in toys.columns(out).items():
            np.testing.assert_array_equal(column[~ended], before[name][~ended], err_msg=name)
    finally:
        engine.close()


@setups
def test_a_new_seed_starts_the_streams_anew(setup: str) -> None:
    engine = engine_of(setup, num_envs=2)

    def start(seed: int | None) -> bytes:
        """What is seen some steps after a reset, when the first no-ops have made a difference."""
        out = toys.step_arrays(2, engine.spaces)
        engine.reset(0, out, seed=seed)
        for action in toys.random_actions(12, 2, engine.spaces.num_actions):
            engine.send(0, action)
            engine.recv(0, out)
        return out.frame.tobytes()

    try:
        first, second, again, second_again = start(None), start(None), start(3), start(None)
        assert first == again
        assert second == second_again
        assert first != second
    finally:
        engine.close()


@setups
def test_neighbouring_memory_stays_untouched(setup: str) -> None:
    engine = engine_of(setup, num_groups=2)
    try:
        whole = toys.step_arrays(NUM_ENVS, engine.spaces)
        half = type(whole)(**{name: column[:2] for name, column in toys.columns(whole).items()})
        engine.reset(0, half)
        engine.send(0, np.zeros(2, np.int64))
        engine.recv(0, half)
        untouched = toys.columns(toys.step_arrays(2, engine.spaces))
        for name, column in toys.columns(whole).items():
            np.testing.assert_array_equal(column[2:], untouched[name], err_msg=name)
    finally:
        engine.close()


@setups
def test_poll_names_only_groups_with_results(setup: str) -> None:
    engine = engine_of(setup, num_groups=2)
    try:
        out = toys.step_arrays(2, engine.spaces)
        assert engine.poll(0.0) == []
        for group in range(2):
            engine.reset(group, out)
        engine.send(1, np.zeros(2, np.int64))
        assert engine.poll(30.0) == [1]
        engine.send(0, np.zeros(2, np.int64))
        engine.recv(1, out)
        assert engine.poll(30.0) == [0]
        engine.recv(0, out)
        assert engine.poll(0.0) == []
    finally:
        engine.close()


@setups
def test_calls_out_of_turn_are_refused(setup: str) -> None:
    engine = engine_of(setup, num_envs=2)
    out, actions = toys.step_arrays(2, engine.spaces), np.zeros(2, np.int64)
    with pytest.raises(RuntimeError, match="never reset"):
        engine.send(0, actions)
    with pytest.raises(RuntimeError, match="needs a whole reset"):
        engine.reset(0, out, np.array([True, False]))
    engine.reset(0, out)
    with pytest.raises(RuntimeError, match="Nothing was sent"):
        engine.recv(0, out)
    engine.send(0, actions)
    for call in (lambda: engine.send(0, actions), lambda: engine.reset(0, out)):
        with pytest.raises(RuntimeError, match="in flight"):
            call()
    engine.close()
    engine.close()
    with pytest.raises(EngineError, match="closed"):
        engine.recv(0, out)
    with pytest.raises(EngineError, match="closed"):
        engine.reset(0, out)
