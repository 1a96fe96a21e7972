"""The state of a queue, also of a damaged one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scanline import cli
from scanline.queue.cells import Cell
from scanline.queue.folder import Queue
from scanline.queue.lease import Lease


@pytest.fixture
def queue(tmp_path: Path) -> Queue:
    """One cell in each state."""
    made = Queue.make(tmp_path / "q")
    for seed in range(5):
        made.add(Cell(recipe="a2c", game="pong", seed=seed, settings={"agent_steps": 1000}))
    tickets = {made.cell(t.cell_id).seed: t for t in made.tickets("pending")}
    running, done, failed = (made.claim(tickets[seed]) for seed in (0, 1, 2))
    assert running and done and failed
    Lease(made.lease_file(running), running.token, 60.0)
    run = made.begin_attempt(running)
    rows = [{"agent_steps": 400, "charts/episodic_return": -20.5}]
    (run / "progress.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows) + '{"ag')
    (run / "rates.jsonl").write_text('{"charts/SPS": 100.0}\n')
    result = {"format_version": 1, "training_score": 3.0, "evaluation": {"greedy": {"mean": 4.0}}}
    (made.begin_attempt(done) / "result.json").write_text(json.dumps(result))
    made.finish(done)
    made.fail(failed)
    made.write_error(failed, "RuntimeError: no number\n\nTraceback ...")
    made.cell_file(tickets[4].cell_id).write_text("{")
    return made


def test_a_record_says_it_all(queue: Queue, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["status", str(queue.path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["counts"] == {"pending": 1, "running": 1, "done": 1, "failed": 1, "damaged": 1}
    (running,), (done,) = found["running"], found["done"]
    assert (running["agent_steps"], running["score"], running["rate"]) == (400, -20.5, 100.0)
    assert ":" in running["worker"]
    assert (done["score"], done["greedy_mean"]) == (3.0, 4.0)
    assert found["failed"][0]["error"] == "RuntimeError: no number"
    assert "is damaged" in found["damaged"][0]["error"]
    assert found["remaining_seconds"] == pytest.approx(16.0)


def test_a_table_shows_it(queue: Queue, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["status", str(queue.path)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    for word in ("1 pending, 1 running, 1 done, 1 failed, 1 damaged", "-20.50", "no number"):
        assert word in shown


def test_an_empty_queue_and_none_at_all(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Queue.make(tmp_path / "q")
    assert cli.main(["status", str(tmp_path / "q")]) == 0
    assert "no cells; nothing is left to do" in " ".join(capsys.readouterr().out.split())
    for command in ("status", "work"):
        assert cli.main([command, str(tmp_path / "other")]) == 2
        assert "There is no queue" in capsys.readouterr().err
        assert cli.main([command]) == 2
