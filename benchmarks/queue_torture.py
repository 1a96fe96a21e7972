"""A sweep whose workers are killed and suspended: every cell ends once, as a run alone does.

Writes 24 short cells of synchronous recipes, starts two workers, kills them at random with SIGKILL
(the worker alone, or with all its processes) and suspends one past its lease. Then every cell must
be done exactly once, with the weights of the same run alone, bit for bit.

    python benchmarks/queue_torture.py [--namespaces] [--kills 10]

With --namespaces the workers are two hosts: network, host name and process numbers of their own
(needs root and `unshare`), and the second one's clock is an hour late (needs a C compiler).
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import scanline
from scanline.machine import machine_record
from scanline.queue.cells import Cell
from scanline.queue.folder import Queue
from scanline.queue.result import read_result, weights_sha256
from scanline.training import carry_out

CATCH = "scanline/Catch-v0"
COMMON: dict[str, Any] = {
    "network": "mlp",
    "num_envs": 8,
    "num_workers": 0,
    "num_threads": 1,
    "torch_threads": 1,
    "agent_steps": 6_000,
    "log_every_agent_steps": 400,
    "save_every_agent_steps": 400,
    "tensorboard": False,
    "evaluation_games": 2,
}
REPLAY: dict[str, Any] = {
    "capacity_agent_steps": 1_500,
    "batch_size": 16,
    "training_intensity": 0.5,
    "learning_starts_agent_steps": 200,
    "target_agent_steps": 240,
    "replay_segment_agent_steps": 400,
}
RECIPES: dict[str, dict[str, Any]] = {
    "a2c": {},
    "paac": {},
    "ppo": {"rollout_agent_steps": 16},
    "cule-a2c": {},
    "dqn": REPLAY,
    "accelerated-dqn": REPLAY | {"decorrelation_agent_steps": 10},
}
SEEDS = 4
LEASE_SECONDS = 4.0
NAMESPACES = ("unshare", "--net", "--uts", "--pid", "--fork", "--mount-proc", "--kill-child")
MOST_SECONDS = 1800.0
LOST = "was taken over by another worker"


LATE_CLOCK = """
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t id, struct timespec *now) {
    int failed = syscall(SYS_clock_gettime, id, now);
    if (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE) now->tv_sec -= 3600;
    return failed;
}
time_t time(time_t *at) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (at) *at = now.tv_sec;
    return now.tv_sec;
}
int gettimeofday(struct timeval *at, void *zone) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    at->tv_sec = now.tv_sec, at->tv_usec = now.tv_nsec / 1000;
    return 0;
}
"""
"""libfaketime breaks Python's sleeping and waiting, which need a monotonic clock as it is."""


def late_clock(folder: Path) -> dict[str, str]:
    """Environment of a process whose wall clock is an hour late; empty without a C compiler."""
    if shutil.which("cc") is None:
        return {}
    library = folder / "late_clock.so"
    words = ["cc", "-shared", "-fPIC", "-o", str(library), "-xc", "-"]
    subprocess.run(words, input=LATE_CLOCK, text=True, check=True)
    return {"LD_PRELOAD": str(library)}


class Host:
    """One worker at a time, started again whenever it was killed."""

    def __init__(self, name: str, queue: Path, namespaces: bool, env: dict[str, str]) -> None:
        self.name, self._queue, self._namespaces = name, queue, namespaces
        self._env = {**os.environ, **env}
        self.log = queue.with_name(f"{name}.txt")
        self.kills = self.suspensions = self.starts = 0
        self.start()

    def start(self) -> None:
        words = [sys.executable, "-m", "scanline", "work", str(self._queue), "--slots", "1"]
        words += ["--lease-seconds", str(LEASE_SECONDS)]
        if self._namespaces:
            script = f'hostname {self.name} && exec "$@"'
            words = [*NAMESPACES, "sh", "-c", script, "sh", *words]
        with open(self.log, "a") as output:
            self._process = subprocess.Popen(
                words,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env=self._env,
            )
        self.starts += 1

    @property
    def ended(self) -> bool:
        return self._process.poll() is not None

    def kill(self, with_runs: bool) -> None:
        """Kills the worker, and with `with_runs` all its processes at the same moment."""
        victims = self._worker_and_runs()
        for pid in victims if with_runs else victims[:1]:
            _send(pid, signal.SIGKILL)
        self._process.kill()
        self._process.wait()
        self.kills += 1

    def suspend(self, with_runs: bool) -> None:
        """Stops the worker until another has taken its cell over, then lets it find that out."""
        victims = self._worker_and_runs()
        stopped = victims if with_runs else victims[:1]
        folder = self.run_folder()
        for pid in stopped:
            _send(pid, signal.SIGSTOP)
        _wait(lambda: folder is not None and not folder.exists())
        for pid in stopped:
            _send(pid, signal.SIGCONT)
        _wait(lambda: LOST in self.log.read_text())
        self.suspensions += 1

    def run_folder(self) -> Path | None:
        """Where the worker's run writes, if it has one."""
        for pid in self._worker_and_runs():
            words = _words(pid).split("\0")
            if "scanline.queue.child" in words:
                return Path(json.loads(words[words.index("scanline.queue.child") + 1])["folder"])
        return None

    def _worker_and_runs(self) -> list[int]:
        """The worker's process, then those that it has started."""
        below = _descendants(self._process.pid)
        own = [pid for pid in (self._process.pid, *below) if "scanline\0work" in _words(pid)]
        workers = [pid for pid in own if "unshare" not in _words(pid)[:20]] or own
        return [workers[-1], *_descendants(workers[-1])] if workers else []


