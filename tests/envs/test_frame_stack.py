"""Stacks: built by the engine's threads as by NumPy, filled with the frames of NOOP steps, and
continued after a snapshot."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import scanline
from scanline import engines, protocols
from scanline.engines import EngineSettings
from scanline.engines.interface import StackingEngine
from scanline.engines.wrapped import PausableEngine
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


LIVELY = "breakout"
"""A game whose lives random actions lose."""
RULES = {
    **{name: protocols.get(name) for name in protocols.PRESETS if name != "as-is"},
    "ram": protocols.get("baselines").replace(obs_type="ram"),
    "one frame": protocols.get("ale-vector").replace(stack=1),
    "two of NOOP steps": protocols.get("paac").replace(stack=2),
}


def by_threads_and_by_numpy(**settings: Any) -> tuple[EngineVectorEnv, EngineVectorEnv]:
    """Equal environments: stacks are built by the engine's threads, and by NumPy."""
    own = EngineSettings(game=LIVELY, num_envs=6, seed=5, num_threads=3, **settings)
    threads = engines.build("native", own)
    plain = PausableEngine(engines.build("native", own), lambda: False)
    assert isinstance(threads, StackingEngine)
    assert not isinstance(plain, StackingEngine)
    return EngineVectorEnv(threads), EngineVectorEnv(plain)


def assert_equal_results(one: Any, other: Any) -> None:
    for mine, theirs in zip(one[:4], other[:4], strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert one[4].keys() == other[4].keys()
    if "final_obs" in one[4]:
        np.testing.assert_array_equal(one[4]["final_obs"], other[4]["final_obs"])


@pytest.mark.parametrize(
    ("mode", "reset", "num_groups"), [("same-step", "cached", 1), ("next-step", "ale", 2)]
)
@pytest.mark.parametrize("name", RULES)
def test_threads_build_the_same_stacks_as_numpy(
    name: str, mode: Any, reset: Any, num_groups: int
) -> None:
    rules = RULES[name].replace(episode_limit_frames=150)
    one, other = by_threads_and_by_numpy(
        protocol=rules, autoreset=mode, reset=reset, reset_cache_states=4, num_groups=num_groups
    )
    np.testing.assert_array_equal(one.reset()[0], other.reset()[0])
    random, num_actions = np.random.default_rng(1), one.engine.spaces.num_actions
    kept, ends = [], 0
    for step in range(60):
        actions = random.integers(0, num_actions, 6)
        results = one.step(actions), other.step(actions)
        assert_equal_results(*results)
        kept.append((results[0][0], results[0][0].copy()))
        ends += int(results[0][2].any() or results[0][3].any())
        if step == 30:
            np.testing.assert_array_equal(
                one.restore(other.snapshot()), other.restore(one.snapshot())
            )
    assert ends
    for given, then in kept:
        np.testing.assert_array_equal(given, then)
    one.close()
    other.close()


@pytest.mark.parametrize("gaps", [False, True])
def test_threads_write_into_the_callers_arrays(gaps: bool) -> None:
    one, other = by_threads_and_by_numpy(protocol=protocols.get("ale-vector"), num_groups=2)
    one.reset()
    other.reset()
    out = one.buffers()
    if gaps:  # not in one piece: built elsewhere, and copied
        wide = np.zeros((6, 8, *out.observations.shape[2:]), np.uint8)
        out = out._replace(observations=wide[:, ::2])
    random = np.random.default_rng(2)
    for _ in range(20):
        actions = random.integers(0, 4, 6)
        given = one.step(actions, out)
        assert given[0] is out.observations
        assert_equal_results(given, other.step(actions))
    one.send(actions)
    other.send(actions)
    theirs = {result[4]["env_id"][0]: result for result in (other.recv(), other.recv())}
    for _ in range(2):
        out = one.buffers(3)
        mine = one.recv(out)
        assert mine[0] is out.observations
        assert_equal_results(mine, theirs[mine[4]["env_id"][0]])
    one.close()
    other.close()
