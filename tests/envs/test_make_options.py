"""Options that `scanline.make` takes as the peers' users spell them, and those that it refuses."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded

from scanline import random
from scanline.envs.console import Console
from scanline.envs.make import make


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"seed": -1}, "seed=-1 must be at least 0"),
        ({"seed": 1.5}, "seed=1.5 must be a whole number"),
        ({"seed": True}, "seed=True must be a whole number"),
        ({"num_threads": 0}, "num_threads=0 must be at least 1"),
        ({"num_threads": 1.5}, "num_threads=1.5 must be a whole number"),
        ({"num_envs": 0}, "num_envs=0 must be at least 1"),
        ({"frameskip": 0}, "Invalid frameskip of 0, frameskip must be positive"),
        ({"frameskip": -2}, "Invalid frameskip of -2, frameskip must be positive"),
        ({"frameskip": 1.5}, "Invalid frameskip type: 1.5"),
        ({"frameskip": "4"}, "Invalid frameskip type: '4'"),
        ({"frameskip": True}, "Invalid frameskip type: True"),
        ({"frameskip": (2,) * 3}, "expected length 2"),
        ({"frameskip": (5, 2)}, "lower bound is greater than upper bound"),
        ({"obs_type": "sound"}, "obs_type='sound' is unknown; choose one of ram, rgb, grayscale"),
        ({"obs_typ": "ram"}, "did you mean 'obs_type'"),
    ],
)
def test_wrong_options_are_refused_with_a_sentence(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence) as caught:
        make("pong", **options)
    assert isinstance(caught.value, gymnasium.error.Error)  # what users of ale-py catch


@pytest.mark.parametrize("seed", [-1, 1.5, True])
def test_wrong_seeds_of_a_reset_are_refused(seed: Any) -> None:
    envs = make("pong", 2)
    with pytest.raises(ValueError, match=f"seed={seed} must be"):
        envs.reset(seed=seed)
    envs.reset(seed=np.int64(3))  # type: ignore[arg-type]
    envs.close()


def test_wrong_reset_options_are_refused() -> None:
    envs = make("pong", 2)
    with pytest.raises(ValueError, match="no option 'mask'; it knows 'reset_mask' only"):
        envs.reset(options={"mask": np.ones(2, bool)})
    with pytest.raises(ResetNeeded, match="before a reset with a mask"):
        envs.reset(options={"reset_mask": np.zeros(2, bool)})
    envs.reset()
    wrong: list[tuple[Any, type[Exception]]] = [
        (None, TypeError),
        ([True, False], TypeError),
        (np.ones(2, np.int64), TypeError),
        (np.ones(3, bool), ValueError),
        (np.ones((2, 1), bool), ValueError),
    ]
    for mask, error in wrong:
        with pytest.raises(error, match="reset_mask"):
            envs.reset(options={"reset_mask": mask})
    envs.close()


def test_a_mask_that_names_no_environment_changes_nothing() -> None:
    envs, other = make("pong", 2, seed=1), make("pong", 2, seed=1)
    for one in (envs, other):
        one.reset()
    for _ in range(8):
        before, *_, info = envs.step(np.full(2, 2))
        other.step(np.full(2, 2))
    after, now = envs.reset(options={"reset_mask": np.zeros(2, bool)})
    np.testing.assert_array_equal(after, before)
    np.testing.assert_array_equal(now["frame_number"], info["frame_number"])
    for ours, theirs in zip(envs.step(np.zeros(2, int)), other.step(np.zeros(2, int)), strict=True):
        np.testing.assert_equal(ours, theirs)
    envs.close()
    other.close()


def test_three_games_in_six_environments() -> None:
    games = ["pong", "breakout", "qbert"]
    envs = make(games, 6, protocol="ale-vector", obs_type="ram", frame_stack=1, noop_max=0)
    assert envs.single_action_space.n == 18  # type: ignore[attr-defined]
    observations, _ = envs.reset()
    assert [_recognised(ram[0], games) for ram in observations] == games * 2
    envs.step(envs.action_space.sample())
    envs.close()
    with pytest.raises(ValueError, match="names 3 games for num_envs=4"):
        make(games, 4)
    alike = make(["pong", "qbert"], 2)
    assert alike.single_action_space.n == 6  # type: ignore[attr-defined]
    alike.close()


def _recognised(ram: np.ndarray, games: list[str]) -> str:
    """The game whose memory after a reset is nearest."""
    consoles = {game: Console(game) for game in games}
    for console in consoles.values():
        console.reset()
    return min(games, key=lambda game: int((consoles[game].ram() != ram).sum()))


@pytest.mark.parametrize(
    ("obs_type", "shape"),
    [("ram", (4, 128)), ("rgb", (4, 84, 84, 3)), ("grayscale", (4, 84, 84))],
)
def test_observation_types_in_ales_spelling(obs_type: str, shape: tuple[int, ...]) -> None:
    envs = make("pong", 2, obs_type=obs_type)
    observations, _ = envs.reset()
    assert observations.shape == (2, *shape)
    assert observations in envs.observation_space
    envs.close()


def test_ram_observations_are_the_consoles_memory() -> None:
    own = {"protocol": "gymnasium-v5", "frameskip": 1, "sticky": 0.0, "reset": "ale"}
    envs = make("pong", 1, obs_type="ram", seed=3, **own)
    console = Console("pong", seed=int(random.seeds(3, "environment", [0])[0]))
    console.reset()
    ram, _ = envs.reset()
    for action in (0, 2, 3, 2, 2) * 20:
        np.testing.assert_array_equal(ram, console.ram()[None, None])
        ram, *_ = envs.step(np.array([action]))
        console.act(console.minimal_actions[action])
    envs.close()


def test_spaces_with_a_batch_size_are_those_of_a_batch() -> None:
    envs = make("pong", 6, batch_size=2)
    assert envs.action_space.shape == (2,)
    assert envs.observation_space.shape == (2, 4, 84, 84)
    envs.reset()
    envs.send(np.zeros(6, np.int64))
    for _ in range(6):
        observations, *_, info = envs.recv()
        assert observations in envs.observation_space
        envs.send(envs.action_space.sample(), info["env_id"])
    for _ in range(3):
        envs.recv()
    envs.close()


def test_spec_makes_an_equal_environment() -> None:
    envs = make("ALE/Pong-v5", 2, protocol="machado", seed=5, num_threads=1)
    assert envs.spec is not None
    assert envs.spec.id == "scanline/Pong-v5"
    again = gymnasium.make_vec(envs.spec)
    np.testing.assert_array_equal(envs.reset()[0], again.reset()[0])
    assert again.spec is not None
    assert again.spec.kwargs["protocol"] == "machado"
    assert make(["pong", "qbert"], 2).spec is None
    envs.close()
    again.close()


def test_a_batch_is_stepped_as_ale_pys() -> None:
    """`reset` gives the first batch; each step acts for the last one and gives the next."""
    envs, whole = (make("pong", 4, seed=3, **own) for own in ({"batch_size": 2}, {}))
    observations, info = envs.reset()
    wanted = [whole.reset()[0]] + [whole.step(np.full(4, 2))[0] for _ in range(3)]
    assert observations in envs.observation_space
    assert info["env_id"].tolist() == [0, 1]
    np.testing.assert_array_equal(observations, wanted[0][:2])
    observations, rewards, _, _, info = envs.step(np.full(2, 2))
    np.testing.assert_array_equal(observations, wanted[0][2:])  # the start of the others
    assert info["env_id"].tolist() == [2, 3]
    assert not rewards.any()
    steps = np.zeros(2, int)
    while steps.min() < 3:
        observations, *_, info = envs.step(np.full(2, 2))
        group = info["env_id"][0] // 2
        steps[group] += 1
        if steps[group] <= 3:
            np.testing.assert_array_equal(observations, wanted[steps[group]][info["env_id"]])
    envs.close()
    whole.close()
