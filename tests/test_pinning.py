"""Engine threads and workers stay on one core each; nothing else is moved."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from toys import build

from scanline import processes

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="pinning needs Linux")


def cores_of_new(before: set[int], after: set[int]) -> list[set[int]]:
    return [os.sched_getaffinity(task) for task in sorted(after - before)]


def threads() -> set[int]:
    return {int(path.name) for path in Path("/proc/self/task").iterdir()}


@pytest.mark.parametrize("is_wanted", [True, False])
def test_threads_of_the_emulator_get_the_granted_cores_in_turn(is_wanted: bool) -> None:
    granted, before = processes.granted_core_ids(), threads()
    with processes.pinned(is_wanted):
        engine = build("native", "pong", num_envs=3, num_threads=3)
    found = cores_of_new(before, threads())
    engine.close()
    assert len(found) >= 2
    expected = [{granted[n % len(granted)]} for n in range(len(found))]
    assert found == (expected if is_wanted else [set(granted)] * len(found))
    assert os.sched_getaffinity(0) == set(granted)


def test_worker_processes_get_the_granted_cores_in_turn() -> None:
    granted = processes.granted_core_ids()
    with processes.pinned(True):
        engine = build("gymnasium", "scanline/Catch-v0", num_envs=4, num_workers=2)
    workers = engine._workers._pool.workers  # type: ignore[attr-defined]
    found = [os.sched_getaffinity(worker.process.pid) for worker in workers]
    engine.close()
    assert found == [{granted[n % len(granted)]} for n in range(2)]


def test_cores_that_the_system_does_not_grant_are_not_used() -> None:
    granted = processes.granted_core_ids()
    processes.bind(0, granted[-1:])
    try:
        with processes.pinned(True):
            engine = build("native", "pong", num_envs=2, num_threads=2)
        mine = {frozenset(os.sched_getaffinity(task)) for task in threads()}
        engine.close()
    finally:
        processes.bind(0, granted)
    assert frozenset(granted[-1:]) in mine
    assert processes.granted_core_ids() == granted


def test_another_system_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(ValueError, match="needs Linux"), processes.pinned(True):
        pass
