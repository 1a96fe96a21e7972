"""The rules that all engines share, against their definitions."""

from __future__ import annotations

import numpy as np
import pytest
import toys

from scanline import protocols
from scanline.engines.rules import StepRules
from scanline.records import Spaces

RAW = np.array([-3.0, -0.5, 0.0, 0.25, 7.0], np.float32)
SPACES = Spaces(frame_shape=(2, 2), frame_dtype="uint8", stack=3, num_actions=2)


@pytest.mark.parametrize(
    ("clip", "wanted"),
    [
        ("none", [-3.0, -0.5, 0.0, 0.25, 7.0]),
        ("sign", [-1.0, -1.0, 0.0, 1.0, 1.0]),
        ("clamp", [-1.0, -0.5, 0.0, 0.25, 1.0]),
    ],
)
def test_reward_clips(clip: str, wanted: list[float]) -> None:
    rules = StepRules(5, protocols.get("as-is").replace(reward_clip=clip), "same-step")
    out = toys.step_arrays(5, SPACES)
    out.raw_reward[:] = RAW
    out.terminated[:] = out.truncated[:] = False
    rules.stepped(slice(0, 5), out)
    np.testing.assert_array_equal(out.reward, np.array(wanted, np.float32))


def test_lives_may_rise_and_a_reset_is_no_lost_life() -> None:
    rules = StepRules(1, protocols.get("as-is"), "next-step")
    out = toys.step_arrays(1, SPACES)
    lost = []
    for lives, ended in [(3, 0), (2, 0), (4, 0), (3, 0), (0, 1), (1, 0), (0, 0)]:
        out.lives[:], out.terminated[:], out.truncated[:] = lives, ended, False
        rules.stepped(slice(0, 1), out)
        lost.append(bool(out.life_lost[0]))
    assert lost == [False, True, False, True, False, False, True]
