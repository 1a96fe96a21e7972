"""The gymnasium engine: any environment, told apart from a plain loop by its speed only."""

from __future__ import annotations

import functools
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import toy_envs
import toys

from leftovers import children, mapped_blocks
from scanline import protocols, random
from scanline.engines import EngineError

AS_IS = protocols.get("as-is")


def play(game: Any, num_steps: int = 40, **options: Any) -> dict[str, np.ndarray]:
    engine = toys.build("gymnasium", game, **{"num_envs": 3, "num_workers": 0, **options})
    try:
        actions = toys.random_actions(num_steps, 3, engine.spaces.num_actions)
        return toys.record(engine, actions)
    finally:
        engine.close()


def plain_loop(env: gymnasium.Env, env_id: int, actions: np.ndarray, limit: int) -> list[tuple]:
    """The definition: reset with the stream's seed, step, reset at every end."""
    seed = int(random.seeds(0, "environment", [env_id])[0])
    frame, info = env.reset(seed=seed)
    rows, steps = [(frame, 0.0, False, False, info.get("lives", 0), None)], 0
    for action in actions:
        frame, reward, terminated, truncated, info = env.step(int(action))
        steps, final = steps + 1, None
        truncated = truncated or (steps == limit and not terminated)
        if terminated or truncated:
            final, steps = frame, 0
            frame, info = env.reset()
        rows.append((frame, reward, terminated, truncated, info.get("lives", 0), final))
    return rows


@pytest.mark.parametrize("num_workers", [0, 2])
def test_data_equal_a_plain_loop(num_workers: int) -> None:
    rules = AS_IS.replace(episode_limit_frames=25)
    data = play(toy_envs.catch_with_lives, 200, protocol=rules, num_workers=num_workers)
    actions = toys.random_actions(200, 3, 3)
    for env_id in range(3):
        rows = plain_loop(toy_envs.catch_with_lives(), env_id, actions[:, env_id], 25)
        for t, (frame, reward, terminated, truncated, lives, final) in enumerate(rows):
            np.testing.assert_array_equal(data["frame"][t, env_id], frame)
            assert data["raw_reward"][t, env_id] == reward
            assert data["terminated"][t, env_id] == terminated
            assert data["truncated"][t, env_id] == truncated
            assert data["lives"][t, env_id] == lives
            if final is not None:
                np.testing.assert_array_equal(data["final_frame"][t, env_id], final)


def test_actions_reach_their_environment_with_the_offset_of_its_space() -> None:
    data = play(toy_envs.Blocks, 8, num_workers=2)
    actions = toys.random_actions(8, 3, 5)
    np.testing.assert_array_equal(data["frame"][1:, :, 0, 2], actions + 3)
    assert len(np.unique(data["frame"][0, :, 0, 0])) == 3


@pytest.mark.parametrize(
    ("game", "shape", "dtype"),
    [
        (toy_envs.Blocks, (4, 4), "uint8"),
        (toy_envs.rgb_blocks, (4, 4, 3), "uint8"),
        (toy_envs.vector_blocks, (5,), "float32"),
        ("CartPole-v1", (4,), "float32"),
        ("scanline/Catch-v0", (5, 5), "uint8"),
    ],
)
def test_images_and_vectors(game: Any, shape: tuple[int, ...], dtype: str) -> None:
    data = play(game, 3)
    assert data["frame"].shape == (4, 3, *shape)
    assert data["frame"].dtype == dtype


def test_frame_skip_repeats_and_stops_at_the_end() -> None:
    rules = AS_IS.replace(frame_skip=4)
    data = play(toy_envs.Blocks, 3, protocol=rules)
    np.testing.assert_array_equal(data["frame"][1:3, 0, 0, 1], [4, 8])
    np.testing.assert_array_equal(data["raw_reward"][1:, 0], [25.0, 65.0, 22.5])
    np.testing.assert_array_equal(data["terminated"][:, 0], [False, False, False, True])
    assert data["final_frame"][3, 0, 0, 1] == 9


def test_clamp_and_sign_differ_for_small_rewards() -> None:
    clamped = play("Acrobot-v1", 2, protocol=AS_IS.replace(reward_clip="clamp"))
    assert (clamped["reward"][1:] == -1.0).all()
    raw = play(toy_envs.Blocks, 2, protocol=AS_IS.replace(reward_clip="none"))
    np.testing.assert_array_equal(raw["reward"], raw["raw_reward"])


@pytest.mark.parametrize("num_workers", [0, 2])
@pytest.mark.parametrize("autoreset", ["same-step", "next-step"])
def test_a_snapshot_continues_exactly(num_workers: int, autoreset: Any) -> None:
    options: dict[str, Any] = {
        "num_envs": 3,
        "num_workers": num_workers,
        "autoreset": autoreset,
        "protocol": AS_IS.replace(stack=4, episode_limit_frames=25),
    }
    game = functools.partial(gymnasium.make, "scanline/Catch-v0", lives=2, max_episode_steps=19)
    actions = toys.random_actions(90, 3, 3)
    engine = toys.build("gymnasium", game, **options)
    other = toys.build("gymnasium", game, **{**options, "seed": 9})
    assert engine.can_snapshot
    outs = [toys.step_arrays(3, engine.spaces) for _ in range(2)]
    engine.reset(0, outs[0])
    for t, action in enumerate(actions):
        if t in (11, 19, 20, 40):
            snapshots = engine.snapshot()
            other.restore(snapshots)
        for one, out in zip((engine, other) if t >= 11 else (engine,), outs, strict=False):
            one.send(0, action)
            one.recv(0, out)
        if t >= 11:
            for name, column in toys.columns(outs[0]).items():
                if name != "final_frame":
                    np.testing.assert_array_equal(column, toys.columns(outs[1])[name], name)
    with pytest.raises(ValueError, match="no snapshot"):
        other.restore([b"nonsense"] * 3)
    with pytest.raises(ValueError, match="2 snapshots for 3"):
        other.restore(snapshots[:2])
    forged = re.sub(rb'"depth": \d', b'"depth": 0', snapshots[2])
    with pytest.raises(ValueError, match="depth=0 is out of bounds"):
        other.restore([*snapshots[:2], forged])
    engine.close()
    other.close()


