"""Segments come back in order, drop from the old end, and refuse what is damaged."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from scanline.runs.checkpoint import CheckpointError, Checkpoints, CheckpointSettings
from scanline.runs.segments import DamagedFile, Segments


def rows(first: int, num: int) -> dict[str, torch.Tensor | np.ndarray]:
    return {
        "frames": torch.arange(first, first + num, dtype=torch.uint8)[:, None].repeat(1, 3),
        "rewards": np.arange(first, first + num, dtype=np.float32),
    }


def read_rewards(segments: Segments) -> list[float]:
    return [float(r) for _, columns in segments.read() for r in columns["rewards"]]


def test_rows_come_back_in_order(tmp_path: Path) -> None:
    written = Segments(tmp_path, "replay")
    for first, num in ((0, 3), (3, 1), (4, 5)):
        written.append(rows(first, num))
    again = Segments(tmp_path, "replay")
    again.load(written.state())
    assert read_rewards(again) == list(map(float, range(9)))
    assert [first for first, _ in again.read()] == [0, 3, 4]
    assert (again.first_row, again.next_row) == (0, 9)
    again.append(rows(9, 2))
    assert read_rewards(again)[-2:] == [9.0, 10.0]


def test_a_file_is_dropped_when_all_its_rows_are_old(tmp_path: Path) -> None:
    segments = Segments(tmp_path, "replay")
    segments.append(rows(0, 4))
    segments.append(rows(4, 4))
    segments.drop_before(3)
    assert segments.first_row == 0
    segments.drop_before(4)
    assert segments.first_row == 4
    segments.drop_before(100)
    assert (segments.first_row, segments.next_row) == (8, 8)


def test_columns_of_unequal_length_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="equally many rows"):
        Segments(tmp_path, "replay").append({"a": torch.ones(2), "b": torch.ones(3)})


def test_a_damaged_segment_is_named(tmp_path: Path) -> None:
    segments = Segments(tmp_path, "replay")
    file = segments.append(rows(0, 4))
    data = bytearray((tmp_path / file.name).read_bytes())
    data[-1] ^= 1
    (tmp_path / file.name).write_bytes(data)
    with pytest.raises(DamagedFile, match=f"{file.name} does not match its hash"):
        list(segments.read())
    (tmp_path / file.name).write_bytes(data[:-1])
    with pytest.raises(DamagedFile, match=f"has {len(data) - 1} bytes instead of {len(data)}"):
        list(segments.read())


def files_in(folder: Path) -> set[str]:
    return {path.name for path in (folder / "segments").iterdir()}


def test_checkpoints_share_segments_and_remove_those_nobody_refers_to(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, CheckpointSettings(keep_checkpoints=2))
    replay = checkpoints.segments("replay")
    kept = []
    for step in range(5):
        kept.append(replay.append(rows(4 * step, 4)).name)
        replay.drop_before(4 * step - 3)  # capacity of two files
        checkpoints.save({"replay": replay.state()}, step)
    assert files_in(tmp_path) == set(kept[2:])  # the last two checkpoints need three files

    pending = replay.append(rows(20, 4)).name
    checkpoints.save({"other": 1}, 9)
    assert pending in files_in(tmp_path)  # written ahead of its checkpoint


def test_segments_that_no_checkpoint_names_are_removed_at_the_next_start(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, CheckpointSettings())
    replay = checkpoints.segments("replay")
    replay.append(rows(0, 4))
    checkpoints.save({"replay": replay.state()}, 1)
    lost = replay.append(rows(4, 4)).name  # killed before the next checkpoint
    (tmp_path / "segments" / ".writing-x").write_bytes(b"half")

    resumed = Checkpoints(tmp_path, CheckpointSettings())
    assert lost not in files_in(tmp_path)
    assert len(files_in(tmp_path)) == 1
    again = resumed.segments("replay")
    checkpoint = resumed.latest()
    assert checkpoint is not None
    again.load(checkpoint.state["replay"])
    assert read_rewards(again) == [0.0, 1.0, 2.0, 3.0]


def test_a_checkpoint_without_one_of_its_segments_is_damaged(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, CheckpointSettings())
    replay = checkpoints.segments("replay")
    file = replay.append(rows(0, 4))
    checkpoints.save({"replay": replay.state()}, 1)
    (tmp_path / "segments" / file.name).unlink()
    with pytest.raises(CheckpointError, match=file.name):
        checkpoints.latest()
