"""The frame of every experiment: measure what is missing, keep it, report.

Takes an experiment, a scale and a folder; gives what came out, and leaves `cells/*.json`,
`results.json`, `report.md` and `plot.png` in the folder. Knows no experiment's inside.

Each cell is kept as soon as it is measured, complete or not at all: a reproduction that was killed
goes on with the first cell that is missing. A kept cell that was measured with other settings is
refused rather than mixed with new ones.
"""

from __future__ import annotations

import fnmatch
import json
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scanline.errors import RefusedError, UserError
from scanline.files import disk_errors, replace_file
from scanline.machine import machine_record
from scanline.runs.folder import versions
from scanline.runs.lock import Lock
from scanline.tables import Table

from . import over_queue
from .claims import Judged, judge
from .experiment import SCALES, Cell, Experiment, Result, Results, Scale

Say = Callable[[str], None]
Record = Mapping[str, Any]
Measure = Callable[[Cell, Results], Result]
REPORT, RESULTS, PLOT, CELLS = "report.md", "results.json", "plot.png", "cells"
QUEUE = "queue"


class KeptCellError(UserError):
    """A kept result does not belong to what was asked for."""


class CellError(RuntimeError):
    """A cell could not be measured."""


@dataclass(frozen=True)
class Outcome:
    """What a reproduction came to."""

    folder: Path
    results: Mapping[str, Result]
    tables: Sequence[Table]
    claims: Sequence[Judged]

    @property
    def report(self) -> str:
        return (self.folder / REPORT).read_text()


def reproduce(
    experiment: Experiment,
    scale: Scale = "smoke",
    out: Path | None = None,
    *,
    only: Sequence[str] = (),
    fresh: bool = False,
    say: Say = print,
) -> Outcome:
    """Measures the cells that are missing and writes the report.

    `only` are patterns of names: other cells are not measured now, but reported where kept.
    """
    if scale not in SCALES:
        raise RefusedError(f"scale={scale!r} is unknown; one of {', '.join(SCALES)}.")
    folder = out or Path("reproduced") / f"{experiment.name}-{scale}"
    with disk_errors(f"the folder {folder}", "choose another one with --out"):
        (folder / CELLS).mkdir(parents=True, exist_ok=True)
    lock = Lock(folder)
    try:
        records = measure_all(experiment, scale, folder / CELLS, only, fresh, say)
        return _report(experiment, scale, folder, records)
    finally:
        lock.release()


def measure_all(
    experiment: Experiment,
    scale: Scale,
    folder: Path,
    only: Sequence[str],
    fresh: bool,
    say: Say,
) -> dict[str, Record]:
    """Every asked cell's record, kept or new, and what is kept of the others, in order."""
    cells = list(experiment.cells(scale))
    _refuse_doubles(cells)
    asked = _asked(cells, only)
    kept = _kept([cell for cell in cells if not (fresh and cell.name in asked)], folder)
    cells = [cell for cell in cells if cell.name in asked or cell.name in kept]
    missing_cells = [cell for cell in cells if cell.name not in kept]
    if fresh:
        shutil.rmtree(folder.parent / QUEUE, ignore_errors=True)  # its finished runs are old ones
    measure = _measure_of(experiment, missing_cells, folder.parent / QUEUE)
    records: dict[str, Record] = {}
    begun, num_new = time.monotonic(), 0
    for number, cell in enumerate(cells, start=1):
        if cell.name in kept:
            records[cell.name] = kept[cell.name]
            continue
        records[cell.name] = _measured(experiment, measure, cell, records)
        _keep(folder, cell, records[cell.name])
        num_new += 1
        missing = sum(later.name not in kept for later in cells[number:])
        left = (time.monotonic() - begun) / num_new * missing
        words = experiment.line(records[cell.name]["result"])
        say(f"[{number}/{len(cells)}] {cell.name}: {words}{_left(left)}")
    return records


def _measure_of(experiment: Experiment, cells: Sequence[Cell], queue: Path) -> Measure:
    """How one of the cells is measured; runs of a queue are carried out first, side by side."""
    if experiment.measure is not None:
        return experiment.measure
    read = experiment.measure_run
    assert read is not None, "an experiment has one of measure and measure_run"
    folders = over_queue.carry_out(cells, queue) if cells else {}

    def measured(cell: Cell, before: Results) -> Result:
        if cell.name not in folders:
            raise RuntimeError(f"its run has failed; see `scanline status {queue}`")
        return read(folders[cell.name])

    return measured