def test_environments_without_snapshots_say_so() -> None:
    engine = toys.build("gymnasium", "CartPole-v1", num_envs=1, num_workers=0)
    assert not engine.can_snapshot
    with pytest.raises(ValueError, match="has no snapshots"):
        engine.snapshot()
    assert not toys.build(
        "gymnasium", toy_envs.wrapped_catch, num_envs=1, num_workers=0
    ).can_snapshot


@pytest.mark.parametrize("num_workers", [0, 2])
def test_an_environment_that_raises_brings_its_traceback(num_workers: int) -> None:
    engine = toys.build("gymnasium", toy_envs.raising, num_envs=4, num_workers=num_workers)
    with pytest.raises(EngineError, match=r"(?s)the ball is gone.*This was environment [0-3]"):
        toys.record(engine, np.zeros((5, 4), np.int64))
    engine.close()


def test_a_killed_worker_ends_the_step_within_seconds() -> None:
    before = children()
    engine = toys.build("gymnasium", toy_envs.dying, num_envs=4, num_workers=2)
    begun = time.monotonic()
    with pytest.raises(EngineError, match="SIGKILL"):
        toys.record(engine, np.zeros((5, 4), np.int64))
    engine.close()
    assert time.monotonic() - begun < 20.0
    assert children() == before


def test_a_stuck_environment_is_given_up() -> None:
    before = children()
    engine = toys.build("gymnasium", toy_envs.hanging, num_envs=2, num_workers=2, wait_seconds=2.0)
    begun = time.monotonic()
    with pytest.raises(EngineError, match=r"did not answer within wait_seconds=2"):
        toys.record(engine, np.zeros((5, 2), np.int64))
    assert time.monotonic() - begun < 20.0
    assert children() == before
    engine.close()


def test_nothing_is_left_after_close() -> None:
    before = children(), mapped_blocks(), len(os.listdir("/proc/self/fd"))
    engine = toys.build("gymnasium", "scanline/Catch-v0", num_envs=4, num_workers=2)
    assert len(children() - before[0]) == 2
    assert mapped_blocks() == before[1] + 1
    engine.reset(0, toys.step_arrays(4, engine.spaces))
    engine.send(0, np.zeros(4, np.int64))  # closed with a step under way
    engine.close()
    assert (children(), mapped_blocks(), len(os.listdir("/proc/self/fd"))) == before


def test_a_failure_at_birth_is_told_and_leaves_nothing() -> None:
    before = children()
    with pytest.raises(OSError, match="no such cartridge"):
        toys.build("gymnasium", toy_envs.broken_at_birth, num_envs=2, num_workers=2)
    assert children() == before


def test_groups_smaller_than_the_pool_spread_over_it() -> None:
    data = play(toy_envs.Blocks, 12, num_workers=2, num_groups=3)
    for name, column in play(toy_envs.Blocks, 12).items():
        np.testing.assert_array_equal(column, data[name], name)


@pytest.mark.parametrize(
    ("game", "sentence"),
    [
        ("Pendulum-v1", "Discrete actions only"),
        ("Blackjack-v1", "uint8 image or a vector"),
        ("FrozenLake-v1", "uint8 image or a vector"),
        ("CartPol-v1", "There is no environment 'CartPol-v1'"),
        (["CartPole-v1", "scanline/Catch-v0"], "differ in their frames or actions"),
        (["CartPole-v1"] * 3, "names 3 games for num_envs=2"),
    ],
)
def test_what_it_cannot_play_is_refused(game: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        toys.build("gymnasium", game, num_envs=2, num_workers=0)


def test_a_callable_that_workers_cannot_import_is_refused() -> None:
    with pytest.raises(ValueError, match="put the callable into a module"):
        toys.build("gymnasium", lambda: toy_envs.Blocks(), num_envs=2, num_workers=2)
    toys.build("gymnasium", lambda: toy_envs.Blocks(), num_envs=2, num_workers=0).close()


def test_protocol_options_it_cannot_honour_are_named() -> None:
    with pytest.raises(ValueError, match=r"noop_max=30.*'baselines'.*nearest.*'as-is'"):
        toys.build("gymnasium", "CartPole-v1", num_envs=1, protocol=protocols.get("baselines"))
    for options in ({"mode": 1}, {"num_workers": -1}):
        with pytest.raises(ValueError, match=next(iter(options))):
            toys.build("gymnasium", "CartPole-v1", num_envs=1, **options)


def test_atari_ids_play_without_being_imported_by_us() -> None:
    data = play("PongNoFrameskip-v4", 2)
    assert data["frame"].shape == (3, 3, 210, 160, 3)


def test_workers_start_without_torch() -> None:
    program = "import sys, scanline.engines.gymnasium_workers; sys.exit('torch' in sys.modules)"
    source = Path(toys.engines.__file__).parents[2]
    env = {**os.environ, "PYTHONPATH": str(source)}
    subprocess.run([sys.executable, "-c", program], check=True, env=env)
