"""The memory of a replay: by arithmetic, by measurement, and what fits."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import scanline
from scanline.records import Spaces
from scanline.stores import (
    NStep,
    PrioritisedSampling,
    ReplaySettings,
    ReplayShape,
    replay_memory,
)

ATARI = Spaces(frame_shape=(84, 84), frame_dtype="uint8", stack=4, num_actions=18)


@pytest.mark.parametrize(
    "shape",
    [
        ReplayShape(num_envs=1, rollout_agent_steps=4),
        ReplayShape(num_envs=8, rollout_agent_steps=1, num_writers=8, staged_agent_steps=10_000),
        ReplayShape(num_envs=32, rollout_agent_steps=4),
        ReplayShape(num_envs=256, rollout_agent_steps=4),
    ],
    ids=str,
)
def test_a_million_frames_take_at_most_seven_and_a_half_gigabytes(shape: ReplayShape) -> None:
    rainbow = ReplaySettings(
        batch_size=512, sampling=PrioritisedSampling(), accumulator=NStep(n_step=3)
    )
    needed = replay_memory(ATARI, shape, rainbow).num_bytes
    assert 1_000_000 * 84 * 84 < needed <= 7.5e9


MEASURE = """
import os
from pathlib import Path
from scanline.records import Experience, Spaces
from scanline.stores import *

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

spaces = Spaces(frame_shape=(84, 84), frame_dtype="uint8", stack=4, num_actions=18)
shape = ReplayShape(num_envs=8, rollout_agent_steps=10)
settings = ReplaySettings(capacity_agent_steps=20_000, sampling=PrioritisedSampling())
before = resident()
replay = Replay(spaces, shape, settings, 0)
replay.put(Experience(replay.slot()))
replay.sample()
empty = resident() - before
for _ in range(300):
    replay.put(Experience(replay.slot()))
replay.sample()
print(replay_memory(spaces, shape, settings).num_bytes, empty, resident() - before)
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads Linux's /proc")
def test_measured_memory_is_what_was_said_and_is_taken_as_it_fills() -> None:
    source = str(Path(scanline.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", MEASURE],
        env={**os.environ, "PYTHONPATH": source},
        capture_output=True,
        text=True,
        check=True,
    )
    said, empty, full = map(int, done.stdout.split())
    assert empty < 0.2 * said
    # Libraries that the first use of torch and NumPy loads are counted too: 6 to 10 MB here.
    assert 0.95 * said < full < said + 16e6


def test_the_remedy_names_the_capacity_that_fits() -> None:
    shape = ReplayShape(num_envs=2, rollout_agent_steps=4)
    share = replay_memory(ATARI, shape, ReplaySettings())
    assert share.what == "A replay of 1,000,000 steps as it fills"
    fitting = re.search(r"at most ([\d,]+)", share.remedy(10e6))
    assert fitting
    steps = int(fitting[1].replace(",", ""))
    taken = [
        replay_memory(ATARI, shape, ReplaySettings(capacity_agent_steps=steps + more)).num_bytes
        for more in (0, 2)
    ]
    assert taken[0] <= 10e6 < taken[1]


@pytest.mark.parametrize("limit", [3_000_000, 8_000_001, 50_000_000])
def test_a_capacity_in_bytes_is_used_up_and_not_exceeded(limit: int) -> None:
    shape = ReplayShape(num_envs=3, rollout_agent_steps=4)
    rule = PrioritisedSampling()
    in_bytes = ReplaySettings(capacity_bytes=limit, sampling=rule)
    taken = replay_memory(ATARI, shape, in_bytes).num_bytes
    assert limit - 3 * 8000 < taken <= limit
    steps = (limit - 2_000_000) // 8000
    smaller = ReplaySettings(capacity_agent_steps=steps)
    assert replay_memory(ATARI, shape, smaller).num_bytes < taken


def test_a_capacity_without_room_for_a_slot_is_refused() -> None:
    shape = ReplayShape(num_envs=8, rollout_agent_steps=4)
    with pytest.raises(ValueError, match="capacity_agent_steps=32 leaves 4 steps"):
        replay_memory(ATARI, shape, ReplaySettings(capacity_agent_steps=32))
    with pytest.raises(ValueError, match="capacity_bytes=1000 leaves 0 steps"):
        replay_memory(ATARI, shape, ReplaySettings(capacity_bytes=1000))


@pytest.mark.parametrize(
    "wrong",
    [
        {"batch_size": 0},
        {"capacity_agent_steps": 0},
        {"capacity_bytes": -1},
        {"training_intensity": -1.0},
        {"learning_starts_agent_steps": -1},
        {"flush": "never"},
    ],
)
def test_settings_out_of_range_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        ReplaySettings(**wrong)  # type: ignore[arg-type]


def test_environments_that_do_not_divide_among_writers_are_refused() -> None:
    with pytest.raises(ValueError, match="num_writers=2"):
        ReplayShape(num_envs=3, rollout_agent_steps=1, num_writers=2)