def _measured(
    experiment: Experiment, measure: Measure, cell: Cell, before: Mapping[str, Record]
) -> Record:
    begun = time.monotonic()
    results = {name: record["result"] for name, record in before.items()}
    try:
        result = measure(cell, results)
    except UserError:
        raise
    except Exception as error:
        raise CellError(
            f"The cell {cell.name} of {experiment.name} could not be measured ({error}); the "
            "cells before it are kept, and the same command goes on from here."
        ) from error
    return {
        "settings": _plain(cell.settings),
        "seconds": round(time.monotonic() - begun, 3),
        "machine": machine_record(),
        "versions": versions(),
        "result": _plain(result),
    }


def _left(seconds: float) -> str:
    return f"; about {seconds / 60:.0f} min left" if seconds >= 60 else ""


def _asked(cells: Sequence[Cell], only: Sequence[str]) -> set[str]:
    """Names that fit one of the patterns; all of them without any."""
    names = [cell.name for cell in cells]
    for pattern in only:
        if not fnmatch.filter(names, pattern):
            raise RefusedError(f"No cell is named like {pattern!r}; they are {', '.join(names)}.")
    return {name for pattern in only or ("*",) for name in fnmatch.filter(names, pattern)}


def _refuse_doubles(cells: Sequence[Cell]) -> None:
    names = [cell.name for cell in cells]
    doubles = sorted({name for name in names if names.count(name) > 1})
    if doubles:
        raise ValueError(f"The cells {', '.join(doubles)} appear twice; name them apart.")


def _kept(cells: Sequence[Cell], folder: Path) -> dict[str, Record]:
    """Results of earlier runs that are those of these cells."""
    found: dict[str, Record] = {}
    for cell in cells:
        path = folder / f"{cell.name}.json"
        if not path.exists():
            continue
        try:
            record = json.loads(path.read_text())
        except ValueError:
            raise KeptCellError(f"{path} is not JSON; remove it to measure it again.") from None
        if record.get("settings") != _plain(cell.settings):
            raise KeptCellError(
                f"{path} was measured with other settings than this version asks for; measure all "
                "anew with --fresh, or choose another folder with --out."
            )
        found[cell.name] = record
    return found


def _keep(folder: Path, cell: Cell, record: Record) -> None:
    with disk_errors(f"the result of {cell.name}", "free some space; the same command goes on"):
        replace_file(folder / f"{cell.name}.json", _json(record))


def _report(
    experiment: Experiment, scale: Scale, folder: Path, records: Mapping[str, Record]
) -> Outcome:
    """Tables, claims and picture of the results."""
    results = {name: record["result"] for name, record in records.items()}
    tables = list(experiment.tables(scale, results))
    judged = judge(experiment.claims, scale, results)
    outcome = Outcome(folder, results, tables, judged)
    record = {
        "experiment": experiment.name,
        "paper": experiment.paper,
        "scale": scale,
        "machine": machine_record(),
        "tables": [table.record() for table in tables],
        "claims": [_claim_record(each) for each in judged],
        "cells": records,
    }
    with disk_errors(f"the report in {folder}", "free some space; the same command goes on"):
        if experiment.plot is not None:
            experiment.plot(scale, results, folder / PLOT)
        replace_file(folder / RESULTS, _json(record))
        replace_file(folder / REPORT, _markdown(experiment, scale, outcome).encode())
    return outcome


def _markdown(experiment: Experiment, scale: Scale, outcome: Outcome) -> str:
    machine = machine_record()
    about = f"{machine['processor']}, {machine['num_cores']} cores"
    parts = [
        f"# {experiment.name}",
        experiment.summary,
        f"{experiment.paper}. Scale: {scale}. Machine: {about}.",
        *(f"- {note}" for note in experiment.notes),
        *(table.markdown() for table in outcome.tables),
    ]
    if outcome.claims:
        parts += ["### Claims of the paper", "\n".join(map(_claim_line, outcome.claims))]
    if experiment.plot is not None:
        parts.append(f"![{experiment.name}]({PLOT})")
    return "\n\n".join(parts) + "\n"


def _claim_line(judged: Judged) -> str:
    measured = f" Here: {judged.measured}." if judged.measured else ""
    return f"- **{judged.verdict}**: {judged.claim.sentence} ({judged.claim.source}){measured}"


def _claim_record(judged: Judged) -> Record:
    return {
        "claim": judged.claim.sentence,
        "source": judged.claim.source,
        "verdict": judged.verdict,
        "measured": judged.measured,
    }


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """As JSON gives it back."""
    plain: dict[str, Any] = json.loads(json.dumps(values))
    return plain


def _json(record: Record) -> bytes:
    return (json.dumps(record, indent=1) + "\n").encode()
