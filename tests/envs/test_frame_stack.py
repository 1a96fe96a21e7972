"""New stacks: filled with the frames of NOOP steps, also after a snapshot."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import scanline
from scanline import protocols
from scanline.envs.vector import EngineVectorEnv
from scanline.protocols import Protocol

MOVING = "qbert"
"""A game whose picture changes while nothing is pressed."""


def made(rules: Protocol, reset: str) -> EngineVectorEnv:
    # One cached start: a reset goes on from the RAM before it, so several would differ.
    return scanline.make(
        MOVING, 2, protocol=rules, seed=3, reset=reset, reset_cache_states=1, num_threads=1
    )


def played(envs: EngineVectorEnv, num_steps: int, seed: int) -> list[np.ndarray]:
    actions = np.random.default_rng(seed).integers(0, 4, (num_steps, 2))
    return [envs.step(row)[0] for row in actions]


@pytest.mark.parametrize("reset", ["ale", "cached"])
@pytest.mark.parametrize(("padding", "num_noops"), [("noop-steps", 4), ("start-and-noop-steps", 3)])
def test_a_new_stack_holds_the_frames_of_noop_steps(
    padding: Any, num_noops: int, reset: str
) -> None:
    """By definition: what the same steps, played as agent steps, would have left in the stack."""
    rules = protocols.get("paac").replace(noop_min=2)
    filled = made(rules.replace(stack_padding=padding), reset)
    plain = made(rules.replace(stack_padding="repeat"), reset)
    for episode in range(3):
        start, _ = filled.reset()
        plain.reset()
        steps = [plain.step(np.zeros(2, np.int64))[0] for _ in range(num_noops)]
        np.testing.assert_array_equal(start, steps[-1])
        assert len({frame.tobytes() for frame in start[0]}) > 1
        for one, other in zip(played(filled, 6, episode), played(plain, 6, episode), strict=True):
            np.testing.assert_array_equal(one, other)
    filled.close()
    plain.close()


@pytest.mark.parametrize("mode", ["next-step", "same-step"])
@pytest.mark.parametrize("num_steps", [0, 1, 2, 9, 10, 11])
def test_a_snapshot_of_a_young_stack_continues_exactly(num_steps: int, mode: str) -> None:
    rules = protocols.get("ga3c").replace(episode_limit_frames=40)
    one, other = (
        scanline.make(MOVING, 2, protocol=rules, seed=3, num_threads=1, autoreset_mode=mode)
        for _ in range(2)
    )
    one.reset()
    other.reset(seed=8)
    played(one, num_steps, 1)
    np.testing.assert_array_equal(other.restore(one.snapshot()), one.restore(one.snapshot()))
    for mine, theirs in zip(played(one, 14, 2), played(other, 14, 2), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    one.close()
    other.close()
