"""A disk that is full, and a folder that is removed while a run writes to it: one sentence, exit
code 2, and the checkpoint before it intact."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import small_disk
from scanline import cli
from scanline.runs.checkpoint import load_latest

CATCH = "scanline/Catch-v0"
NEVER = "1000000000"
COMMON = ["--network=mlp", "--num-workers=0", "--torch-threads=1", "--no-live", "--num-envs=4"]
REPLAY = ["--capacity-agent-steps=2000", "--batch-size=8", "--learning-starts-agent-steps=40"]
WRITERS = {
    "log rows": ["a2c", "--log-every-agent-steps=40"],
    "log rows without TensorBoard": ["a2c", "--log-every-agent-steps=40", "--no-tensorboard"],
    "checkpoints": ["a2c"],
    "evaluations": ["a2c", "--evaluate-every-agent-steps=40", "--pause-games=1"],
    "a replay's segments": ["dqn", *REPLAY, "--replay-segment-agent-steps=40"],
}
"""Which writer is busy after the first checkpoint; the others are left with little to do."""


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk.mounted(tmp_path / "disk", "16m") as folder:
        yield folder


def once_saved(out: Path, act: Callable[[], None]) -> threading.Thread:
    """Does something as soon as the run has a checkpoint."""

    def wait() -> None:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not list(out.glob("checkpoints/0*")):
            time.sleep(0.005)
        act()

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


def train(out: Path, words: list[str], *more: str) -> int:
    recipe, *own = words
    given = ["--log-every-agent-steps", NEVER, "--save-every-agent-steps=100", *own]
    limits = ["--agent-steps=100000", "--seconds=60"]
    return cli.main(["train", recipe, CATCH, "--out", str(out), *COMMON, *given, *limits, *more])


def sentence(capsys: pytest.CaptureFixture[str]) -> str:
    """The one thing that the command said; ffmpeg says more, behind brackets."""
    (last,) = [line for line in capsys.readouterr().err.splitlines() if "[" not in line[:1]]
    assert last.startswith("scanline: Could not write ")
    return last


@pytest.mark.parametrize("writer", WRITERS)
def test_a_full_disk_is_a_sentence_and_the_run_goes_on_later(
    disk: Path, writer: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out = disk / "run"
    thread = once_saved(out, lambda: small_disk.fill(disk))
    assert train(out, WRITERS[writer]) == 2
    thread.join()
    assert "the disk is full; " in sentence(capsys)
    saved = load_latest(out / "checkpoints")
    assert saved.agent_steps > 0
    assert not list(out.rglob(".writing-*"))
    small_disk.free(disk)
    enough = f"--agent-steps={saved.agent_steps + 100}"
    assert train(out, WRITERS[writer], enough, "--resume") == 0
    assert load_latest(out / "checkpoints").agent_steps >= saved.agent_steps + 100


@pytest.mark.parametrize("writer", WRITERS)
def test_a_folder_that_is_removed_is_a_sentence_and_not_made_anew(
    tmp_path: Path, writer: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"

    def remove() -> None:
        while out.exists():
            shutil.rmtree(out, ignore_errors=True)

    thread = once_saved(out, remove)
    assert train(out, WRITERS[writer]) == 2
    thread.join()
    assert "its folder was removed while the run wrote to it; start again." in sentence(capsys)
    assert not out.exists()


def test_a_run_that_cannot_begin_is_a_sentence(
    disk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small_disk.fill(disk)
    assert train(disk / "run", ["a2c"]) == 2
    assert "the disk is full; choose another folder with --out." in sentence(capsys)


def test_a_report_that_does_not_fit_is_a_sentence(
    disk: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    assert train(out, ["a2c"], "--agent-steps=100") == 0
    small_disk.fill(disk)
    assert cli.main(["report", str(out), "--out", str(disk / "page.html")]) == 2
    assert "the report: the disk is full; choose another place" in sentence(capsys)
    assert [path.name for path in disk.iterdir()] == [small_disk.FILLER]


@pytest.mark.usefixtures("pages")
def test_a_page_that_does_not_fit_at_the_end_costs_no_run(
    disk: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk is filled by the last word of the run, right before its page is written."""
    from scanline.runs.live import LiveView

    monkeypatch.setattr(LiveView, "finish", lambda *given: small_disk.fill(disk))
    with pytest.warns(UserWarning, match="No report was written"):
        assert train(disk / "run", ["a2c"], "--agent-steps=100") == 0
    assert load_latest(disk / "run" / "checkpoints").agent_steps >= 100


def test_a_film_that_does_not_fit_is_a_sentence(
    disk: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    assert train(out, ["a2c"], "--agent-steps=100") == 0
    small_disk.fill(disk)
    assert cli.main(["play", str(out), "--out", str(disk), "--most-agent-steps=20"]) == 2
    assert "choose another folder with --out" in sentence(capsys)
