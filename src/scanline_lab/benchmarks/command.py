"""`scanline bench NAME`: words to a bench's own record, its rows to a table and JSON.

Takes words of the command line; gives an exit code. Knows which benches there are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import tyro

from scanline.errors import RefusedError, refusals

from . import emulation, learners, training
from .rows import Row, write_json


def run(words: list[str], program: str) -> int:
    """The command: the first word names the bench."""
    if words[:1] and words[0] in ("-h", "--help"):
        print(f"usage: {program} NAME [options]\n\nNAME is one of {', '.join(BENCHES)};")
        print(f"`{program} NAME --help` has the options of each.")
        return 0
    if not words or words[0] not in BENCHES:
        raise RefusedError(f"bench needs one of {', '.join(BENCHES)}.")
    return BENCHES[words[0]](words[1:], f"{program} {words[0]}")


def bench_training(words: list[str], program: str) -> int:
    with refusals():
        bench = tyro.cli(training.TrainingBench, args=words, prog=program)
    rows = training.run(bench)
    training.show(rows)
    return _kept(rows, bench.json)


def bench_emulation(words: list[str], program: str) -> int:
    with refusals():
        bench = tyro.cli(emulation.EmulationBench, args=words, prog=program)
    rows = emulation.run(bench)
    emulation.show(rows)
    if bench.plot is not None:
        emulation.plot(rows, bench.plot)
    return _kept(rows, bench.json)


def bench_learners(words: list[str], program: str) -> int:
    with refusals():
        bench = tyro.cli(learners.LearnersBench, args=words, prog=program)
    rows = learners.run(bench)
    learners.show(rows)
    return _kept(rows, bench.json)


def _kept(rows: Sequence[Row], path: Path | None) -> int:
    if path is not None:
        write_json(path, rows)
    return 0


BENCHES: Mapping[str, Callable[[list[str], str], int]] = {
    "emulation": bench_emulation,
    "learners": bench_learners,
    "training": bench_training,
}
