"""Catch: what a learner can and cannot reach in it."""

from __future__ import annotations

import json
import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from scanline.envs.catch import ID, Catch


def play(env: gymnasium.Env, choose: Any, games: int = 20) -> float:
    """Mean score of a rule that sees the image."""
    total = 0.0
    for seed in range(games):
        image, _ = env.reset(seed=seed)
        ended = False
        while not ended:
            image, reward, ended, _, _ = env.step(choose(image))
            total += reward
    return total / games


def follow(image: np.ndarray) -> int:
    ball = int(np.argmax((image == 255).any(axis=0)))
    paddle = int(np.argmax(image[-1] == 128))
    return 1 + int(np.sign(ball - paddle))


def test_the_environment_keeps_gymnasiums_rules() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gymnasium.make(ID).unwrapped, skip_render_check=True)


def test_following_the_ball_wins_and_other_rules_lose() -> None:
    env, rng = Catch(), np.random.default_rng(0)
    assert play(env, follow) > 4.0  # a first ball that begins low may be out of reach
    assert play(env, lambda _: int(rng.integers(3))) < -1.0
    assert play(env, lambda image: 2 - follow(image)) < -1.0
    assert play(env, lambda _: 1) < -1.0


def test_a_seed_decides_the_whole_game() -> None:
    actions = np.random.default_rng(0).integers(0, 3, 60)

    def images(seed: int) -> list[bytes]:
        env = Catch(slant=True, flicker=0.3, balls=50)
        found = [env.reset(seed=seed)[0].tobytes()]
        return found + [env.step(int(a))[0].tobytes() for a in actions[:40]]

    assert images(1) == images(1)
    assert images(1) != images(2)


def test_lives_count_misses_and_end_the_game() -> None:
    env = Catch(lives=2, balls=50)
    _, info = env.reset(seed=0)
    lives, ended, score = [info["lives"]], False, 0.0
    while not ended:
        _, reward, ended, _, info = env.step(1)
        score += reward
        lives.append(info["lives"])
    assert sorted(set(lives)) == [0, 1, 2]
    assert lives[-1] == 0
    assert lives == sorted(lives, reverse=True)


def test_terminal_reward_only_gives_the_score_at_the_end() -> None:
    env = Catch(terminal_reward_only=True)
    rewards, (image, _), ended = [], env.reset(seed=0), False
    while not ended:
        image, reward, ended, _, _ = env.step(follow(image))
        rewards.append(reward)
    assert rewards[-1] >= 3.0
    assert not any(rewards[:-1])


def test_a_slant_needs_more_than_one_image() -> None:
    assert play(Catch(slant=True), follow) < 0.0


def test_flicker_hides_images_and_cells_grow() -> None:
    env = Catch(flicker=0.5, pixels_per_cell=7, size=12)
    env.reset(seed=0)
    images = [env.step(1)[0] for _ in range(40)]
    assert images[0].shape == (84, 84)
    assert 5 < sum(not image.any() for image in images) < 35
    shown = next(image for image in images if image.any())
    assert (shown == 255).sum() == 49


def test_a_snapshot_continues_exactly() -> None:
    env, other = (Catch(slant=True, flicker=0.2, balls=50) for _ in range(2))
    env.reset(seed=0)
    other.reset(seed=1)
    for action in (0, 1, 2, 2, 1) * 3:
        env.step(action)
    other.restore(env.snapshot())
    for action in (0, 2, 1, 1) * 5:
        one, two = env.step(action), other.step(action)
        np.testing.assert_array_equal(one[0], two[0])
        assert one[1:] == two[1:]


@pytest.mark.parametrize(
    ("part", "change"),
    [
        *(("game", {"paddle": 5}), ("game", {"row": -1}), ("game", {"balls": 6})),
        *(("game", {"score": None}), ("game", {"other": 1})),
        *(("random", {"state": 3}), ("random", {"state": {"state": 2**200, "inc": 1}})),
    ],
)
def test_a_snapshot_out_of_bounds_changes_nothing(part: str, change: dict[str, Any]) -> None:
    env = Catch()
    env.reset(seed=0)
    good = env.snapshot()
    state = json.loads(good)
    with pytest.raises(ValueError, match="snapshot"):
        env.restore(json.dumps(state | {part: state[part] | change}).encode())
    assert env.snapshot() == good


@pytest.mark.parametrize("settings", [{"size": 2}, {"balls": 0}, {"lives": -1}, {"flicker": 2.0}])
def test_settings_out_of_range_are_refused(settings: dict) -> None:
    with pytest.raises(ValueError, match=next(iter(settings))):
        Catch(**settings)
