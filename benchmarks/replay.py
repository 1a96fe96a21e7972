"""Microseconds per drawn batch and bytes per stored step of a replay of Atari frames.

Takes the number of stored steps; prints one line per rule, n-step and batch size. With a folder it
measures checkpoints of a full replay instead: the first, and one after some more steps. Run alone:

    python benchmarks/replay.py [steps [folder]]

Frames are random bytes, so no page is shared and every read goes to memory as in a real run.
"""

from __future__ import annotations

import statistics
import sys
import time
from pathlib import Path

import torch

from scanline.records import Experience, Spaces
from scanline.runs.checkpoint import Checkpoints, CheckpointSettings
from scanline.runs.replay_segments import ReplayRows
from scanline.stores import (
    NStep,
    PrioritisedSampling,
    Replay,
    ReplaySettings,
    ReplayShape,
    Sampling,
    UniformSampling,
)

ATARI = Spaces(frame_shape=(84, 84), frame_dtype="uint8", stack=4, num_actions=6)


def resident_bytes() -> int:
    """Memory of this process in RAM; Linux only."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def fill(replay: Replay, num_steps: int) -> float:
    """Writes steps of long episodes; gives microseconds per step of `put` alone."""
    slot = replay.slot()
    slot.frames.random_(0, 256)
    slot.depth.fill_(4)
    begin = time.perf_counter()
    for _ in range(0, num_steps, slot.actions.numel()):
        replay.put(Experience(slot))
    return (time.perf_counter() - begin) / num_steps * 1e6


def microseconds(replay: Replay, batch_size: int, num_batches: int) -> tuple[float, float]:
    """Medians of a draw and of a feedback."""
    draws, feedbacks = [], []
    priorities = torch.rand(batch_size)
    for _ in range(num_batches):
        start = time.perf_counter()
        batch = replay.sample()
        middle = time.perf_counter()
        replay.feedback(batch, priorities)
        draws.append(middle - start)
        feedbacks.append(time.perf_counter() - middle)
    return statistics.median(draws) * 1e6, statistics.median(feedbacks) * 1e6


def measure(num_steps: int, rule: Sampling, n_step: int, batch_size: int) -> None:
    settings = ReplaySettings(
        capacity_agent_steps=num_steps,
        batch_size=batch_size,
        sampling=rule,
        accumulator=NStep(n_step=n_step),
    )
    before = resident_bytes()
    shape = ReplayShape(num_envs=8, rollout_agent_steps=4)
    replay = Replay(ATARI, shape, settings, 0)
    first, put = fill(replay, num_steps + 64), fill(replay, num_steps)
    draw, feedback = microseconds(replay, batch_size, 400 if batch_size <= 64 else 100)
    per_step = (resident_bytes() - before) / num_steps
    print(
        f"{type(rule).__name__:20} n={n_step} batch={batch_size:4}: draw {draw:7.0f} us, "
        f"feedback {feedback:5.0f} us, "
        f"put {put:4.1f} us/step (first time round {first:4.1f}), {per_step:6.0f} bytes/step"
    )


def checkpoints(num_steps: int, folder: Path) -> None:
    """Seconds and bytes of saving and loading a full replay, through the session's own parts."""
    before = resident_bytes()
    replay = make(num_steps)
    fill(replay, num_steps + 64)
    taken = resident_bytes() - before
    print(f"{num_steps:,} steps: {taken / 1e9:.2f} GB in memory")
    saves = Checkpoints(folder, CheckpointSettings(keep_checkpoints=2))
    rows = ReplayRows(replay, [saves.segments("replay-0")], games_go_on=True)
    for words, new_steps in (("first checkpoint", 32), ("after 20,000 steps more", 20_000)):
        fill(replay, new_steps)
        begun = time.perf_counter()
        saves.save({"store": rows.state()}, new_steps)
        on_disk = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        print(f"{words}: {time.perf_counter() - begun:.1f} s, {on_disk / 1e9:.2f} GB on the disk")
    del replay, rows
    begun, other = time.perf_counter(), make(num_steps)
    again = Checkpoints(folder, CheckpointSettings(keep_checkpoints=2))
    found = again.latest()
    assert found is not None
    ReplayRows(other, [again.segments("replay-0")], True).load(found.state["store"])
    print(f"loading it, hashes checked: {time.perf_counter() - begun:.1f} s")


def make(num_steps: int) -> Replay:
    settings = ReplaySettings(capacity_agent_steps=num_steps)
    shape = ReplayShape(num_envs=8, rollout_agent_steps=4)
    return Replay(ATARI, shape, settings, 0)


def main() -> None:
    num_steps = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    if len(sys.argv) > 2:
        checkpoints(num_steps, Path(sys.argv[2]))
        return
    for batch_size in (32, 512):
        measure(num_steps, UniformSampling(), 1, batch_size)
        measure(num_steps, PrioritisedSampling(), 3, batch_size)


if __name__ == "__main__":
    main()
