"""Protocol `envpool` against EnvPool, its draws of no-ops included.

Not reproduced: a frame skip of 1, where EnvPool pools every picture since the reset into one.
`make conformance` runs the same comparison over 57 games; here a few games and every option.
"""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("envpool", reason="EnvPool is the oracle")

import vector_side_by_side
from vector_side_by_side import VectorCase

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")

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
    game, steps, theirs, ours = CASES[case]
    outcome = vector_side_by_side.run(
        VectorCase(
            game=game, peer="envpool", num_envs=2, steps=steps, seed=5, theirs=theirs, ours=ours
        )
    )
    assert outcome.difference == ""
