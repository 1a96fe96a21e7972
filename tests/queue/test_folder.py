"""The folder of a queue: a ticket moves for one process only, and nothing is lost between moves."""

from __future__ import annotations

import json
import os
import threading
from collections import Counter
from pathlib import Path

import pytest

import scanline
from scanline.queue.cells import Cell
from scanline.queue.folder import Queue, QueueError, Ticket


def cell(seed: int) -> Cell:
    return Cell(recipe="a2c", game="pong", seed=seed)


@pytest.fixture
def queue(tmp_path: Path) -> Queue:
    return Queue.make(tmp_path / "q")


def claimed(queue: Queue, seed: int = 0) -> Ticket:
    queue.add(cell(seed))
    (ticket,) = queue.tickets("pending")
    mine = queue.claim(ticket)
    assert mine is not None
    return mine


def test_a_cell_is_added_once_whatever_state_it_is_in(queue: Queue) -> None:
    assert queue.add(cell(0)) and not queue.add(cell(0))
    (ticket,) = queue.tickets("pending")
    assert queue.claim(ticket) and not queue.add(cell(0))
    assert not queue.tickets("pending")
    assert queue.cell_ids() == [cell(0).id]
    assert not list((queue.path / "new").iterdir())


def test_a_sweep_that_died_between_a_cell_and_its_ticket_is_completed(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(Queue, "_to_pending", lambda *given: None)
        queue.add(cell(0))
    assert not queue.tickets("pending")
    queue.settle()
    queue.settle()
    assert [ticket.cell_id for ticket in queue.tickets("pending")] == [cell(0).id]


def test_a_damaged_cell_is_mended_by_adding_it_again(queue: Queue) -> None:
    queue.add(cell(0))
    queue.cell_file(cell(0).id).write_text("{")
    assert not queue.add(cell(0))
    assert queue.cell(cell(0).id) == cell(0)


def test_many_claimers_get_every_cell_once(queue: Queue) -> None:
    for seed in range(30):
        queue.add(cell(seed))
    got: list[str] = []
    start = threading.Barrier(4)

    def work() -> None:
        start.wait()
        while tickets := queue.tickets("pending"):
            for ticket in tickets:
                if queue.claim(ticket):
                    got.append(ticket.cell_id)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Counter(got) == dict.fromkeys(queue.cell_ids(), 1)
    assert len(queue.tickets("running")) == 30


def test_many_processes_get_every_cell_once(queue: Queue) -> None:
    for seed in range(40):
        queue.add(cell(seed))
    read, write = os.pipe()
    children = []
    for _ in range(3):
        if (pid := os.fork()) == 0:
            while tickets := queue.tickets("pending"):
                for ticket in tickets:
                    if queue.claim(ticket):
                        os.write(write, f"{ticket.cell_id}\n".encode())
            os._exit(0)
        children.append(pid)
    os.close(write)
    with os.fdopen(read) as lines:
        got = Counter(line.strip() for line in lines)
    assert [os.waitpid(pid, 0)[1] for pid in children] == [0, 0, 0]
    assert got == dict.fromkeys(queue.cell_ids(), 1)


def test_whoever_was_taken_over_can_end_nothing(queue: Queue) -> None:
    old = claimed(queue)
    new = queue.claim(old, "running")
    assert new is not None and new.number == 2
    assert queue.claim(old, "running") is None
    for end in (queue.finish, queue.fail, queue.give_back):
        assert not end(old)
    assert queue.tickets("running") == [new]
    assert queue.finish(queue_attempt(queue, new))
    assert queue.finish(new)  # the same owner may ask again
    assert [t.cell_id for t in queue.tickets("done")] == [new.cell_id]


def queue_attempt(queue: Queue, ticket: Ticket) -> Ticket:
    run = queue.begin_attempt(ticket)
    (run / "result.json").write_text("{}")
    return ticket


def test_a_finished_run_is_published_though_its_worker_died(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticket = queue_attempt(queue, claimed(queue))
    segments = queue.attempt(ticket) / "checkpoints" / "segments"
    segments.mkdir(parents=True)
    (segments / "replay-0").write_text("rows")
    with monkeypatch.context() as patched:
        patched.setattr(Queue, "_publish", lambda *given: None)
        assert queue.finish(ticket)
    assert not queue.run(ticket.cell_id).exists()
    queue.settle()
    run = queue.run(ticket.cell_id)
    assert (run / "result.json").exists() and not list((run / "checkpoints/segments").iterdir())
    assert not queue.attempt(ticket).parent.exists()


def test_failed_cells_are_tried_again_and_their_errors_stay(queue: Queue) -> None:
    ticket = claimed(queue)
    assert queue.fail(ticket)
    queue.write_error(ticket, "broken\n")
    assert len(queue.errors(ticket.cell_id)) == 1
    assert queue.retry_failed() == 1
    assert queue.tickets("pending") == [ticket.free()] and not queue.errors(ticket.cell_id)
    assert len(list((queue.path / "errors" / ticket.cell_id).iterdir())) == 1


def test_a_queue_of_another_version_or_a_damaged_one_is_refused(tmp_path: Path) -> None:
    with pytest.raises(QueueError, match="There is no queue"):
        Queue.open(tmp_path / "q")
    path = Queue.make(tmp_path / "q").path / "queue.json"
    record = json.loads(path.read_text())
    assert record["scanline"] == scanline.__version__
    path.write_text(json.dumps({**record, "scanline": "9.9"}))
    for use in (Queue.open, Queue.make):
        with pytest.raises(QueueError, match=r"scanline 9\.9, and this is .* --any-version"):
            use(tmp_path / "q")
        assert use(tmp_path / "q", any_version=True).version == "9.9"
    path.write_text(json.dumps({**record, "format_version": 2}))
    with pytest.raises(QueueError, match="newer scanline"):
        Queue.open(tmp_path / "q", any_version=True)
    path.write_text("{")
    with pytest.raises(QueueError, match="is damaged"):
        Queue.open(tmp_path / "q")


def test_a_folder_of_other_things_becomes_no_queue(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(QueueError, match="holds other files"):
        Queue.make(tmp_path)
