"""`scanline.make_single`: one environment, as a Gymnasium user sees it."""

from __future__ import annotations

import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import scanline
from scanline import games, random
from scanline.envs.catch import Catch

ACTIONS = np.random.default_rng(0).integers(0, 4, 400)


@pytest.mark.parametrize("protocol", ["baselines", "gymnasium-v5"])
@pytest.mark.parametrize("game", ["breakout", "ALE/Pong-v5"])
def test_check_env_finds_nothing(game: str, protocol: str) -> None:
    env = scanline.make_single(game, protocol=protocol, render_mode="rgb_array")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env)
    env.close()


def test_numbers_are_those_of_make_with_one_environment() -> None:
    env = scanline.make_single("breakout", seed=4)
    envs = scanline.make("breakout", 1, seed=4, autoreset_mode="disabled")
    observation, info = env.reset()
    observations, infos = envs.reset()
    ends = 0
    for action in ACTIONS:
        np.testing.assert_array_equal(observation, observations[0])
        assert {name: infos[name][0] for name in info if name != "episode"} == {
            name: value for name, value in info.items() if name != "episode"
        }
        observation, reward, terminated, truncated, info = env.step(action)
        observations, rewards, *over, infos = envs.step(np.array([action]))
        assert (reward, terminated, truncated) == (rewards[0], over[0][0], over[1][0])
        if terminated or truncated:
            ends += 1
            observation, info = env.reset()
            observations, infos = envs.reset(options={"reset_mask": np.ones(1, bool)})
    assert ends > 2
    env.close()
    envs.close()


def test_a_reset_goes_on_after_a_lost_life_only() -> None:
    env = scanline.make_single("breakout", seed=1)
    env.reset()
    terminated = False
    while not terminated:
        *_, terminated, _, info = env.step(1)
    assert info["life_lost"]
    assert env.reset()[1]["lives"] == 4
    env.step(0)
    assert env.reset()[1]["lives"] == 5  # in the middle of a life: a new game
    assert env.reset(seed=1)[1]["lives"] == 5
    env.close()


def test_the_same_seed_gives_the_same_game_and_snapshots_go_on() -> None:
    env: Any = scanline.make_single("pong")
    first, _ = env.reset(seed=7)
    saved = env.snapshot()
    steps = [env.step(action)[0] for action in ACTIONS[:20]]
    np.testing.assert_array_equal(env.reset(seed=7)[0], first)
    np.testing.assert_array_equal(env.restore(saved), first)
    for action, wanted in zip(ACTIONS[:20], steps, strict=True):
        np.testing.assert_array_equal(env.step(action)[0], wanted)
    env.close()


def test_wrong_calls_are_refused_with_a_sentence() -> None:
    env = scanline.make_single("pong")
    with pytest.raises(gymnasium.error.ResetNeeded, match="reset"):
        env.step(0)
    with pytest.raises(ValueError, match="seed=-1 must be at least 0"):
        env.reset(seed=-1)
    with pytest.raises(ValueError, match="reset has no option 'mode'"):
        env.reset(options={"mode": 1})
    env.reset()
    with pytest.raises(ValueError, match=r"must lie in 0\.\.5"):
        env.step(6)
    assert env.render() is None
    env.close()
    env.close()


def test_every_game_is_registered() -> None:
    for game in games.GAMES:
        assert gymnasium.spec(f"scanline/{game.title}-v5").kwargs == {"game": game.id}
        assert games.find(f"scanline/{game.title}-v5") == game
    env = gymnasium.make("scanline/MsPacman-v5", obs_type="ram", seed=2)
    assert env.reset()[0].shape == (4, 128)
    assert env.spec is not None
    assert env.spec.id == "scanline/MsPacman-v5"
    env.close()


@pytest.mark.parametrize("mode", [None, "sync"])
def test_make_vec(mode: str | None) -> None:
    envs = gymnasium.make_vec("scanline/Pong-v5", num_envs=3, vectorization_mode=mode)
    observations, _ = envs.reset(seed=0)
    assert observations.shape == (3, 4, 84, 84)
    observations, *_ = envs.step(envs.action_space.sample())
    assert observations in envs.observation_space
    envs.close()


