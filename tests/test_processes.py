"""Workers end with their parent, say why they failed, and leave nothing behind."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from scanline import processes
from scanline.errors import RefusedError, UserError
from scanline.processes import Crew, Link, SharedArrays, WorkerLost, hire

FIELDS = {"number": ((3,), "int64"), "flag": ((5,), "bool")}


def echo(link: Link, offset: int) -> None:
    """Answers every code with the code plus its offset."""
    for code in link.orders():
        link.answer(code + offset)


def adding(link: Link, fd: int) -> None:
    shared = SharedArrays(FIELDS, fd).arrays
    for code in link.orders():
        shared["number"][code] += 1
        link.answer(code)


def objects(link: Link) -> None:
    for _ in link.orders():
        link.answer_object(link.received() * 2)


def failing(link: Link) -> None:
    for _ in link.orders():
        raise KeyError("a reason of its own")


def sleeping(link: Link) -> None:
    link.answer(os.getpid() % 1000)
    time.sleep(3600)


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def mapped() -> list[str]:
    """Shared memory that this process maps; what has no name in the file system shows as memfd."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    return sorted(
        line.split(maxsplit=5)[5] for line in lines if "memfd:" in line or "/shm/" in line
    )


def wait_until_gone(pids: list[int], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while any(is_running(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not any(is_running(pid) for pid in pids)


def collect(crew: Crew, num: int, seconds: float = 30.0) -> list[tuple[int, int, object]]:
    found: list[tuple[int, int, object]] = []
    deadline = time.monotonic() + seconds
    while len(found) < num and time.monotonic() < deadline:
        found += crew.answers(deadline - time.monotonic())
    return sorted(found, key=lambda row: row[:2])


def test_orders_reach_the_workers_and_answers_come_back() -> None:
    crew = hire(echo, [(10,), (20,)])
    for worker in crew.workers:
        worker.order(1)
    assert collect(crew, 2) == [(0, 11, None), (1, 21, None)]
    crew.close()


def test_large_objects_pass_both_ways() -> None:
    crew = hire(objects, [()])
    text = "scanline" * 100_000
    crew.workers[0].order_object(1, text)
    assert collect(crew, 1) == [(0, processes.OBJECT, text * 2)]
    crew.close()


def test_shared_arrays_are_one_memory_and_have_no_name() -> None:
    before = mapped()
    shared = SharedArrays(FIELDS)
    assert shared.arrays["flag"].shape == (5,)
    crew = hire(adding, [(shared.fd,), (shared.fd,)], fds=(shared.fd,))
    shared.close_fd()
    for worker, code in zip(crew.workers, (0, 2), strict=True):
        worker.order(code)
    collect(crew, 2)
    np.testing.assert_array_equal(shared.arrays["number"], [1, 0, 1])
    assert mapped() == sorted([*before, "/memfd:scanline (deleted)"])
    crew.close()
    del shared
    assert mapped() == before


def test_arrays_in_a_block_do_not_overlap() -> None:
    shared = SharedArrays(FIELDS).arrays
    shared["number"][:] = -1
    assert not shared["flag"].any()
    shared["flag"][:] = True
    assert (shared["number"] == -1).all()


def test_a_failure_brings_its_traceback() -> None:
    crew = hire(failing, [()])
    crew.workers[0].order(0)
    with pytest.raises(WorkerLost, match=r"(?s)Traceback.*failing.*a reason of its own"):
        collect(crew, 1)
    crew.close()


def test_a_killed_worker_is_noticed_at_once() -> None:
    crew = hire(sleeping, [()])
    collect(crew, 1)
    crew.workers[0].process.kill()
    begun = time.monotonic()
    with pytest.raises(WorkerLost, match="SIGKILL"):
        collect(crew, 1)
    assert time.monotonic() - begun < 10.0
    with pytest.raises(WorkerLost, match="SIGKILL"):
        crew.workers[0].order(0)
    crew.close()


def test_waits_have_a_limit() -> None:
    crew = hire(echo, [(0,)])
    begun = time.monotonic()
    assert crew.answers(0.2) == []
    assert 0.15 < time.monotonic() - begun < 10.0
    crew.close()


def test_close_ends_busy_workers_by_force_and_may_be_called_twice() -> None:
    crew = hire(sleeping, [(), ()])
    collect(crew, 2)
    pids = [worker.process.pid for worker in crew.workers]
    crew.close(grace_seconds=0.1)
    crew.close()
    assert not any(is_running(pid) for pid in pids)


def test_a_forgotten_crew_ends_its_workers_and_its_pipes() -> None:
    before = len(os.listdir("/proc/self/fd"))
    crew = hire(echo, [(0,), (0,)])
    pids = [worker.process.pid for worker in crew.workers]
    del crew
    gc.collect()
    assert not any(is_running(pid) for pid in pids)
    assert len(os.listdir("/proc/self/fd")) == before


ORPHANAGE = """
import sys, time
sys.path[:] = {path!r}
import test_processes
from scanline.processes import hire
crew = hire(test_processes.{entry}, [{args}, {args}])
for worker in crew.workers:
    worker.order(1)
test_processes.collect(crew, 2)
print(*(worker.process.pid for worker in crew.workers), flush=True)
time.sleep(3600)
"""


@pytest.mark.parametrize(("entry", "args"), [("echo", "(0,)"), ("sleeping", "()")])
def test_workers_of_a_killed_parent_end_by_themselves(entry: str, args: str) -> None:
    """An idle worker sees its pipe close; one that is stuck in its work is ended by a thread."""
    program = ORPHANAGE.format(path=sys.path, entry=entry, args=args)
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        pids = [int(pid) for pid in parent.stdout.readline().split()]
        assert len(pids) == 2
        assert all(is_running(pid) for pid in pids)
        parent.send_signal(signal.SIGKILL)
    gone = wait_until_gone(pids, 30.0)
    for pid in pids:
        if is_running(pid):
            os.kill(pid, signal.SIGKILL)
    assert gone


def mistaken(link: Link) -> None:
    raise RefusedError("it must be 3; use 3.")


def test_a_user_s_mistake_in_a_worker_is_the_same_sentence_here() -> None:
    crew = hire(mistaken, [()])
    with pytest.raises(UserError, match=r"^it must be 3; use 3\.$"):
        crew.answers(30.0)
    crew.close()
