"""Progress: rows at fixed agent steps, equal for equal seeds, and exact over a resume."""

from __future__ import annotations

import json
import weakref
from pathlib import Path
from typing import Any

import pytest
import torch

from scanline.records import EpisodeEnd, Slot
from scanline.runs.checkpoint import Checkpoints, CheckpointSettings
from scanline.runs.clock import TimeSplit
from scanline.runs.progress import Progress, ProgressSettings
from scanline.stacks import SparseFrames

STEPS = 30
"""Agent steps per rollout; a row is due every 100, so rows lie at 120, 210, 300, ..."""


def slot(num_steps: int, num_envs: int, version: int) -> Slot:
    shape = (num_steps, num_envs)
    zeros, no = torch.zeros(shape), torch.zeros(shape, dtype=torch.bool)
    return Slot(
        frames=torch.empty(0),
        depth=torch.empty(0),
        actions=torch.zeros(shape, dtype=torch.int64),
        reward=zeros,
        raw_reward=zeros,
        terminated=no,
        truncated=no,
        life_lost=no,
        version=torch.full((num_steps,), version, dtype=torch.int64),
        columns={},
        finals=SparseFrames((), torch.uint8, 0),
        starts=SparseFrames((), torch.uint8, 0),
    )


def new_progress(**settings: Any) -> Progress:
    settings = {"log_every_agent_steps": 100, "tensorboard": False, **settings}
    return Progress(ProgressSettings(**settings), frame_skip=4, time_split=TimeSplit())


def rollout(progress: Progress) -> None:
    """One step of a made-up run: everything follows from the counters."""
    progress.count_slot(slot(5, 6, version=progress.updates))
    place = progress.agent_steps // STEPS
    ends = [EpisodeEnd(0, float(place), 7, place - 1)]
    progress.count_episodes(ends)
    for minibatch in range(2):
        loss = torch.tensor(0.1 * place + minibatch)
        progress.count_update({"policy_loss": loss, "perf/policy_lag": torch.tensor(minibatch)})
    progress.log({"charts/learning_rate": 1.0 / place})
    progress.write_row_if_due()


def rows(folder: Path, name: str = "progress.jsonl") -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / name).read_text().splitlines()]


def run(folder: Path, num_rollouts: int, progress: Progress | None = None) -> Progress:
    folder.mkdir(exist_ok=True)
    progress = progress or new_progress()
    progress.open(folder)
    for _ in range(num_rollouts):
        rollout(progress)
    progress.close()
    return progress


def test_a_row_holds_means_since_the_last_row(tmp_path: Path) -> None:
    progress = run(tmp_path, 7)
    assert [row["agent_steps"] for row in rows(tmp_path)] == [120, 210]
    row = rows(tmp_path)[1]
    assert row["raw_frames"] == 840
    assert row["updates"] == 14
    assert row["episodes"] == row["charts/episodes_counted"] == 7
    assert row["charts/episodic_return"] == 4.0
    assert row["charts/episodic_length"] == 7.0
    losses = [0.1 * place + m for place in (5, 6, 7) for m in (0, 1)]
    assert row["losses/policy_loss"] == pytest.approx(sum(losses) / 6)
    assert row["charts/learning_rate"] == pytest.approx(1 / 7)
    assert row["perf/policy_lag"] == pytest.approx((0 + 0 + 1) / 3)
    assert (progress.agent_steps, progress.raw_frames) == (210, 840)


def test_the_lag_is_updates_since_the_weights_that_acted(tmp_path: Path) -> None:
    progress = new_progress(log_every_agent_steps=1)
    progress.open(tmp_path)
    progress.updates = 10
    progress.count_slot(slot(4, 2, version=7))
    progress.write_row_if_due()
    progress.close()
    assert rows(tmp_path)[0]["perf/policy_lag"] == 3.0


def test_what_a_clock_measured_goes_beside_the_rates_and_never_into_a_row(tmp_path: Path) -> None:
    progress = new_progress(log_every_agent_steps=10)
    progress.open(tmp_path)
    for rates in ([2.0, 4.0], [7.0]):
        for rate in rates:
            progress.log_rates({"perf/predictions_per_second": rate})
        progress.advance(10)
        assert progress.figures()["perf/predictions_per_second"] == rates[-1]
        assert progress.write_row_if_due()
    progress.close()
    name = "perf/predictions_per_second"
    assert all(name not in row for row in rows(tmp_path))
    lines = (tmp_path / "rates.jsonl").read_text().splitlines()
    assert [json.loads(line)[name] for line in lines] == [3.0, 7.0]


