"""The public vector environment, as a Gymnasium user sees it."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
import toy_envs
import toys
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from scanline import random
from scanline.engines import EngineError
from scanline.envs.make import make
from scanline.envs.vector import EngineVectorEnv

NUM_ENVS = 4
MODES = {"next-step": AutoresetMode.NEXT_STEP, "same-step": AutoresetMode.SAME_STEP}


def catch(num_workers: int = 0, **options: Any) -> EngineVectorEnv:
    chosen = {"stack": 4, "stack_padding": "zeros", "seed": 3, **options}
    return make(toy_envs.catch_with_lives, NUM_ENVS, num_workers=num_workers, **chosen)


def stack_from_definition(frames: list[np.ndarray], padding: str) -> np.ndarray:
    """The last four frames of an episode."""
    missing = 4 - len(frames)
    pad = np.zeros_like(frames[0]) if padding == "zeros" else frames[0]
    return np.stack([pad] * missing + frames[-4:] if missing > 0 else frames[-4:])


def reference(mode: AutoresetMode) -> SyncVectorEnv:
    envs = SyncVectorEnv([toy_envs.catch_with_lives] * NUM_ENVS, autoreset_mode=mode)
    envs.action_space.seed(0)
    return envs


@pytest.mark.parametrize("padding", ["zeros", "repeat"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("batch_size", [4, 2])
def test_data_equal_gymnasiums_own_vector_environment(
    mode: str, padding: str, batch_size: int
) -> None:
    ours = catch(autoreset_mode=MODES[mode], stack_padding=padding, batch_size=batch_size)
    theirs = reference(MODES[mode])
    seeds = random.seeds(3, "environment", np.arange(NUM_ENVS)).tolist()
    observations, _ = ours.reset()
    frames, _ = theirs.reset(seed=seeds)
    episodes = [[frame.copy()] for frame in frames]
    waits, ends = np.zeros(NUM_ENVS, bool), 0
    for actions in toys.random_actions(150, NUM_ENVS, 3):
        result = ours.step(actions)
        frames, rewards, terminated, truncated, info = theirs.step(actions)
        ended = terminated | truncated
        for env in range(NUM_ENVS):
            if ended[env] and mode == "same-step":
                last = [*episodes[env], info["final_obs"][env]]
                wanted = stack_from_definition(last, padding)
                np.testing.assert_array_equal(result[4]["final_obs"][env], wanted)
            fresh = waits[env] or (ended[env] and mode == "same-step")
            episodes[env] = [frames[env].copy()] if fresh else [*episodes[env], frames[env].copy()]
            wanted = stack_from_definition(episodes[env], padding)
            np.testing.assert_array_equal(result[0][env], wanted)
        waits, ends = ended & (mode == "next-step"), ends + ended.sum()
        np.testing.assert_array_equal(result[1], rewards)
        np.testing.assert_array_equal(result[2], terminated)
        np.testing.assert_array_equal(result[3], truncated)
        np.testing.assert_array_equal(result[4]["lives"], info["lives"])
        if ended.any() and mode == "same-step":
            np.testing.assert_array_equal(result[4]["_final_obs"], info["_final_obs"])
            np.testing.assert_array_equal(result[4]["_final_info"], info["_final_info"])
    assert ends > 4
    assert observations.shape == (batch_size, 4, 10, 10)


@pytest.mark.parametrize("mode", MODES)
def test_episode_totals_equal_gymnasiums_recorder(mode: str) -> None:
    envs = catch(autoreset_mode=MODES[mode])
    recorder = gymnasium.wrappers.vector.RecordEpisodeStatistics(
        catch(autoreset_mode=MODES[mode], reward_clip="none"), stats_key="theirs"
    )
    envs.reset(seed=1)
    recorder.reset(seed=1)
    ends = 0
    for actions in toys.random_actions(120, NUM_ENVS, 3):
        ours, theirs = envs.step(actions)[4], recorder.step(actions)[4]
        assert ("episode" in ours) == ("theirs" in theirs)
        if "episode" in ours:
            ends += 1
            np.testing.assert_array_equal(ours["_episode"], theirs["_theirs"])
            for key in ("r", "l"):
                np.testing.assert_array_equal(ours["episode"][key], theirs["theirs"][key])
            assert (ours["episode"]["t"][ours["_episode"]] > 0).all()
    assert ends > 4


def test_disabled_resets_where_the_mask_says() -> None:
    envs = catch(autoreset_mode=AutoresetMode.DISABLED, batch_size=2)
    envs.reset(seed=0)
    for actions in toys.random_actions(200, NUM_ENVS, 3):
        observations, _, terminated, _, _ = envs.step(actions)
        if terminated.any():
            break
    with pytest.raises(RuntimeError, match="autoreset is disabled"):
        envs.step(np.zeros(NUM_ENVS, np.int64))
    after, _ = envs.reset(options={"reset_mask": terminated})
    np.testing.assert_array_equal(after[~terminated], observations[~terminated])
    assert not after[terminated][:, :3].any()
    last, *_ = envs.step(np.zeros(NUM_ENVS, np.int64))
    for mask, error in (([True] * 4, TypeError), (np.ones(3, bool), ValueError)):
        with pytest.raises(error, match="reset_mask"):
            envs.reset(options={"reset_mask": mask})
    unchanged, _ = envs.reset(options={"reset_mask": np.zeros(4, bool)})
    np.testing.assert_array_equal(unchanged, last)


def test_lost_lives_fold_into_terminated_only_where_the_protocol_says() -> None:
    folded = catch(autoreset_mode="same-step", episodic_life=True)
    plain = catch(autoreset_mode="same-step")
    folded.reset()
    plain.reset()
    lost_any = False
    for actions in toys.random_actions(100, NUM_ENVS, 3):
        one, two = folded.step(actions), plain.step(actions)
        lost = two[4]["life_lost"]
        lost_any |= lost.any()
        assert not two[2][lost].any()
        np.testing.assert_array_equal(one[2], two[2] | lost)
        np.testing.assert_array_equal(one[0], two[0])
        assert ("episode" in one[4]) == ("episode" in two[4])
        if lost.any():
            np.testing.assert_array_equal(one[4]["final_obs"][lost], one[0][lost])
    assert lost_any


def test_arrays_stay_valid_and_the_callers_own_are_filled() -> None:
    envs, other = catch(), catch()
    envs.reset()
    other.reset()
    kept = [envs.step(actions) for actions in toys.random_actions(40, NUM_ENVS, 3)]
    copies = [other.step(actions) for actions in toys.random_actions(40, NUM_ENVS, 3)]
    out = envs.buffers()
    for _ in range(5):
        given = envs.step(np.ones(NUM_ENVS, np.int64), out=out)
        assert all(one is two for one, two in zip(given, out, strict=False))
        wanted = other.step(np.ones(NUM_ENVS, np.int64))
        for one, two in zip(out, wanted, strict=False):
            np.testing.assert_array_equal(one, two)
    for one, two in zip(kept, copies, strict=True):
        np.testing.assert_array_equal(one[0], two[0])
        np.testing.assert_array_equal(one[1], two[1])
        np.testing.assert_array_equal(one[4]["raw_reward"], two[4]["raw_reward"])


@pytest.mark.parametrize("num_workers", [0, 2])
def test_send_and_recv_give_the_same_data_in_any_order(num_workers: int) -> None:
    whole, parts = catch(), catch(num_workers, batch_size=2)
    whole.reset()
    parts.reset()
    assert parts.batch_size == 2
    actions = toys.random_actions(60, NUM_ENVS, 3)
    wanted = [whole.step(row) for row in actions]
    counts = np.zeros(2, int)
    parts.send(actions[0][[3, 2, 0, 1]], np.array([3, 2, 0, 1]))
    while counts.sum() < 2 * len(actions):
        observations, rewards, _, _, info = parts.recv()
        group = info["env_id"][0] // 2
        step = counts[group]
        np.testing.assert_array_equal(observations, wanted[step][0][info["env_id"]])
        np.testing.assert_array_equal(rewards, wanted[step][1][info["env_id"]])
        counts[group] += 1
        if counts[group] < len(actions):
            parts.send(actions[counts[group]][info["env_id"]], info["env_id"])
    with pytest.raises(EngineError, match="No group has results"):
        parts.recv()
    with pytest.raises(ValueError, match="whole groups of 2"):
        parts.send(np.zeros(2, np.int64), np.array([1, 2]))
    parts.close()


@pytest.mark.parametrize("mode", MODES)
def test_a_snapshot_continues_exactly(mode: str) -> None:
    envs, other = catch(autoreset_mode=mode), catch(autoreset_mode=mode, seed=8)
    envs.reset()
    for t, actions in enumerate(toys.random_actions(120, NUM_ENVS, 3)):
        result = envs.step(actions)
        if t > 7:
            same = other.step(actions)
            for one, two in zip(result[:4], same[:4], strict=True):
                np.testing.assert_array_equal(one, two)
            np.testing.assert_array_equal(result[4]["lives"], same[4]["lives"])
            assert ("episode" in result[4]) == ("episode" in same[4])
            if "episode" in result[4]:
                np.testing.assert_array_equal(result[4]["episode"]["r"], same[4]["episode"]["r"])
                np.testing.assert_array_equal(result[4]["episode"]["l"], same[4]["episode"]["l"])
        if t in (7, 30, 51):
            np.testing.assert_array_equal(other.restore(envs.snapshot()), result[0])
    with pytest.raises(ValueError, match="no snapshot"):
        other.restore([b"nonsense"] * NUM_ENVS)


def test_each_misuse_has_one_clear_exception() -> None:
    envs = catch()
    good = np.zeros(NUM_ENVS, np.int64)
    with pytest.raises(gymnasium.error.ResetNeeded):
        envs.step(good)
    envs.reset()
    with pytest.raises(ValueError, match=r"shape \(3,\)"):
        envs.step(good[:3])
    with pytest.raises(TypeError, match="float64"):
        envs.step(good.astype(float))
    for wrong in (-1, 3):
        with pytest.raises(ValueError, match=r"must lie in 0\.\.2"):
            envs.step(good + wrong)
    envs.step(good.astype(np.int32))
    envs.step(good.tolist())
    envs.close()
    envs.close()
    for call in (envs.reset, lambda: envs.step(good), envs.recv, envs.snapshot):
        with pytest.raises(gymnasium.error.ClosedEnvironmentError):
            call()


def test_spaces_and_metadata() -> None:
    envs = catch(autoreset_mode="same-step")
    assert envs.metadata["autoreset_mode"] == AutoresetMode.SAME_STEP
    assert envs.num_envs == NUM_ENVS
    observations, info = envs.reset(seed=0)
    assert observations in envs.observation_space
    assert envs.single_observation_space.shape == (4, 10, 10)
    assert envs.single_observation_space.dtype == np.uint8
    observations, rewards, *_ = envs.step(envs.action_space.sample())
    assert observations in envs.observation_space
    assert rewards.dtype == np.float32
    for key in ("lives", "env_id", "raw_reward"):
        assert info[f"_{key}"].all()
    assert catch().metadata["autoreset_mode"] == AutoresetMode.NEXT_STEP


def test_reset_with_a_seed_repeats_and_without_one_goes_on() -> None:
    envs = catch()
    first, again = envs.reset(seed=7)[0], envs.reset()[0]
    assert not np.array_equal(first, again)
    np.testing.assert_array_equal(envs.reset(seed=7)[0], first)
    np.testing.assert_array_equal(envs.reset()[0], again)
    assert not np.array_equal(envs.reset(seed=8)[0], first)
