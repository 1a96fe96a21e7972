"""The adapter for Stable-Baselines3: what SB3 asks of a `VecEnv`, and its own PPO on it."""

from __future__ import annotations

import numpy as np
import pytest
from stable_baselines3 import PPO

import scanline
from scanline.envs.sb3 import Sb3VecEnv


@pytest.fixture
def env() -> Sb3VecEnv:
    return Sb3VecEnv("breakout", num_envs=3, seed=3, num_threads=1)


def test_steps_are_those_of_make(env: Sb3VecEnv) -> None:
    ours = scanline.make("breakout", num_envs=3, seed=3, num_threads=1, autoreset_mode="same-step")
    env.seed(7)
    first, _ = ours.reset(seed=7)
    np.testing.assert_array_equal(env.reset(), first)
    for step in range(300):
        actions = np.full(3, step % 4)
        observations, rewards, dones, infos = env.step(actions)
        expected = ours.step(actions)
        np.testing.assert_array_equal(observations, expected[0])
        np.testing.assert_array_equal(rewards, expected[1])
        np.testing.assert_array_equal(dones, expected[2] | expected[3])
        for index in np.flatnonzero(dones):
            last = expected[4]["final_obs"][index]
            np.testing.assert_array_equal(infos[index]["terminal_observation"], last)
    env.close()


def test_an_observation_outlives_the_next_step(env: Sb3VecEnv) -> None:
    env.reset()
    before, *_ = env.step(np.ones(3, np.int64))
    kept = before.copy()
    env.step(np.ones(3, np.int64))
    np.testing.assert_array_equal(before, kept)
    env.close()


def test_a_time_limit_is_told_as_truncation() -> None:
    env = Sb3VecEnv("pong", num_envs=2, seed=0, num_threads=1, episode_limit_frames=80)
    env.reset()
    for _ in range(40):
        _, _, dones, infos = env.step(np.zeros(2, np.int64))
        if dones.all():
            break
    assert all(info["TimeLimit.truncated"] for info in infos)
    assert all(info["episode"]["l"] == 20 for info in infos)
    env.close()


def test_ppo_of_sb3_learns_on_it(env: Sb3VecEnv) -> None:
    model = PPO("CnnPolicy", env, n_steps=32, batch_size=48, n_epochs=1, device="cpu")
    before = [p.detach().clone() for p in model.policy.parameters()]
    model.learn(96)
    changed = [not b.equal(p) for b, p in zip(before, model.policy.parameters(), strict=True)]
    assert any(changed)
    assert model.num_timesteps == 96