def _send(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def _words(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


def _descendants(pid: int) -> list[int]:
    try:
        found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [each for child in map(int, found) for each in (child, *_descendants(child))]


def cells(seeds: int = SEEDS) -> list[Cell]:
    return [
        Cell(recipe=name, game=CATCH, seed=seed, settings={**COMMON, **own})
        for name, own in RECIPES.items()
        for seed in range(seeds)
    ]


def alone(cell: Cell, folder: Path) -> str:
    """Weights of the same run without queue and disturbance."""
    carry_out(cell.plan(live=False), out=folder, resume=False, say=lambda sentence: None)
    found = weights_sha256(folder)
    shutil.rmtree(folder)
    return found


def torture(queue: Queue, hosts: list[Host], num_kills: int, chance: random.Random) -> None:
    """Disturbs until there were enough kills, one suspension, and every cell is done."""
    deadline = time.monotonic() + MOST_SECONDS
    total = len(queue.cell_ids())
    seen: set[str] = set()
    while len(queue.tickets("done")) + len(queue.tickets("failed")) < total:
        seen = _wait_for_a_checkpoint(queue, seen)
        time.sleep(chance.uniform(0.0, 4.0))
        if time.monotonic() > deadline:
            raise SystemExit("It took too long; see the workers' logs.")
        for host in hosts:
            if host.ended and len(queue.tickets("done")) < total:
                host.start()
        host = chance.choice(hosts)
        num_done, kills = len(queue.tickets("done")), sum(host.kills for host in hosts)
        if not any(host.suspensions for host in hosts) and kills >= 2 and num_done >= 2:
            holder = next((host for host in hosts if host.run_folder()), None)
            if holder is not None:
                print(f"{num_done} done: {holder.name} is suspended", flush=True)
                holder.suspend(with_runs=chance.random() < 0.5)
        elif kills < num_kills or chance.random() < 0.2:
            with_runs = chance.random() < 0.5
            print(f"{num_done} done: {host.name} is killed", flush=True)
            host.kill(with_runs)
            host.start()


def _wait(true: Callable[[], object], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and not true():
        time.sleep(0.05)


def _wait_for_a_checkpoint(queue: Queue, seen: set[str]) -> set[str]:
    """Waits for one that was not seen before: a kill that loses nothing shows nothing."""

    def found() -> set[str]:
        return {str(path) for path in queue.path.glob("attempts/*/*-*/checkpoints/0*")}

    _wait(lambda: found() - seen)
    return seen | found()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--namespaces", action="store_true")
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=SEEDS, help="of each of the six recipes")
    results = Path(__file__).parent / "results" / "queue-torture.json"
    parser.add_argument("--json", type=Path, default=results)
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(143))  # workers end with it
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        queue = Queue.make(Path(folder) / "q")
        swept = cells(given.seeds)
        for cell in swept:
            queue.add(cell)
        late = late_clock(Path(folder)) if given.namespaces else {}
        hosts = [
            Host("punctual", queue.path, given.namespaces, {}),
            Host("late", queue.path, given.namespaces, late),
        ]
        try:
            torture(queue, hosts, given.kills, random.Random(given.seed))
        finally:
            for host in hosts:
                host.kill(with_runs=True)
        queue.settle()
        record = judged(queue, hosts, swept, Path(folder) / "alone")
    record |= {
        "namespaces": given.namespaces,
        "clock_an_hour_late": bool(late),
        "minutes": (time.monotonic() - begun) / 60,
        "scanline": scanline.__version__,
        "machine": machine_record(),
    }
    given.json.write_text(json.dumps(record, indent=1) + "\n")
    show(record)
    if not record["all_once_and_equal"]:
        raise SystemExit(1)


def judged(queue: Queue, hosts: list[Host], swept: list[Cell], folder: Path) -> dict[str, Any]:
    """What became of every cell, beside the run alone."""
    words = "".join(host.log.read_text() for host in hosts)
    # A worker that is killed right after its commit has no time to say so.
    said = Counter(line.split()[0] for line in words.splitlines() if line.endswith(" is done."))
    done = {ticket.cell_id: ticket.number for ticket in queue.tickets("done")}
    rows = []
    for cell in swept:
        result = read_result(queue.run(cell.id)) or {}
        rows.append(
            {
                "cell": cell.id,
                "claims": done.get(cell.id),
                "said_done": said[cell.id],
                "equal": result.get("weights_sha256") == alone(cell, folder),
                "inexact": result.get("inexact"),
            }
        )
    tickets = [t.cell_id for s in ("pending", "running", "failed") for t in queue.tickets(s)]  # type: ignore[arg-type]
    once = len(done) == len(rows) == len(queue.tickets("done")) and not tickets
    return {
        "cells": rows,
        "kills": sum(host.kills for host in hosts) - len(hosts),
        "suspensions": sum(host.suspensions for host in hosts),
        "taken_over": words.count("is taken over."),
        "lost_by_suspended_workers": words.count(LOST),
        "all_once_and_equal": once
        and all(row["equal"] and row["said_done"] <= 1 and not row["inexact"] for row in rows),
    }


def show(record: dict[str, Any]) -> None:
    print("| cell | claims | equal to a run alone |\n|---|---|---|")
    for row in record["cells"]:
        print(f"| {row['cell']} | {row['claims']} | {'yes' if row['equal'] else 'NO'} |")
    print(
        f"{record['kills']} kills, {record['suspensions']} suspension, {record['taken_over']} "
        f"takeovers, {record['lost_by_suspended_workers']} claims lost while suspended, "
        f"{record['minutes']:.1f} minutes: {'all' if record['all_once_and_equal'] else 'NOT all'} "
        "cells done once and equal."
    )


if __name__ == "__main__":
    main()
