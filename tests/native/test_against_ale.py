"""Protocol `ale-vector` against ale-py's AtariVectorEnv: every array, bit for bit.

`make conformance` runs the same comparison over 57 games; here a few games and every option.
"""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("ale_py.vector_env", reason="ale-py is the oracle and brings the ROMs")

import vector_side_by_side
from vector_side_by_side import VectorCase


@pytest.mark.parametrize("game", ["pong", "qbert", "enduro", "montezuma_revenge", "tic_tac_toe_3d"])
def test_games(game: str) -> None:
    case = VectorCase(game=game, num_envs=2, steps=150, seed=11, reset_after_steps=100)
    assert vector_side_by_side.run(case).difference == ""


def case_of(
    game: str, steps: int, theirs: dict[str, Any], ours: dict[str, Any], autoreset: str
) -> VectorCase:
    return VectorCase(
        game=game,
        num_envs=2,
        steps=steps,
        seed=11,
        theirs=theirs,
        ours=ours,
        autoreset=autoreset,
    )


CASES: dict[str, tuple[str, int, dict[str, Any], dict[str, Any], str]] = {
    "same-step": ("breakout", 300, {}, {}, "same-step"),
    "sticky": ("berzerk", 300, {"repeat_action_probability": 0.25}, {"sticky": 0.25}, "next-step"),
    "full reset at a lost life": (
        "breakout",
        200,
        {"episodic_life": True},
        {"life_loss": "full-reset"},
        "next-step",
    ),
    "full reset in the same step": (
        "breakout",
        200,
        {"episodic_life": True},
        {"life_loss": "full-reset"},
        "same-step",
    ),
    "a lost life is told": (
        "breakout",
        200,
        {"life_loss_info": True},
        {"life_loss": "end-return"},
        "next-step",
    ),
    "limit within a step": (
        "seaquest",
        150,
        {"max_num_frames_per_episode": 203},
        {"episode_limit_frames": 203},
        "next-step",
    ),
    "skip 1": ("breakout", 800, {"frameskip": 1}, {"frame_skip": 1}, "next-step"),
    "skip 2": ("breakout", 500, {"frameskip": 2}, {"frame_skip": 2}, "next-step"),
    "skip 3": ("breakout", 400, {"frameskip": 3}, {"frame_skip": 3}, "next-step"),
    "no pooling": ("breakout", 300, {"maxpool": False}, {"pooling": "none"}, "next-step"),
    "no FIRE": ("qbert", 500, {"use_fire_reset": False}, {"fire_reset": "none"}, "next-step"),
    "all actions": (
        "breakout",
        300,
        {"full_action_space": True},
        {"full_action_space": True},
        "next-step",
    ),
    "colours": ("breakout", 200, {"grayscale": False}, {"colour": "rgb"}, "next-step"),
}


@pytest.mark.parametrize("case", CASES)
def test_options(case: str) -> None:
    outcome = vector_side_by_side.run(case_of(*CASES[case]))
    assert outcome.difference == ""
    assert outcome.ends > 0, "no end was compared"


def test_a_difference_is_found_and_named() -> None:
    case = VectorCase(game="pong", num_envs=2, steps=3, ours={"noop_max": 5})
    assert vector_side_by_side.run(case).difference.startswith("step 0: ")