def test_the_screen_is_the_consoles() -> None:
    own = {"protocol": "gymnasium-v5", "sticky": 0.0, "reset": "ale"}
    env = scanline.make_single("pong", render_mode="rgb_array", seed=3, **own)
    observation, _ = env.reset()
    for action in ACTIONS[:30]:
        screen: Any = env.render()
        np.testing.assert_array_equal(screen, observation[0])  # of this protocol: the whole screen
        assert screen.shape == (210, 160, 3)
        observation, *_ = env.step(action)
    env.close()


@pytest.mark.parametrize("options", [{"obs_type": "ram"}, {}, {"batch_size": 1}])
def test_screens_of_a_vector_environment(options: dict[str, Any]) -> None:
    """Observations that need no picture do not spoil the screen, and it does not spoil them."""
    envs = scanline.make("pong", 2, render_mode="rgb_array", seed=3, reset="ale", **options)
    seen = scanline.make(
        "pong", 2, seed=3, reset="ale", colour="rgb", resize="none", height=210, width=160,
        stack=1, pooling="none",
    )  # fmt: skip
    blind = scanline.make("pong", 2, seed=3, reset="ale", **options)
    frames = seen.reset()[0]
    observations = [each.reset()[0] for each in (envs, blind)]
    for action in ACTIONS[:30]:
        np.testing.assert_array_equal(np.stack(envs.render()), frames[:, 0])
        np.testing.assert_array_equal(*observations)
        actions = np.full(2, action)
        frames = seen.step(actions)[0]
        observations = [each.step(actions)[0] for each in (envs, blind)]
    for each in (envs, seen, blind):
        each.close()


def test_screens_are_collected_by_gymnasiums_wrapper() -> None:
    env: Any = gymnasium.make("scanline/Pong-v5", render_mode="rgb_array")
    env = gymnasium.wrappers.RenderCollection(env)
    env.reset()
    for _ in range(5):
        env.step(0)
    assert len(env.render()) == 6
    env.close()


@pytest.mark.parametrize("num_workers", [0, 2])
def test_screens_of_gymnasiums_environments_are_their_own(num_workers: int) -> None:
    envs = scanline.make("CartPole-v1", 3, num_workers=num_workers, render_mode="rgb_array", seed=3)
    single = gymnasium.make("CartPole-v1", render_mode="rgb_array")
    envs.reset()
    single.reset(seed=int(random.seeds(3, "environment", [1])[0]))
    for action in (0, 1, 1):
        envs.step(np.full(3, action))
        single.step(action)
    np.testing.assert_array_equal(envs.render()[1], single.render())
    assert len(envs.render()) == 3
    envs.close()
    single.close()


def test_where_there_is_no_screen_the_newest_frame_is_shown() -> None:
    envs = scanline.make("pong", 2, engine="ale", render_mode="rgb_array")
    envs.reset()
    observations, *_ = envs.step(np.array([2, 3]))
    for picture, observation in zip(envs.render(), observations, strict=True):
        assert picture.shape == (84, 84, 3)
        for channel in range(3):
            np.testing.assert_array_equal(picture[:, :, channel], observation[-1])
    envs.close()


def test_rendering_refuses_with_a_sentence() -> None:
    with pytest.raises(ValueError, match="render_mode=None; to be rendered"):
        scanline.make(Catch, num_workers=0, render_mode="rgb_array")
    with pytest.raises(ValueError, match="HumanRendering"):
        scanline.make("pong", render_mode="human")
    envs = scanline.make("pong")
    with pytest.raises(ValueError, match="render_mode='rgb_array'"):
        envs.render()
    envs.close()
    assert isinstance(
        scanline.make_single("pong", render_mode="human"), gymnasium.wrappers.HumanRendering
    )


def test_windows_of_gymnasiums_wrappers_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")  # a screen that is none
    single = scanline.make_single("pong", render_mode="human")
    envs = scanline.make("pong", 3, render_mode="rgb_array")
    shown: Any = gymnasium.wrappers.vector.HumanRendering(envs)
    for each in (single, shown):
        each.reset(seed=0)
        each.step(each.action_space.sample())
        each.close()
