"""Real workers and runs, killed, suspended and stopped: the result is that of a run alone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import scanline
from scanline import cli
from scanline.queue.cells import Cell
from scanline.queue.folder import Queue
from scanline.queue.result import weights_sha256

CATCH = "scanline/Catch-v0"
SETTINGS: dict[str, Any] = {
    "network": "mlp",
    "num_envs": 8,
    "num_workers": 0,
    "num_threads": 1,
    "torch_threads": 1,
    "save_every_agent_steps": 400,
    "log_every_agent_steps": 400,
    "replay_segment_agent_steps": 200,
    "tensorboard": False,
    "evaluation_games": 2,
    "agent_steps": 4_000,
    "capacity_agent_steps": 1_500,
    "batch_size": 16,
    "learning_starts_agent_steps": 200,
    "target_agent_steps": 240,
    "training_intensity": 0.5,
}
LEASE = "2"


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Weights of the run that nothing disturbs."""
    out = tmp_path_factory.mktemp("alone") / "run"
    scanline.train("dqn", CATCH, out=out, say=lambda s: None, live=False, **SETTINGS)
    return weights_sha256(out)


@pytest.fixture
def queue(tmp_path: Path) -> Queue:
    made = Queue.make(tmp_path / "q")
    made.add(Cell(recipe="dqn", game=CATCH, seed=0, settings=SETTINGS))
    return made


@pytest.fixture
def worker(queue: Queue) -> Iterator[Callable[[], subprocess.Popen[str]]]:
    """Starts workers, and ends those that a failed test has left."""
    command = [sys.executable, "-m", "scanline", "work", str(queue.path), "--lease-seconds", LEASE]
    started: list[subprocess.Popen[str]] = []

    def start() -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        started.append(subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def until(true: Callable[[], Any], seconds: float = 180.0) -> Any:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if found := true():
            return found
        time.sleep(0.02)
    raise AssertionError("it did not happen in time")


def saved(queue: Queue) -> list[Path]:
    return list(queue.path.glob("attempts/*/*-*/checkpoints/0*"))


def result(queue: Queue) -> dict[str, Any]:
    (path,) = queue.path.glob("runs/*/result.json")
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def test_a_cell_goes_on_after_its_worker_is_killed_or_stopped(
    queue: Queue, alone: str, worker: Callable[[], Any]
) -> None:
    first = worker()
    until(lambda: saved(queue))
    first.kill()
    first.wait()
    second = worker()
    until(lambda: [t for t in queue.tickets("running") if t.number == 2])
    until(lambda: saved(queue))
    second.send_signal(signal.SIGTERM)
    said = second.communicate(timeout=180)[0]
    assert second.returncode == 0 and said.splitlines()[-1] == "Stopped: 1 given back."
    assert [t.number for t in queue.tickets("pending")] == [2]
    third = worker()
    assert "1 done" in third.communicate(timeout=180)[0] and third.returncode == 0
    assert result(queue)["weights_sha256"] == alone
    assert result(queue)["inexact"] == []
    (run,) = (queue.path / "runs").iterdir()
    assert not list(run.glob("checkpoints/segments/*"))
    assert len(result(queue)["evaluation"]["greedy"]["scores"]) == 2
    assert cli.main(["evaluate", str(run), "--episodes", "1"]) == 0


def test_a_worker_that_was_suspended_past_its_lease_writes_nothing(
    queue: Queue, alone: str, worker: Callable[[], Any]
) -> None:
    first = worker()
    until(lambda: saved(queue))
    os.kill(first.pid, signal.SIGSTOP)  # its run goes on
    second = worker()
    until(lambda: [t for t in queue.tickets("running") if t.number == 2])
    os.kill(first.pid, signal.SIGCONT)
    assert "was taken over by another worker" in first.communicate(timeout=180)[0]
    assert "1 done" in second.communicate(timeout=180)[0]
    assert result(queue)["weights_sha256"] == alone
    assert [t.number for t in queue.tickets("done")] == [2]
