"""The rules that all engines share, against their definitions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import toys

from scanline import protocols
from scanline.engines import ProtocolRefusedError, interface
from scanline.engines.rules import StepRules
from scanline.protocols import Protocol
from scanline.records import Spaces

RAW = np.array([-3.0, -0.5, 0.0, 0.25, 7.0], np.float32)
SPACES = Spaces(frame_shape=(2, 2), frame_dtype="uint8", stack=3, num_actions=2)
GAMES = {"native": "breakout", "ale": "breakout", "gymnasium": "scanline/Catch-v0"}
BASES = {"native": "baselines", "ale": "ale-vector", "gymnasium": "as-is"}
GIVEN = ["noop-steps", "start-and-noop-steps"]
HONOURED = [
    (engine, rule)
    for engine in GAMES
    for rule in protocols.StackPadding.__args__
    if engine == "native" or rule not in GIVEN
]


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


@pytest.mark.parametrize("padding", GIVEN)
@pytest.mark.parametrize("options", [{}, {"num_groups": 2}, {"autoreset": "next-step"}])
def test_start_frames_are_written_where_a_stack_begins(
    padding: Any, options: dict[str, Any]
) -> None:
    rules = protocols.get("paac").replace(stack_padding=padding, episode_limit_frames=40)
    engine = toys.build("native", "qbert", protocol=rules, num_envs=4, seed=3, **options)
    drawn = toys.random_actions(30, 4, engine.spaces.num_actions)
    data = toys.record(engine, drawn)
    early = toys.record(engine, drawn, tells_early=True)
    engine.close()
    for found in (data, early):
        written = (found["start_frames"] != toys.POISON).any(axis=(2, 3, 4))
        np.testing.assert_array_equal(written, found["depth"] == 1)
        assert written.sum() > 4
