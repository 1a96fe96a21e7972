"""The ale engine is ale-py's vector environment, bit for bit."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import toy_envs
import toys

from scanline import protocols, random

ALE = protocols.get("ale-vector")


def direct(game: str, num_envs: int, actions: np.ndarray, **options: Any) -> list[tuple]:
    """ale-py by itself, with its own stacks and clipping."""
    from ale_py.vector_env import AtariVectorEnv

    envs = AtariVectorEnv(game, num_envs, autoreset_mode="SameStep", **options)
    frames, info = envs.reset(seed=random.seeds(0, "environment", np.arange(num_envs)))
    rows = [(frames, np.zeros(num_envs), *np.zeros((2, num_envs), bool), info)]
    rows += [envs.step(step) for step in actions]
    return rows


@pytest.mark.parametrize("sticky", [0.0, 0.25])
def test_data_equal_ale_py(sticky: float) -> None:
    actions = toys.random_actions(250, 3, 4)
    rules = ALE.replace(sticky=sticky, max_num_frames_per_episode=500)
    engine = toys.build("ale", "ALE/Breakout-v5", num_envs=3, protocol=rules)
    ours = toys.record(engine, actions)
    engine.close()
    options = {"repeat_action_probability": sticky, "max_num_frames_per_episode": 500}
    theirs = direct("breakout", 3, actions, life_loss_info=True, **options)
    ended_any = 0
    for t, (frames, rewards, over, truncated, info) in enumerate(theirs):
        np.testing.assert_array_equal(ours["frame"][t], frames[:, -1])
        np.testing.assert_array_equal(ours["reward"][t], rewards)  # theirs are clamped
        np.testing.assert_array_equal(ours["truncated"][t], truncated)
        np.testing.assert_array_equal(ours["life_lost"][t] | ours["terminated"][t], over)
        np.testing.assert_array_equal(ours["lives"][t], info["lives"])
        ended = ours["terminated"][t] | ours["truncated"][t]
        ended_any += ended.sum()
        if ended.any():
            final = info["final_obs"][ended, -1]
            np.testing.assert_array_equal(ours["final_frame"][t][ended], final)
    assert ended_any > 3


def test_options_reach_ale_py() -> None:
    rules = ALE.replace(
        frame_skip=2, full_action_space=True, noop_max=0, use_fire_reset=False, img_height=50,
        img_width=40, grayscale=False, pooling="none",
    )  # fmt: skip
    engine = toys.build("ale", "pong", num_envs=2, protocol=rules)
    assert engine.spaces.frame_shape == (50, 40, 3)
    assert engine.spaces.num_actions == 18
    out = toys.step_arrays(2, engine.spaces)
    engine.reset(0, out)
    assert engine.counters(0)["frame_number"].tolist() == [0, 0]
    engine.send(0, np.array([11, 17]))
    engine.recv(0, out)
    assert engine.counters(0)["frame_number"].tolist() == [2, 2]
    engine.close()


def test_no_limit_means_no_limit() -> None:
    rules = ALE.replace(episode_limit_frames=0)
    engine = toys.build("ale", "pong", num_envs=1, protocol=rules)
    data = toys.record(engine, np.zeros((30, 1), np.int64))
    assert not data["truncated"].any()
    engine.close()


def test_full_reset_on_a_lost_life_ends_the_game() -> None:
    rules = ALE.replace(life_loss="full-reset")
    engine = toys.build("ale", "breakout", num_envs=1, protocol=rules)
    data = toys.record(engine, toys.random_actions(60, 1, 4))
    assert data["terminated"].any()
    assert (data["lives"] == 5).all()
    assert not data["life_lost"].any()
    engine.close()


@pytest.mark.parametrize("name", ["baselines", "nature", "paac", "ga3c", "accelerated", "as-is"])
def test_protocols_it_cannot_honour_are_refused_by_name(name: str) -> None:
    with pytest.raises(ValueError, match=rf"terminal_frame='real'.*'{name}'.*'ale-vector'"):
        toys.build("ale", "pong", num_envs=1, protocol=protocols.get(name))


@pytest.mark.parametrize(
    ("game", "options", "sentence"),
    [
        ("pogn", {}, "did you mean pong"),
        (toy_envs.Blocks, {}, "use engine='gymnasium'"),
        (["pong", "breakout"], {}, "one game in all environments"),
        ("pong", {"mode": 1}, "mode=1"),
        ("pong", {"protocol": ALE.replace(pooling="rgb")}, "pooling='rgb'"),
        ("pong", {"protocol": ALE.replace(frameskip=(2, 5))}, "frame_skip_min=2"),
    ],
)
def test_what_it_cannot_play_is_refused(game: Any, options: dict, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        toys.build("ale", game, num_envs=2, **options)


def test_it_has_no_snapshots() -> None:
    engine = toys.build("ale", "pong", num_envs=1)
    assert not engine.can_snapshot
    with pytest.raises(ValueError, match="has no snapshots"):
        engine.snapshot()
    engine.close()


MISSING = """
import sys
sys.path[:] = {path!r}
sys.modules["ale_py"] = None
import toy_envs
import toys
try:
    toys.build("ale", "pong", num_envs=1)
except ImportError as error:
    print(error)
"""


def test_a_missing_ale_py_is_told_with_the_command_that_brings_it() -> None:
    program = [sys.executable, "-c", MISSING.format(path=sys.path)]
    told = subprocess.run(program, check=True, capture_output=True, text=True).stdout
    assert "pip install 'scanline[atari]'" in told
