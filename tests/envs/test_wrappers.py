"""Gymnasium's vector wrappers around `scanline.make`."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
import toy_envs
import toys
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers import vector as wrappers

from scanline.envs.make import make
from scanline.envs.vector import EngineVectorEnv

NUM_ENVS = 4


def catch(**options: Any) -> EngineVectorEnv:
    """A game of seconds, whose rewards are clipped to their sign."""
    chosen = {"stack": 2, "reward_clip": "sign", "num_workers": 0, "seed": 3, **options}
    return make(toy_envs.catch_with_lives, NUM_ENVS, **chosen)


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_record_episode_statistics(mode: AutoresetMode) -> None:
    recorder = wrappers.RecordEpisodeStatistics(
        wrappers.ClipReward(catch(autoreset_mode=mode), min_reward=0.0)
    )
    plain = catch(autoreset_mode=mode)
    recorder.reset(seed=1)
    plain.reset(seed=1)
    ends = 0
    for actions in toys.random_actions(120, NUM_ENVS, 3):
        theirs, ours = recorder.step(actions)[4], plain.step(actions)[4]
        assert ("episode" in theirs) == ("episode" in ours)
        if "episode" in ours:
            ends += int(ours["_episode"].sum())
            np.testing.assert_array_equal(theirs["_episode"], ours["_episode"])
            np.testing.assert_array_equal(theirs["episode"]["l"], ours["episode"]["l"])
            assert (theirs["episode"]["r"] >= ours["episode"]["r"]).all()  # of clipped rewards
            np.testing.assert_array_equal(theirs["whole_game"]["r"], ours["episode"]["r"])
            np.testing.assert_array_equal(theirs["_whole_game"], ours["_episode"])
    assert len(recorder.return_queue) == ends > 4


def test_a_recorder_with_a_key_of_its_own_leaves_ours() -> None:
    recorder = wrappers.RecordEpisodeStatistics(catch(), stats_key="theirs")
    recorder.reset()
    infos = [recorder.step(actions)[4] for actions in toys.random_actions(60, NUM_ENVS, 3)]
    ended = [info for info in infos if "theirs" in info]
    assert ended
    assert all("episode" in info and "whole_game" not in info for info in ended)


def test_infos_as_a_list() -> None:
    envs = wrappers.DictInfoToList(catch())
    envs.reset()
    episodes = []
    for actions in toys.random_actions(60, NUM_ENVS, 3):
        infos = envs.step(actions)[4]
        assert [info["env_id"] for info in infos] == list(range(NUM_ENVS))  # type: ignore[attr-defined]
        episodes += [info["episode"]["l"] for info in infos if "episode" in info]  # type: ignore[attr-defined]
    assert len(episodes) > 2


def test_observations_and_rewards_transformed() -> None:
    envs: Any = make("pong", 2, seed=0)
    envs = wrappers.FlattenObservation(wrappers.DtypeObservation(envs, np.float32))
    envs = wrappers.NormalizeReward(wrappers.NormalizeObservation(envs))
    observations, _ = envs.reset(seed=0)
    assert observations.shape == (2, 4 * 84 * 84)
    for _ in range(3):
        observations, rewards, *_ = envs.step(np.array([2, 3]))
    assert observations.dtype == np.float32
    assert rewards.shape == (2,)
    envs.close()


def test_single_environments_recorder() -> None:
    env: Any = gymnasium.make("scanline/Pong-v5", max_num_frames_per_episode=400)
    env = gymnasium.wrappers.RecordEpisodeStatistics(env)
    env.reset(seed=0)
    ended, steps = False, 0
    while not ended:
        *_, terminated, truncated, info = env.step(0)
        ended, steps = terminated or truncated, steps + 1
    assert info["episode"]["l"] == info["whole_game"]["l"] == steps
    env.close()
