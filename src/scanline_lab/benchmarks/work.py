"""One piece of work to be timed, in a process of its own.

Takes a `Work`; gives its figures by starting `python -m scanline_lab.benchmarks.work`, so that
threads, allocators and imported peers of one measurement cannot disturb the next.
Knows which driver does the work, not how.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import subprocess
import sys
from dataclasses import dataclass, field
from typing import Any

from scanline import networks

Figures = dict[str, Any]
_MARK = "figures: "


class WorkError(RuntimeError):
    """A measurement ended without figures."""


@dataclass(frozen=True, kw_only=True)
class Work:
    """What is timed, and the library that does it."""

    recipe: str
    game: str
    engine: str
    peer: str | None = None
    """None for scanline, or 'sb3', 'sb3-vector'."""
    like: str | None = None
    """Recipe whose network, protocol and batch this one was given."""
    uneven_seconds: float = 0.0
    """Simulated: shortest step of an environment; the longest takes ten times as long."""
    seconds: float = 20.0
    """Timed seconds, after the warm-up."""
    warm_up_seconds: float = 5.0
    torch_threads: int | None = None
    num_threads: int | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    """Settings of the recipe that differ from its row."""


def measure(work: Work, limit_seconds: float = 600.0) -> Figures:
    """Figures of the work, from a fresh process."""
    command = [
        sys.executable,
        "-m",
        "scanline_lab.benchmarks.work",
        json.dumps(dataclasses.asdict(work)),
    ]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=limit_seconds, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise WorkError(f"{_name(work)} did not finish within {limit_seconds:.0f} s.") from error
    lines = [line for line in done.stdout.splitlines() if line.startswith(_MARK)]
    if done.returncode or not lines:
        raise WorkError(f"{_name(work)} failed:\n{done.stderr.strip()[-3000:]}")
    figures: Figures = json.loads(lines[-1].removeprefix(_MARK))
    return figures


def _name(work: Work) -> str:
    return f"{work.peer or 'scanline'} {work.recipe} on {work.game}"


def main() -> None:
    """Does the work that the first argument describes."""
    networks.own_process()
    work = Work(**json.loads(sys.argv[1]))
    driver = importlib.import_module(".own" if work.peer is None else ".peers.sb3", __package__)
    print(_MARK + json.dumps(driver.run(work)), flush=True)


if __name__ == "__main__":
    main()
