"""`scanline bench NAME`: words to a bench's own record, its rows to a table and JSON.

Takes words of the command line; gives an exit code. Knows which benches there are.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any

import tyro

from scanline.errors import RefusedError, refusals

from . import emulation, learners, training
from .rows import write_json

BENCHES: Mapping[str, tuple[ModuleType, type[Any]]] = {
    "emulation": (emulation, emulation.EmulationBench),
    "learners": (learners, learners.LearnersBench),
    "training": (training, training.TrainingBench),
}
"""Modules with `run` and `show`, and the record of their options."""


def run(words: list[str], program: str) -> int:
    """The command: the first word names the bench."""
    if words[:1] and words[0] in ("-h", "--help"):
        print(f"usage: {program} NAME [options]\n\nNAME is one of {', '.join(BENCHES)};")
        print(f"`{program} NAME --help` has the options of each.")
        return 0
    if not words or words[0] not in BENCHES:
        raise RefusedError(f"bench needs one of {', '.join(BENCHES)}.")
    module, options = BENCHES[words[0]]
    with refusals():
        bench = tyro.cli(options, args=words[1:], prog=f"{program} {words[0]}")
    rows = module.run(bench)
    module.show(rows)
    if getattr(bench, "plot", None) is not None:
        emulation.plot(rows, bench.plot)
    if bench.json is not None:
        write_json(bench.json, rows)
    return 0
