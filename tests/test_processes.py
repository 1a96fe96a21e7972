"""Workers end with their parent, say why they failed, and leave nothing behind; pinned threads and
workers stay on one core each."""

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
from toys import build

from scanline.errors import UserError
from scanline.processes import (
    SharedArrays,
    WorkerLost,
    WorkerPool,
    bind,
    granted_core_ids,
    pinned,
    start_workers,
)
from worker_entries import FIELDS, adding, echo, failing, mistaken, objects, sleeping

needs_linux = pytest.mark.skipif(sys.platform != "linux", reason="pinning needs Linux")


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


def collect(pool: WorkerPool, num: int, seconds: float = 30.0) -> list[tuple[int, int, object]]:
    found: list[tuple[int, int, object]] = []
    deadline = time.monotonic() + seconds
    while len(found) < num and time.monotonic() < deadline:
        found += pool.answers(deadline - time.monotonic())
    return sorted(found, key=lambda row: row[:2])


def test_orders_reach_the_workers_and_answers_come_back() -> None:
    pool = start_workers(echo, [(10,), (20,)])
    for worker in pool.workers:
        worker.order(1)
    assert collect(pool, 2) == [(0, 11, None), (1, 21, None)]
    pool.close()


def test_large_objects_pass_both_ways() -> None:
    pool = start_workers(objects, [()])
    text = "scanline" * 100_000
    pool.workers[0].order(1, text)
    assert collect(pool, 1) == [(0, 0, text * 2)]
    pool.close()


def test_shared_arrays_are_one_memory_and_have_no_name() -> None:
    before = mapped()
    shared = SharedArrays(FIELDS)
    assert shared.arrays["flag"].shape == (5,)
    pool = start_workers(adding, [(shared.fd,), (shared.fd,)], fds=(shared.fd,))
    shared.close_fd()
    for worker, code in zip(pool.workers, (0, 2), strict=True):
        worker.order(code)
    collect(pool, 2)
    np.testing.assert_array_equal(shared.arrays["number"], [1, 0, 1])
    assert mapped() == sorted([*before, "/memfd:scanline (deleted)"])
    pool.close()
    del shared
    assert mapped() == before


def test_arrays_in_a_block_do_not_overlap() -> None:
    shared = SharedArrays(FIELDS).arrays
    shared["number"][:] = -1
    assert not shared["flag"].any()
    shared["flag"][:] = True
    assert (shared["number"] == -1).all()


def test_a_failure_brings_its_traceback() -> None:
    pool = start_workers(failing, [()])
    pool.workers[0].order(0)
    with pytest.raises(WorkerLost, match=r"(?s)Traceback.*failing.*a reason of its own"):
        collect(pool, 1)
    pool.close()


def test_a_killed_worker_is_noticed_at_once() -> None:
    pool = start_workers(sleeping, [()])
    collect(pool, 1)
    pool.workers[0].process.kill()
    begun = time.monotonic()
    with pytest.raises(WorkerLost, match="SIGKILL"):
        collect(pool, 1)
    assert time.monotonic() - begun < 10.0
    with pytest.raises(WorkerLost, match="SIGKILL"):
        pool.workers[0].order(0)
    pool.close()


def test_waits_have_a_limit() -> None:
    pool = start_workers(echo, [(0,)])
    begun = time.monotonic()
    assert pool.answers(0.2) == []
    assert 0.15 < time.monotonic() - begun < 10.0
    pool.close()


def test_close_ends_busy_workers_by_force_and_may_be_called_twice() -> None:
    pool = start_workers(sleeping, [(), ()])
    collect(pool, 2)
    pids = [worker.process.pid for worker in pool.workers]
    pool.close(grace_seconds=0.1)
    pool.close()
    assert not any(is_running(pid) for pid in pids)


def test_a_forgotten_pool_ends_its_workers_and_its_pipes() -> None:
    before = len(os.listdir("/proc/self/fd"))
    pool = start_workers(echo, [(0,), (0,)])
    pids = [worker.process.pid for worker in pool.workers]
    del pool
    gc.collect()
    assert not any(is_running(pid) for pid in pids)
    assert len(os.listdir("/proc/self/fd")) == before


ORPHANAGE = """
import sys, time
sys.path[:] = {path!r}
import worker_entries
from scanline.processes import start_workers
pool = start_workers(worker_entries.{entry}, [{args}, {args}])
found = []
for worker in pool.workers:
    worker.order(1)
while len(found) < 2:
    found += pool.answers(30.0)
print(*(worker.process.pid for worker in pool.workers), flush=True)
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


def test_a_user_s_mistake_in_a_worker_is_the_same_sentence_here() -> None:
    pool = start_workers(mistaken, [()])
    with pytest.raises(UserError, match=r"^it must be 3; use 3\.$"):
        pool.answers(30.0)
    pool.close()


def cores_of_new(before: set[int], after: set[int]) -> list[set[int]]:
    return [os.sched_getaffinity(task) for task in sorted(after - before)]


def threads() -> set[int]:
    return {int(path.name) for path in Path("/proc/self/task").iterdir()}


@needs_linux
@pytest.mark.parametrize("is_wanted", [True, False])
def test_threads_of_the_emulator_get_the_granted_cores_in_turn(is_wanted: bool) -> None:
    granted, before = granted_core_ids(), threads()
    with pinned(is_wanted):
        engine = build("native", "pong", num_envs=3, num_threads=3)
    found = cores_of_new(before, threads())
    engine.close()
    assert len(found) >= 2
    expected = [{granted[n % len(granted)]} for n in range(len(found))]
    assert found == (expected if is_wanted else [set(granted)] * len(found))
    assert os.sched_getaffinity(0) == set(granted)


@needs_linux
def test_worker_processes_get_the_granted_cores_in_turn() -> None:
    granted = granted_core_ids()
    with pinned(True):
        engine = build("gymnasium", "scanline/Catch-v0", num_envs=4, num_workers=2)
    workers = engine._workers._pool.workers  # type: ignore[attr-defined]
    found = [os.sched_getaffinity(worker.process.pid) for worker in workers]
    engine.close()
    assert found == [{granted[n % len(granted)]} for n in range(2)]


@needs_linux
def test_cores_that_the_system_does_not_grant_are_not_used() -> None:
    granted = granted_core_ids()
    bind(0, granted[-1:])
    try:
        with pinned(True):
            engine = build("native", "pong", num_envs=2, num_threads=2)
        mine = {frozenset(os.sched_getaffinity(task)) for task in threads()}
        engine.close()
    finally:
        bind(0, granted)
    assert frozenset(granted[-1:]) in mine
    assert granted_core_ids() == granted


def test_pinning_is_refused_on_another_system(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(ValueError, match="needs Linux"), pinned(True):
        pass
