"""A worker's decisions, with processes and clocks that the test moves."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import small_disk
from scanline.files import DiskError
from scanline.queue import child
from scanline.queue.cells import Cell
from scanline.queue.code import Permission
from scanline.queue.folder import Queue, Ticket
from scanline.queue.work import Worker, WorkSettings

LEASE = 10.0


class FakeProcess:
    """A run that ends when the test says so."""

    def __init__(self, order: child.Order, log: Path) -> None:
        self.order, self.log = order, log
        self.code: int | None = None
        self.killed = self.asked = False

    def poll(self) -> int | None:
        return self.code

    def ask_to_stop(self) -> None:
        self.asked = True

    def kill(self) -> None:
        self.killed, self.code = True, -9

    def end(self, code: int, words: str = "") -> None:
        if code == child.DONE:
            (Path(self.order.folder) / "result.json").write_text("{}")
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self.log.write_text(words)
        self.code = code


class Bench:
    """A queue, a clock and workers."""

    def __init__(self, path: Path) -> None:
        self.queue = Queue.make(path)
        self.now = 0.0
        self.said: list[str] = []
        self.started: list[FakeProcess] = []

    def worker(self, permission: Permission | None = None, **changes: object) -> Worker:
        settings = WorkSettings(**{"slots": 1, "lease_seconds": LEASE, **changes})  # type: ignore[arg-type]
        return Worker(
            self.queue,
            settings,
            permission or Permission(),
            say=self.said.append,
            launch=self.launch,
            clock=lambda: self.now,
        )

    def launch(self, order: child.Order, ticket: Ticket) -> FakeProcess:
        self.started.append(FakeProcess(order, self.queue.log_file(ticket)))
        return self.started[-1]

    def counts(self) -> dict[str, int]:
        states = ("pending", "running", "done", "failed")
        return {s: len(self.queue.tickets(s)) for s in states if self.queue.tickets(s)}  # type: ignore[arg-type]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    made = Bench(tmp_path / "q")
    made.queue.add(Cell(recipe="a2c", game="pong", seed=0))
    return made


def test_a_cell_is_run_and_done(bench: Bench) -> None:
    worker = bench.worker()
    worker.tick()
    assert bench.counts() == {"running": 1} and not worker.is_over()
    bench.started[0].end(child.DONE)
    worker.tick()
    assert bench.counts() == {"done": 1} and worker.is_over()
    (run,) = (bench.queue.path / "runs").iterdir()
    assert (run / "result.json").exists()


def test_slots_have_cores_of_their_own_and_are_used_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scanline.processes.granted_core_ids", lambda: [2, 3, 5, 7])
    for seed in range(1, 4):
        bench.queue.add(Cell(recipe="a2c", game="pong", seed=seed))
    worker = bench.worker(slots=None, cores_per_run=2)
    worker.tick()
    assert [process.order.cores for process in bench.started] == [(2, 3), (5, 7)]
    bench.started[1].end(child.DONE)
    worker.tick()
    assert bench.started[2].order.cores == (5, 7)
    one = bench.worker(slots=1)
    one.tick()
    assert bench.started[3].order.cores == ()


def test_a_failing_cell_is_tried_a_bounded_number_of_times(bench: Bench) -> None:
    worker = bench.worker(retries=2)
    for number in range(3):
        worker.tick()
        bench.started[number].end(child.FAILED, f"Traceback\n  x\nRuntimeError: nan {number}\n")
        worker.tick()
    assert bench.counts() == {"failed": 1} and len(bench.started) == 3 and worker.is_over()
    errors = bench.queue.errors(bench.queue.cell_ids()[0])
    assert [path.read_text().splitlines()[0] for path in errors] == [
        f"RuntimeError: nan {number}" for number in range(3)
    ]
    assert "Traceback" in errors[0].read_text()


def test_a_mistake_of_the_user_is_not_tried_again(bench: Bench) -> None:
    worker = bench.worker()
    worker.tick()
    bench.started[0].end(child.REFUSED, "scanline: There is no ROM; get one.\n")
    worker.tick()
    assert bench.counts() == {"failed": 1}
    assert "has failed: scanline: There is no ROM; get one." in bench.said[-1]


def test_a_process_that_is_killed_is_tried_again(bench: Bench) -> None:
    worker = bench.worker()
    worker.tick()
    bench.started[0].end(-9)
    worker.tick()
    assert bench.counts() == {"running": 1} and len(bench.started) == 2
    (error,) = bench.queue.errors(bench.queue.cell_ids()[0])
    assert "ended by SIGKILL" in error.read_text()


def test_a_signal_saves_and_gives_back(bench: Bench) -> None:
    worker = bench.worker()
    worker.tick()
    worker.receive(15)
    worker.tick()
    assert bench.started[0].asked and not worker.is_over()
    bench.started[0].end(child.STOPPED)
    worker.tick()
    assert bench.counts() == {"pending": 1} and worker.is_over()
    assert worker.run() == 0
    assert bench.said[-1] == "Stopped: 1 given back."
    assert not list((bench.queue.path / "leases").iterdir())


def test_a_second_signal_does_not_wait(bench: Bench) -> None:
    worker = bench.worker()
    worker.tick()
    worker.receive(15)
    worker.receive(15)
    worker.tick()
    assert bench.started[0].killed and bench.counts() == {"pending": 1}


def test_a_worker_that_beats_keeps_its_cell(bench: Bench) -> None:
    first, second = bench.worker(), bench.worker()
    for _ in range(50):
        first.tick()
        second.tick()
        bench.now += LEASE / 6
    assert len(bench.started) == 1 and not second.is_over()
    assert bench.worker(linger=False).is_over()


def test_a_worker_that_wakes_after_its_cell_was_taken_over_writes_nothing(bench: Bench) -> None:
    first, second = bench.worker(), bench.worker()
    first.tick()
    (Path(bench.started[0].order.folder) / "progress.jsonl").write_text("1\n")
    for _ in range(5):  # the first one is suspended
        second.tick()
        bench.now += LEASE / 3
    assert len(bench.started) == 2
    taken = Path(bench.started[1].order.folder)
    assert (taken / "progress.jsonl").read_text() == "1\n"
    assert not Path(bench.started[0].order.folder).exists()
    bench.started[0].code = child.FAILED
    before = sorted(bench.queue.path.rglob("*"))
    first.tick()
    assert bench.started[0].killed and first.counts["lost"] == 1
    assert sorted(bench.queue.path.rglob("*")) == before
    bench.started[1].end(child.DONE)
    second.tick()
    assert bench.counts() == {"done": 1}


@pytest.mark.parametrize("code", [child.DONE, child.FAILED, child.REFUSED, child.STOPPED])
def test_a_worker_that_is_suspended_between_its_look_and_its_deed_does_nothing(
    bench: Bench, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = bench.worker(), bench.worker()
    first.tick()
    bench.started[0].end(code)
    (ticket,) = bench.queue.tickets("running")
    end = first._end

    def suspended(*given: object) -> None:
        for _ in range(5):
            second.tick()
            bench.now += LEASE / 3
        end(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(first, "_end", suspended)
    first.tick()
    (now,) = bench.queue.tickets("running")
    assert now.number == ticket.number + 1
    assert not bench.queue.errors(ticket.cell_id) and bench.counts() == {"running": 1}


def test_a_damaged_cell_is_left_alone_and_the_others_go_on(bench: Bench) -> None:
    bench.queue.cell_file(bench.queue.cell_ids()[0]).write_text("{")
    bench.queue.add(Cell(recipe="a2c", game="pong", seed=1))
    worker = bench.worker()
    worker.tick()
    bench.started[0].end(child.DONE)
    worker.tick()
    worker.tick()
    assert bench.counts() == {"pending": 1, "done": 1} and worker.run() == 2
    assert len([line for line in bench.said if "is damaged" in line]) == 1


def test_a_cell_of_another_version_is_left_alone(bench: Bench) -> None:
    bench.queue.add(Cell(recipe="a2c", game="pong", seed=0, scanline="9.9"))
    (path,) = (bench.queue.path / "cells").iterdir()
    path.write_text(json.dumps({**json.loads(path.read_text()), "scanline": "9.9"}))
    worker = bench.worker()
    worker.tick()
    assert not bench.started and "written by scanline 9.9" in bench.said[0]
    other = bench.worker(any_version=True)
    other.tick()
    assert len(bench.started) == 1


def test_a_recipe_file_runs_only_under_the_rule_of_run_folders(
    tmp_path: Path, bench: Bench
) -> None:
    from scanline.recipes import SourceFile, trust

    path = tmp_path / "own.py"
    path.write_text("recipe = None\n")
    file = SourceFile.read(path)
    worker_of = lambda *files: bench.worker(Permission.of(files), slots=2)  # noqa: E731
    bench.queue.add(Cell(recipe=str(path), recipe_sha256=file.sha256, game="pong", seed=0))
    worker_of().tick()
    assert len(bench.started) == 1
    assert "from which you have not trained" in bench.said[-1] + bench.said[-2]
    elsewhere = tmp_path / "copy.py"
    elsewhere.write_text("recipe = None\n")
    worker_of(elsewhere).tick()
    assert bench.started[1].order.recipe_file == str(elsewhere.resolve())
    bench.queue.add(Cell(recipe=str(path), recipe_sha256=file.sha256, game="pong", seed=1))
    trust.remember(file.path, file.sha256)
    path.write_text("recipe = 1\n")
    worker_of().tick()
    assert "was changed since the sweep" in bench.said[-1] and len(bench.started) == 2
    path.write_text("recipe = None\n")
    worker_of().tick()
    assert len(bench.started) == 3


def full(bench: Bench, act: Callable[[], None]) -> str:
    act()
    worker = bench.worker()
    worker.tick()
    with pytest.raises(DiskError) as caught:
        worker.run()
    return str(caught.value)


def test_a_queue_on_a_full_disk_is_a_sentence_and_claims_go_back(tmp_path: Path) -> None:
    with small_disk.mounted(tmp_path / "disk", "1m") as disk:
        bench = Bench(disk / "q")
        bench.queue.add(Cell(recipe="a2c", game="pong", seed=0))
        sentence = full(bench, lambda: small_disk.fill(disk))
        assert "the disk is full" in sentence
        assert bench.counts() == {"pending": 1} and not bench.started
        small_disk.free(disk)
        bench.worker().tick()
        assert bench.counts() == {"running": 1}


def test_a_heartbeat_that_the_disk_refuses_stops_all_runs(bench: Bench) -> None:
    bench.queue.add(Cell(recipe="a2c", game="pong", seed=1))
    worker = bench.worker(slots=2)
    worker.tick()
    (bench.queue.path / "leases").rename(bench.queue.path / "gone")
    bench.now += LEASE / 2
    worker.tick()
    worker.tick()
    assert [process.asked for process in bench.started] == [True, True]
    for process in bench.started:
        process.end(child.STOPPED)
    with pytest.raises(DiskError, match="The queue cannot be used: No such file"):
        worker.run()
    assert bench.counts() == {"pending": 2}


def test_a_run_that_finds_the_disk_full_stops_the_worker_and_counts_as_no_failure(
    bench: Bench,
) -> None:
    bench.queue.add(Cell(recipe="a2c", game="pong", seed=1))
    worker = bench.worker(slots=2)
    worker.tick()
    said = "scanline: Could not write the checkpoint x: the disk is full; free some space."
    bench.started[0].end(child.DISK, said + "\n")
    worker.tick()
    worker.tick()
    assert bench.started[1].asked
    bench.started[1].end(child.STOPPED)
    with pytest.raises(DiskError, match=r"^Could not write the checkpoint x"):
        worker.run()
    assert bench.counts() == {"pending": 2}
    assert not bench.queue.errors(bench.queue.cell_ids()[0])
