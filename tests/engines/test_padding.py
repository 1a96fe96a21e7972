"""What fills the stack after a reset: described by every engine, given by `make`, or refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import toys

import scanline
from scanline import protocols
from scanline.engines import ProtocolRefusedError, interface
from scanline.envs.vector import EngineVectorEnv
from scanline.protocols import Protocol

GAMES = {"native": "breakout", "ale": "breakout", "gymnasium": "scanline/Catch-v0"}
BASES = {"native": "baselines", "ale": "ale-vector", "gymnasium": "as-is"}
MOVING = "qbert"
"""A game whose picture changes while nothing is pressed."""
GIVEN = ["noop-steps", "start-and-noop-steps"]
HONOURED = [
    (engine, rule)
    for engine in GAMES
    for rule in protocols.StackPadding.__args__
    if engine == "native" or rule not in GIVEN
]


def rules_of(engine: str, padding: Any, **changes: Any) -> Protocol:
    return protocols.get(BASES[engine]).replace(stack=4, stack_padding=padding, **changes)


@pytest.mark.parametrize(("engine", "padding"), HONOURED)
def test_an_engine_describes_the_padding_of_its_protocol(engine: str, padding: str) -> None:
    made = toys.build(engine, GAMES[engine], protocol=rules_of(engine, padding), num_envs=1)
    assert made.spaces.stack_padding == padding
    assert made.spaces.num_start_frames == (3 if padding in GIVEN else 0)
    made.close()


def test_spaces_come_from_one_function() -> None:
    folder = Path(interface.__file__).parent
    makers = [path.name for path in sorted(folder.glob("*.py")) if " Spaces(" in path.read_text()]
    assert makers == ["rules.py"]


@pytest.mark.parametrize("padding", GIVEN)
@pytest.mark.parametrize("engine", ["ale", "gymnasium"])
def test_other_engines_refuse_noop_steps_with_a_sentence(engine: str, padding: str) -> None:
    with pytest.raises(ProtocolRefusedError) as refusal:
        toys.build(engine, GAMES[engine], protocol=rules_of(engine, padding), num_envs=1)
    assert f"cannot honour stack_padding='{padding}'" in str(refusal.value)
    assert refusal.value.nearest == BASES[engine]


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


@pytest.mark.parametrize("padding", GIVEN)
@pytest.mark.parametrize("options", [{}, {"num_groups": 2}, {"autoreset": "next-step"}])
def test_start_frames_are_written_where_a_stack_begins(
    padding: Any, options: dict[str, Any]
) -> None:
    rules = protocols.get("paac").replace(stack_padding=padding, episode_limit_frames=40)
    engine = toys.build("native", MOVING, protocol=rules, num_envs=4, seed=3, **options)
    drawn = toys.random_actions(30, 4, engine.spaces.num_actions)
    data = toys.record(engine, drawn)
    early = toys.record(engine, drawn, tells_early=True)
    engine.close()
    for found in (data, early):
        written = (found["start_frames"] != toys.POISON).any(axis=(2, 3, 4))
        np.testing.assert_array_equal(written, found["depth"] == 1)
        assert written.sum() > 4
