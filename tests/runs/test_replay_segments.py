"""Segments come back in order and refuse what is damaged; a replay comes back from them whole."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from scanline.runs import replay_segments
from scanline.runs.checkpoint import CheckpointError, Checkpoints, CheckpointSettings
from scanline.runs.replay_segments import ReplayRows, Segments
from scanline.runs.state_files import DamagedFile
from scanline.stores import NStep, PrioritisedSampling, Replay, ReplaySettings, ReplayShape
from stores.recorded_games import Games, assert_batch_is_true, poison, spaces


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


NUM_ENVS, NUM_STEPS = 4, 3


def make(num_writers: int) -> Replay:
    shape = ReplayShape(num_envs=NUM_ENVS, rollout_agent_steps=NUM_STEPS, num_writers=num_writers)
    settings = ReplaySettings(
        capacity_agent_steps=20 * NUM_ENVS,
        batch_size=16,
        learning_starts_agent_steps=0,
        sampling=PrioritisedSampling(),
        accumulator=NStep(n_step=2),
    )
    replay = Replay(spaces(3), shape, settings, 7, None)
    poison(replay)
    return replay


def rows_of(replay: Replay, num_writers: int, folder: Path, games_go_on: bool = True) -> ReplayRows:
    streams = [Segments(folder, f"replay-{writer}") for writer in range(num_writers)]
    return ReplayRows(replay, streams, lambda: games_go_on)


def play(replay: Replay, games: Games, num_writers: int, num_slots: int) -> None:
    size = NUM_ENVS // num_writers
    for _ in range(num_slots):
        for writer in range(num_writers):
            envs = range(writer * size, (writer + 1) * size)
            replay.put(games.fill(replay.slot(writer), envs))
        replay.feedback(replay.sample(), torch.rand(16))


@pytest.mark.parametrize("num_writers", [1, 4])
@pytest.mark.parametrize("num_slots", [2, 5, 9], ids=["little", "much", "more than the ring holds"])
def test_a_replay_saved_often_comes_back_whole(
    tmp_path: Path, num_writers: int, num_slots: int
) -> None:
    replay, games = make(num_writers), Games(spaces(3), NUM_ENVS, seed=0)
    saved = rows_of(replay, num_writers, tmp_path)
    for _ in range(4):
        play(replay, games, num_writers, num_slots)
        state = saved.state()
    other = make(num_writers)
    rows_of(other, num_writers, tmp_path).load(state)
    for _ in range(5):
        mine, theirs = replay.sample(), other.sample()
        assert torch.equal(mine.observations, theirs.observations)
        assert torch.equal(mine.columns["reward"], theirs.columns["reward"])
        assert_batch_is_true(other, theirs, games)


def test_a_second_save_writes_new_rows_only(tmp_path: Path) -> None:
    replay, games = make(1), Games(spaces(3), NUM_ENVS, seed=0)
    saved = rows_of(replay, 1, tmp_path)
    play(replay, games, 1, 4)
    first = saved.state()["rows"][0]["files"]
    assert saved.state()["rows"][0]["files"] == first  # nothing new, nothing written
    play(replay, games, 1, 1)
    second = saved.state()["rows"][0]["files"]
    assert second[:-1] == first
    assert second[-1].num_rows == NUM_STEPS


def test_an_empty_replay_can_be_saved_and_loaded(tmp_path: Path) -> None:
    state = rows_of(make(1), 1, tmp_path).state()
    other = make(1)
    rows_of(other, 1, tmp_path).load(state)
    assert other.num_drawable == 0


def test_games_that_begin_anew_are_cut_off_from_what_was_stored(tmp_path: Path) -> None:
    replay, games = make(1), Games(spaces(3), NUM_ENVS, seed=0, end_chance=0.0)
    play(replay, games, 1, 4)
    state = rows_of(replay, 1, tmp_path).state()
    other = make(1)
    rows_of(other, 1, tmp_path, games_go_on=False).load(state)
    games.restart()
    play(other, games, 1, 3)
    for _ in range(5):
        assert_batch_is_true(other, other.sample(), games)


def test_segments_grow_between_checkpoints_and_come_back_whole(tmp_path: Path) -> None:
    replay, games = make(1), Games(spaces(3), NUM_ENVS, seed=0)
    streams = [Segments(tmp_path, "replay-0")]
    saved = ReplayRows(replay, streams, lambda: True, segment_rows=2 * NUM_STEPS)
    sizes = []
    for _ in range(5):
        play(replay, games, 1, 1)
        saved.grow()
        sizes.append(len(streams[0].files))
    assert sizes == [0, 1, 1, 2, 2] or sizes == [1, 1, 2, 2, 3]
    before = streams[0].next_row
    state = saved.state()
    assert streams[0].files[-1].first_row == before  # only what no segment had yet
    other = make(1)
    rows_of(other, 1, tmp_path).load(state)
    for _ in range(5):
        mine, theirs = replay.sample(), other.sample()
        assert torch.equal(mine.observations, theirs.observations)
        assert torch.equal(mine.indices, theirs.indices)


def test_many_rows_become_several_files_and_come_back_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay_segments, "MOST_BYTES_PER_SEGMENT", 700)
    replay, games = make(1), Games(spaces(3), NUM_ENVS, seed=0)
    play(replay, games, 1, 4)
    stream = Segments(tmp_path, "replay-0")
    state = ReplayRows(replay, [stream], lambda: True).state()
    assert len(stream.files) > 2
    assert all(0 < file.num_rows < replay.next_row() for file in stream.files)
    other = make(1)
    rows_of(other, 1, tmp_path).load(state)
    mine, theirs = replay.sample(), other.sample()
    assert torch.equal(mine.observations, theirs.observations)
