"""Recall: what a memory is worth in it."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from scanline.envs.recall import ID, Recall


def play(choose: Callable[[np.ndarray], int], games: int = 40) -> float:
    """Mean score of a rule that sees the lamps."""
    env, total = Recall(), 0.0
    for seed in range(games):
        lamps, _ = env.reset(seed=seed)
        ended = False
        while not ended:
            lamps, reward, ended, _, _ = env.step(choose(lamps))
            total += reward
    return total / games


class Remembering:
    def __init__(self) -> None:
        self.cue = 0

    def __call__(self, lamps: np.ndarray) -> int:
        if lamps[:-1].any():
            self.cue = int(lamps[:-1].argmax())
        return self.cue


def test_the_environment_keeps_gymnasiums_rules() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gymnasium.make(ID).unwrapped, skip_render_check=True)


def test_a_memory_wins_and_chance_loses() -> None:
    assert play(Remembering()) == 4.0
    assert play(lambda _: 1) < 0.0


def test_a_snapshot_goes_on_with_the_same_cues() -> None:
    first, second = Recall(), Recall()
    first.reset(seed=3)
    second.reset(seed=4)
    first.step(0)
    second.restore(first.snapshot())
    for _ in range(20):
        mine, other = first.step(1), second.step(1)
        assert np.array_equal(mine[0], other[0]) and mine[1:] == other[1:]


@pytest.mark.parametrize("change", [{"cue": 3}, {"step": 6}, {"round": -1}, {"cue": 1.0}])
def test_a_snapshot_with_impossible_numbers_is_refused(change: dict[str, float]) -> None:
    env = Recall()
    env.reset(seed=0)
    state = json.loads(env.snapshot())
    state["game"] |= change
    with pytest.raises(ValueError, match="out of bounds"):
        env.restore(json.dumps(state).encode())


def test_settings_that_are_no_game_are_refused() -> None:
    with pytest.raises(ValueError, match="delay=-1 must be at least 0"):
        Recall(delay=-1)
