"""Continuous actions, as ale-py has them: radius, angle and fire."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("ale_py.vector_env", reason="ale-py is the oracle and brings the ROMs")

import gymnasium
from ale_py.vector_env import AtariVectorEnv

from scanline import make, make_single, random
from scanline.envs.arguments import polar_actions, polar_space

SEED = 3
NUM_ENVS = 3


@pytest.mark.parametrize("threshold", [0.5, 0.2])
@pytest.mark.parametrize("game", ["breakout", "pong", "seaquest"])
def test_steps_equal_ale_pys_vector_environment(game: str, threshold: float) -> None:
    options = {"continuous": True, "continuous_action_threshold": threshold}
    sticky: dict[str, Any] = {"repeat_action_probability": 0.25}
    ours = make(game, NUM_ENVS, protocol="ale-vector", reset="ale", seed=SEED, **options, **sticky)
    theirs = AtariVectorEnv(game, NUM_ENVS, **options, **sticky)
    assert ours.action_space == theirs.action_space
    assert ours.single_action_space == theirs.single_action_space
    seeds = random.seeds(SEED, "environment", np.arange(NUM_ENVS))
    np.testing.assert_array_equal(ours.reset()[0], theirs.reset(seed=seeds)[0])
    ours.action_space.seed(0)
    for _ in range(150):
        actions = ours.action_space.sample()
        mine, wanted = ours.step(actions), theirs.step(actions)
        for one, other in zip(mine[:4], wanted[:4], strict=True):
            np.testing.assert_array_equal(one, other)
    ours.close()
    theirs.close()


def test_a_single_environment_equals_gymnasiums() -> None:
    ours = make_single("breakout", protocol="gymnasium-v5", continuous=True, sticky=0.0)
    theirs = gymnasium.make("ALE/Breakout-v5", continuous=True, repeat_action_probability=0.0)
    assert ours.action_space == theirs.action_space
    ours.reset(seed=0)
    theirs.reset(seed=0)
    ours.action_space.seed(0)
    for _ in range(40):
        action = ours.action_space.sample()
        mine, wanted = ours.step(action), theirs.step(action)
        np.testing.assert_array_equal(mine[0][-1], wanted[0])
        assert mine[1] == wanted[1]
    ours.close()
    theirs.close()


def test_a_radius_turns_a_paddle_that_far() -> None:
    def paddle(radius: float) -> int:
        envs = make("breakout", 1, obs_type="ram", continuous=True, continuous_action_threshold=0.1)
        envs.reset(seed=0)
        for _ in range(5):
            ram, *_ = envs.step(np.array([[radius, 0, 0]], np.float32))
        envs.close()
        return int(ram[0, -1, 72])

    middle, near, far = paddle(0), paddle(0.3), paddle(1)
    assert middle < near < far


def test_wrong_actions_are_refused() -> None:
    good = np.zeros((2, 3), np.float32)
    assert polar_actions(good, 2, 0.5).indices.tolist() == [0, 0]
    with pytest.raises(ValueError, match=r"shape \(2,\); give radius, angle and fire"):
        polar_actions(np.zeros(2, np.float32), 2, 0.5)
    with pytest.raises(TypeError, match="float64; give float32"):
        polar_actions(good.astype(float), 2, 0.5)
    for wrong in (np.nan, 1.5, -0.1):
        bad = good.copy()
        bad[1, 0] = wrong
        with pytest.raises(ValueError, match="radius of 0 to 1"):
            polar_actions(bad, 2, 0.5)
    assert polar_space().sample() in polar_space()
    with pytest.raises(ValueError, match="Engine 'ale' has no continuous actions"):
        make("pong", 2, engine="ale", continuous=True)
    with pytest.raises(ValueError, match="continuous_action_threshold=2"):
        make("pong", 2, continuous=True, continuous_action_threshold=2)
