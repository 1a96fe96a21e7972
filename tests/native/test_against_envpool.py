"""Protocol `envpool` against EnvPool, its draws of no-ops included.

Not reproduced: a frame skip of 1, where EnvPool pools every picture since the reset into one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from batches import Player, random_actions

from scanline import games

envpool = pytest.importorskip("envpool")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")

NUM_ENVS = 2
CASES: dict[str, tuple[str, int, dict[str, Any], dict[str, Any]]] = {
    "pong": ("pong", 100, {}, {"life_loss": "ignore"}),
    "lives count as ends": ("breakout", 300, {"episodic_life": True}, {}),
    "lives in another game": ("qbert", 300, {"episodic_life": True}, {}),
    "ends of games": ("breakout", 400, {}, {"life_loss": "ignore"}),
    "sticky": (
        "seaquest",
        150,
        {"repeat_action_probability": 0.25},
        {"life_loss": "ignore", "sticky": 0.25},
    ),
    "linear": (
        "breakout",
        150,
        {"use_inter_area_resize": False},
        {"life_loss": "ignore", "resize": "linear"},
    ),
    "limit": (
        "seaquest",
        150,
        {"max_episode_steps": 60},
        {"life_loss": "ignore", "episode_limit_frames": 240},
    ),
    "a taller picture": ("pooyan", 100, {}, {"life_loss": "ignore"}),
}


@pytest.mark.parametrize("case", CASES)
def test_equal_to_envpool(case: str) -> None:
    game, num_steps, theirs, ours = CASES[case]
    player = Player(game, NUM_ENVS, preset="envpool", **ours)
    task = f"{games.find(game).title}-v5"
    envs = envpool.make(task, env_type="gymnasium", num_envs=NUM_ENVS, seed=5, **theirs)
    observations, info = envs.reset()
    out = player.reset(5)
    for step, actions in enumerate(random_actions(num_steps, NUM_ENVS, player.num_actions)):
        np.testing.assert_array_equal(out.frame, observations[:, -1], f"frame before step {step}")
        np.testing.assert_array_equal(out.lives, info["lives"])
        observations, _, terminated, truncated, info = envs.step(actions)
        player.step(actions)
        over = out.terminated | (out.life_lost if ours.get("life_loss") != "ignore" else False)
        np.testing.assert_array_equal(out.raw_reward, info["reward"])
        np.testing.assert_array_equal(over, terminated)
        np.testing.assert_array_equal(out.truncated, truncated)
