"""One run, one writer; a writer that is gone holds nothing."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from scanline.machine import process_start
from scanline.runs.lock import LOCK, Lock, LockedError


def test_a_second_writer_is_refused_until_the_first_is_done(tmp_path: Path) -> None:
    lock = Lock(tmp_path)
    with pytest.raises(LockedError, match=f"written by process {os.getpid()} on") as caught:
        Lock(tmp_path)
    assert "--out" in str(caught.value)
    lock.release()
    lock.release()
    assert list(tmp_path.iterdir()) == []
    Lock(tmp_path).release()


@pytest.mark.parametrize("record", ["", "{", "[]", '{"host": "x"}', '{"pid": "x"}', "[" * 3_000])
def test_a_lock_without_content_is_taken_over(tmp_path: Path, record: str) -> None:
    (tmp_path / LOCK).write_text(record)
    Lock(tmp_path).release()


def test_the_lock_of_a_killed_process_is_stale(tmp_path: Path) -> None:
    script = """
        import os, signal, sys
        from pathlib import Path
        from scanline.runs.lock import Lock
        Lock(Path(sys.argv[1]))
        os.kill(os.getpid(), signal.SIGKILL)
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(script), tmp_path])
    assert "pid" in json.loads((tmp_path / LOCK).read_text())
    Lock(tmp_path).release()


def record(**changes: object) -> str:
    own = {"host": platform.node(), "pid": os.getpid(), "started": process_start(os.getpid())}
    return json.dumps({**own, **changes})


def test_a_process_number_that_was_given_anew_is_stale(tmp_path: Path) -> None:
    (tmp_path / LOCK).write_text(record(started="another boot/12345"))
    Lock(tmp_path).release()


def test_a_process_of_another_host_counts_as_alive(tmp_path: Path) -> None:
    (tmp_path / LOCK).write_text(record(host="elsewhere"))
    with pytest.raises(LockedError, match=r"on elsewhere.*remove .*run\.lock"):
        Lock(tmp_path)


def test_a_lock_of_somebody_else_is_not_released(tmp_path: Path) -> None:
    lock = Lock(tmp_path)
    (tmp_path / LOCK).write_text(record(pid=1, started="x"))
    lock.release()
    assert (tmp_path / LOCK).exists()


def test_of_many_starters_one_wins(tmp_path: Path) -> None:
    script = """
        import os, sys
        from pathlib import Path
        from scanline.runs.lock import Lock, LockedError
        gate, opener = os.pipe()
        for _ in range(12):
            if not os.fork():
                try:
                    Lock(Path(sys.argv[1]))
                except LockedError:
                    os._exit(3)
                os.read(gate, 1)
                os._exit(0)
        codes = [os.waitstatus_to_exitcode(os.wait()[1]) for _ in range(11)]
        os.write(opener, b"x")
        codes.append(os.waitstatus_to_exitcode(os.wait()[1]))
        assert codes == [3] * 11 + [0], codes
    """
    (tmp_path / LOCK).write_text(record(started="gone"))  # all find a stale lock
    command = [sys.executable, "-c", textwrap.dedent(script), tmp_path]
    subprocess.run(command, check=True, timeout=120)  # two winners would wait for ever


def test_zombies_do_not_run() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.read()  # its end, so the process is over or about to be
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert process_start(process.pid) is None
    process.communicate()