def test_equal_runs_give_equal_bytes(tmp_path: Path) -> None:
    for name in "ab":
        run(tmp_path / name, 25)
    for file in ("progress.jsonl", "progress.csv"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


@pytest.mark.parametrize("saved_after", [0, 1, 3, 4, 5, 12])
@pytest.mark.parametrize("lost", [0, 1, 9])
def test_a_killed_and_resumed_run_leaves_the_same_bytes(
    tmp_path: Path, saved_after: int, lost: int
) -> None:
    run(tmp_path / "whole", 20)
    checkpoints = Checkpoints(tmp_path / "checkpoints", CheckpointSettings())
    folder = tmp_path / "resumed"
    first = run(folder, saved_after)
    checkpoints.save({"progress": first.state()}, first.agent_steps)
    run_on = new_progress()
    run_on.load(first.state())
    run(folder, lost, run_on)  # what was done after the checkpoint and is lost

    again = new_progress()
    checkpoint = checkpoints.latest()
    assert checkpoint is not None
    again.load(checkpoint.state["progress"])
    run(folder, 20 - saved_after, again)
    for file in ("progress.jsonl", "progress.csv"):
        assert (folder / file).read_bytes() == (tmp_path / "whole" / file).read_bytes()
    assert len(rows(folder, "rates.jsonl")) == len(rows(folder))


@pytest.mark.parametrize(
    ("every", "num_rollouts", "expected"),
    [
        (10_000, 20, [600]),
        (10_000, 400, [1_020, 2_010, 5_010, 10_020, 12_000]),
        (1_500, 60, [1_020, 1_500, 1_800]),
        (600, 60, [600, 1_200, 1_800]),
    ],
)
def test_a_short_run_has_early_rows_and_a_last_one(
    tmp_path: Path, every: int, num_rollouts: int, expected: list[int]
) -> None:
    progress = new_progress(log_every_agent_steps=every)
    progress.open(tmp_path)
    for _ in range(num_rollouts):
        rollout(progress)
    progress.write_last_row()
    progress.close()
    assert [row["agent_steps"] for row in rows(tmp_path)] == expected
    assert [row["agent_steps"] for row in rows(tmp_path, "rates.jsonl")] == expected


def test_the_last_row_of_a_run_that_goes_on_is_dropped(tmp_path: Path) -> None:
    ended = new_progress(log_every_agent_steps=10_000)
    ended.open(tmp_path)
    for _ in range(50):
        rollout(ended)
    ended.write_last_row()
    state = ended.state()
    ended.close()
    assert [row["agent_steps"] for row in rows(tmp_path)] == [1_020, 1_500]
    again = new_progress(log_every_agent_steps=10_000)
    again.load(state)
    run(tmp_path, 30, again)
    run(tmp_path / "whole", 80, new_progress(log_every_agent_steps=10_000))
    assert [row["agent_steps"] for row in rows(tmp_path)] == [1_020, 2_010]
    for file in ("progress.jsonl", "progress.csv"):
        assert (tmp_path / file).read_bytes() == (tmp_path / "whole" / file).read_bytes()


def test_rates_stay_out_of_the_rows(tmp_path: Path) -> None:
    run(tmp_path, 8)
    rate, row = rows(tmp_path, "rates.jsonl")[-1], rows(tmp_path)[-1]
    clocked = {"charts/SPS", "perf/frames_per_second", "perf/time_learning", "training_seconds"}
    assert clocked <= set(rate)
    assert not clocked & set(row)
    assert rate["perf/frames_per_second"] == pytest.approx(4 * rate["charts/SPS"])


def test_rates_leave_evaluation_out(tmp_path: Path) -> None:
    now_ns = [0]
    time_split = TimeSplit(lambda: now_ns[0])
    settings = ProgressSettings(log_every_agent_steps=10, tensorboard=False)
    progress = Progress(settings, frame_skip=4, time_split=time_split)
    progress.open(tmp_path)
    now_ns[0] += 2_000_000_000
    with time_split.during("evaluation"):
        now_ns[0] += 50_000_000_000
    progress.advance(10)
    progress.write_row_if_due()
    progress.close()
    assert rows(tmp_path, "rates.jsonl")[0]["charts/SPS"] == 5.0
    assert rows(tmp_path, "rates.jsonl")[0]["training_seconds"] == 2.0


def test_metrics_are_not_read_before_a_row_is_due(tmp_path: Path) -> None:
    meta = torch.empty((), device="meta")  # reading it would raise
    progress = new_progress()
    progress.open(tmp_path)
    progress.count_update({"loss": meta})
    progress.advance(99)
    assert not progress.write_row_if_due()
    progress.close()


def test_a_metric_keeps_neither_its_graph_nor_a_tensor_of_the_cpu() -> None:
    """Small tensors that live until a row split the heap: each update would take new memory."""
    progress = new_progress()
    metrics = {"loss": torch.ones((), requires_grad=True) * 2}
    kept = weakref.ref(metrics["loss"])
    progress.count_update(metrics)
    metrics.clear()
    assert kept() is None and progress._metrics["losses/loss"] == [2.0]


@pytest.mark.parametrize("setting", ["log_every_agent_steps", "score_window_episodes"])
def test_impossible_settings_are_refused_by_name(setting: str) -> None:
    with pytest.raises(ValueError, match=f"{setting}=0"):
        ProgressSettings(**{setting: 0})
