"""Leases are judged by the watcher's own clock and by nothing else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from scanline.queue.lease import BEATS, Lease, Watch, read_lease


class FakeClock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def test_a_lease_beats_at_its_intervals(tmp_path: Path, clock: FakeClock) -> None:
    lease = Lease(tmp_path / "lease", "token", 50.0, clock)
    beats = []
    for _ in range(20):
        clock.now += 50.0 / BEATS / 2
        lease.renew_if_due()
        beats.append(read_lease(tmp_path / "lease")["heartbeat"])
    assert beats[-1] == 11
    assert read_lease(tmp_path / "lease")["pid"] == os.getpid()


def test_a_lease_is_stale_after_its_seconds_without_a_change(
    tmp_path: Path, clock: FakeClock
) -> None:
    lease = Lease(tmp_path / "lease", "token", 10.0, FakeClock())  # its clock stands still
    watch = Watch(10.0, clock)
    for _ in range(5):
        assert not watch.is_stale("a", tmp_path / "lease")
        clock.now += 9.0
        lease.renew()
    assert not watch.is_stale("a", tmp_path / "lease")
    clock.now += 9.9
    assert not watch.is_stale("a", tmp_path / "lease")
    clock.now += 0.2
    assert watch.is_stale("a", tmp_path / "lease")


def test_neither_times_of_files_nor_a_late_first_look_count(
    tmp_path: Path, clock: FakeClock
) -> None:
    Lease(tmp_path / "lease", "token", 10.0, clock)
    for seconds in (0, 4_000_000_000):
        os.utime(tmp_path / "lease", (seconds, seconds))
        assert not Watch(10.0, clock).is_stale("a", tmp_path / "lease")


def test_a_lease_may_ask_for_more_seconds_than_the_watcher_has(
    tmp_path: Path, clock: FakeClock
) -> None:
    Lease(tmp_path / "lease", "token", 100.0, clock)
    watch = Watch(10.0, clock)
    watch.is_stale("a", tmp_path / "lease")
    clock.now += 99.0
    assert not watch.is_stale("a", tmp_path / "lease")
    clock.now += 1.0
    assert watch.is_stale("a", tmp_path / "lease")


@pytest.mark.parametrize("content", [None, b"", b"{", b"[]", b'{"lease_seconds": "x"}'])
def test_a_lease_that_is_missing_or_damaged_becomes_stale(
    tmp_path: Path, clock: FakeClock, content: bytes | None
) -> None:
    if content is not None:
        (tmp_path / "lease").write_bytes(content)
    watch = Watch(10.0, clock)
    assert not watch.is_stale("a", tmp_path / "lease")
    clock.now += 10.0
    assert watch.is_stale("a", tmp_path / "lease")
    assert read_lease(tmp_path / "lease") == {} or content == b'{"lease_seconds": "x"}'
