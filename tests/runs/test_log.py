"""Log files: cut back, widened and closed so that their bytes depend on their rows only."""

from __future__ import annotations

import json
import resource
import shutil
import threading
from pathlib import Path

import pytest

from scanline.files import DiskError
from scanline.runs.log import RunLog
from scanline.runs.loggers import TensorBoard


def write(folder: Path, first: int, last: int, late: int = 3) -> None:
    """Rows first..last-1; a column `losses/x` appears at row `late`."""
    files = RunLog(folder, first)
    for place in range(first, last):
        row: dict[str, float | int | None] = {"agent_steps": place * 10, "score": place / 3}
        if place >= late:
            row["losses/x"] = None if place == late else place
        files.write(row, {"agent_steps": place * 10, "charts/SPS": 1.0})
    files.close()


def logs(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_the_table_is_the_rows(tmp_path: Path) -> None:
    write(tmp_path, 0, 6)
    lines = (tmp_path / "progress.csv").read_text().splitlines()
    assert lines[0] == "agent_steps,score,losses/x"
    assert lines[1:4] == ["0,0.0,", f"10,{1 / 3},", f"20,{2 / 3},"]
    assert lines[4:] == ["30,1.0,", f"40,{4 / 3},4", f"50,{5 / 3},5"]
    rows = [json.loads(line) for line in (tmp_path / "progress.jsonl").read_text().splitlines()]
    assert [row["agent_steps"] for row in rows] == [0, 10, 20, 30, 40, 50]


@pytest.mark.parametrize("num_rows", [0, 1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("tail", [b"", b'{"agent_steps": 60, "sc', b"\x00\x00\n"])
def test_a_cut_and_continued_log_has_the_bytes_of_an_uninterrupted_one(
    tmp_path: Path, num_rows: int, tail: bytes
) -> None:
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    whole.mkdir()
    cut.mkdir()
    write(whole, 0, 6)
    write(cut, 0, 6)
    for name in ("progress.jsonl", "rates.jsonl", "progress.csv"):
        with open(cut / name, "ab") as file:
            file.write(tail)
    write(cut, num_rows, 6)
    assert logs(cut) == logs(whole)


def test_lost_rows_are_told(tmp_path: Path) -> None:
    write(tmp_path, 0, 2)
    (tmp_path / "rates.jsonl").write_bytes(b"")
    with pytest.warns(UserWarning, match=r"rates\.jsonl holds 0 rows .* counts 2"):
        RunLog(tmp_path, 2).close()


def test_a_row_without_its_line_end_is_no_row(tmp_path: Path) -> None:
    write(tmp_path, 0, 2)
    path = tmp_path / "progress.jsonl"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.warns(UserWarning, match=r"progress\.jsonl holds 1 rows .* counts 2"):
        RunLog(tmp_path, 2).close()
    assert path.read_bytes().endswith(b"}\n")


def test_tensorboard_shows_one_curve_after_a_resume(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    for first, value in ((0, 1.0), (2, 5.0)):
        files = RunLog(tmp_path, first, [TensorBoard()])
        for place in range(first, 4):
            row = {"agent_steps": place * 10, "losses/x": value + place, "score": None}
            files.write(row, {"agent_steps": place * 10, "charts/SPS": 2.0})
        files.close()
    events = EventAccumulator(str(tmp_path)).Reload()
    assert events.Tags()["scalars"] == ["losses/x", "charts/SPS"]
    curve = [(e.step, e.value) for e in events.Scalars("losses/x")]
    assert curve == [(0, 1.0), (10, 2.0), (20, 7.0), (30, 8.0)]


def test_a_refused_row_is_one_sentence_and_the_files_close(tmp_path: Path) -> None:
    files = RunLog(tmp_path, 0)
    files.write({"agent_steps": 1}, {"agent_steps": 1})
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        with pytest.raises(DiskError, match=r"log files in .*: the file exceeds .*; free some"):
            files.write({"agent_steps": 2, "x" * 200: 1}, {"agent_steps": 2})
        files.close()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    write(tmp_path, 1, 3)
    assert len((tmp_path / "progress.jsonl").read_text().splitlines()) == 3


def write_many(files: RunLog) -> None:
    for step in range(1_000):
        files.write({"agent_steps": step, "x": 1}, {"agent_steps": step, "y": 1.5})


def test_an_event_that_does_not_fit_is_one_sentence_from_this_thread(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The event file holds what the others hold, so it reaches a limit of their size first."""
    threads = threading.active_count()
    files = RunLog(tmp_path, 0, [TensorBoard()])
    assert threading.active_count() == threads, "no writer that could fail unseen"
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2_000, before[1]))
    try:
        with pytest.raises(DiskError, match=r"log files in .*: the file exceeds"):
            write_many(files)
        files.close()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    (events,) = tmp_path.glob("events*")
    assert events.stat().st_size == 2_000 > (tmp_path / "progress.jsonl").stat().st_size
    assert "Traceback" not in capfd.readouterr().err


def test_files_that_were_removed_are_noticed_with_the_next_row(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    files = RunLog(folder, 0, [TensorBoard()])
    files.write({"agent_steps": 1}, {"agent_steps": 1})
    shutil.rmtree(folder)
    with pytest.raises(DiskError, match=r"its folder was removed while the run wrote to it; start"):
        files.write({"agent_steps": 2}, {"agent_steps": 2})
    files.close()
    assert not folder.exists()
