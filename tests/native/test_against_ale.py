"""Protocol `ale-vector` against ale-py's AtariVectorEnv: every array, bit for bit.

`make conformance` runs the same comparison over all games; here a few games and every option.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from batches import Player, random_actions

vector_env = pytest.importorskip("ale_py.vector_env")

NUM_ENVS = 2
MODES = {"next-step": "NextStep", "same-step": "SameStep"}


def compare_with_ale(game: str, num_steps: int, theirs: dict[str, Any], **ours: Any) -> int:
    """Plays both; gives the number of ends that were compared."""
    autoreset = ours.pop("autoreset", "next-step")
    player = Player(game, NUM_ENVS, engine={"autoreset": autoreset}, **ours)
    options = {"repeat_action_probability": ours.get("sticky", 0.0), "stack_num": 1, **theirs}
    envs = vector_env.AtariVectorEnv(game, NUM_ENVS, autoreset_mode=MODES[autoreset], **options)
    observations, info = envs.reset(seed=11)
    out = player.reset(11)
    ends = 0
    for step, actions in enumerate(random_actions(num_steps, NUM_ENVS, player.num_actions)):
        assert_same_state(step, observations[:, 0], info, player)
        observations, reward, terminated, truncated, info = envs.step(actions)
        player.step(actions)
        over = out.terminated | (out.life_lost if ours.get("life_loss") == "end-return" else False)
        np.testing.assert_array_equal(out.reward, reward, f"reward of step {step}")
        np.testing.assert_array_equal(over, terminated, f"terminated of step {step}")
        np.testing.assert_array_equal(out.truncated, truncated, f"truncated of step {step}")
        ended = out.terminated | out.truncated
        ends += int(ended.sum() + out.life_lost.sum())
        if autoreset == "same-step" and ended.any():
            final = info["final_obs"][ended, 0]
            np.testing.assert_array_equal(out.final_frame[ended], final, f"end in step {step}")
    return ends


def assert_same_state(step: int, frames: Any, info: dict[str, Any], player: Player) -> None:
    total, of_episode = player.counters()
    np.testing.assert_array_equal(player.out.frame, frames, f"frame before step {step}")
    np.testing.assert_array_equal(player.out.lives, info["lives"])
    np.testing.assert_array_equal(total, info["frame_number"])
    np.testing.assert_array_equal(of_episode, info["episode_frame_number"])


@pytest.mark.parametrize("game", ["pong", "qbert", "enduro", "montezuma_revenge", "tic_tac_toe_3d"])
def test_games(game: str) -> None:
    compare_with_ale(game, 150, {})


CASES: dict[str, tuple[str, int, dict[str, Any], dict[str, Any]]] = {
    "same-step": ("breakout", 300, {}, {"autoreset": "same-step"}),
    "sticky": ("berzerk", 300, {}, {"sticky": 0.25}),
    "full reset at a lost life": (
        "breakout",
        200,
        {"episodic_life": True},
        {"life_loss": "full-reset"},
    ),
    "full reset in the same step": (
        "breakout",
        200,
        {"episodic_life": True},
        {"life_loss": "full-reset", "autoreset": "same-step"},
    ),
    "a lost life is told": (
        "breakout",
        200,
        {"life_loss_info": True},
        {"life_loss": "end-return"},
    ),
    "limit within a step": (
        "seaquest",
        150,
        {"max_num_frames_per_episode": 203},
        {"episode_limit_frames": 203},
    ),
    "skip 1": ("breakout", 800, {"frameskip": 1}, {"frame_skip": 1}),
    "skip 2": ("breakout", 500, {"frameskip": 2}, {"frame_skip": 2}),
    "skip 3": ("breakout", 400, {"frameskip": 3}, {"frame_skip": 3}),
    "no pooling": ("breakout", 300, {"maxpool": False}, {"pooling": "none"}),
    "no FIRE": ("qbert", 300, {"use_fire_reset": False}, {"fire_reset": "none"}),
    "all actions": ("breakout", 300, {"full_action_space": True}, {"full_action_space": True}),
    "colours": ("breakout", 200, {"grayscale": False}, {"colour": "rgb"}),
}


@pytest.mark.parametrize("case", CASES)
def test_options(case: str) -> None:
    game, num_steps, theirs, ours = CASES[case]
    assert compare_with_ale(game, num_steps, theirs, **ours) > 0, "no end was compared"
