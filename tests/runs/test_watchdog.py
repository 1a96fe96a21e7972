"""The watchdog tells of a run that stands still, and of no other."""

from __future__ import annotations

import shutil
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from scanline.runs.watchdog import REPORT, Watchdog, WatchdogSettings


def waits_here(seconds: float) -> None:
    time.sleep(seconds)


def test_a_stuck_run_leaves_its_stacks_once_and_the_name_of_the_part(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    settings = WatchdogSettings(stuck_seconds=0.3)
    with Watchdog(tmp_path, settings, position=lambda: 7, part=lambda: "environment"):
        waits_here(1.5)
    report = (tmp_path / REPORT).read_text()
    assert report.count("No progress for") == 1
    assert "the part that runs is: environment." in report
    assert "in waits_here" in report
    assert "stuck.txt" in capfd.readouterr().err


def test_a_run_that_moves_leaves_nothing(tmp_path: Path) -> None:
    settings = WatchdogSettings(stuck_seconds=1.0)
    with Watchdog(tmp_path, settings, position=time.monotonic, part=lambda: "x"):
        time.sleep(1.6)
    assert list(tmp_path.iterdir()) == []


def test_it_can_be_switched_off(tmp_path: Path) -> None:
    with Watchdog(
        tmp_path, WatchdogSettings(stuck_seconds=0), position=lambda: 0, part=lambda: "x"
    ):
        assert list(tmp_path.iterdir()) == []
    with pytest.raises(ValueError, match="stuck_seconds=-1"):
        WatchdogSettings(stuck_seconds=-1)


def test_a_native_call_that_holds_the_interpreter_is_seen_as_well(tmp_path: Path) -> None:
    script = """
        import ctypes, sys, time
        from pathlib import Path
        from scanline.runs.watchdog import Watchdog, WatchdogSettings

        settings = WatchdogSettings(stuck_seconds=0.8)
        with Watchdog(Path(sys.argv[1]), settings, position=lambda: 0, part=lambda: "x"):
            time.sleep(0.3)
            ctypes.PyDLL(None).usleep(2_500_000)  # PyDLL keeps the interpreter locked
            seen = Path(sys.argv[1], "stuck.txt").read_text()
            assert seen.startswith("Timeout (0:00:01.2") and "line 9 in <module>" in seen, seen
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(script), tmp_path], check=True)


def test_a_removed_folder_and_a_full_disk_are_not_its_to_report(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / REPORT).symlink_to("/dev/full")
    settings = WatchdogSettings(stuck_seconds=0.2)
    with Watchdog(folder, settings, position=lambda: 7, part=lambda: "x"):
        shutil.rmtree(folder)
        waits_here(0.6)
    assert "could not be written to" in capfd.readouterr().err
