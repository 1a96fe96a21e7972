"""Benchmark results: rows, their machine, their table.

Takes figures of interleaved repeats; gives rows with median and spread, JSON and a printed table.
Knows no engine and no recipe: a row is a dictionary.
"""

from __future__ import annotations

import json
import platform
import statistics
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy
import torch

from scanline.files import replace_file
from scanline.machine import machine_record
from scanline.tables import aligned

Row = dict[str, Any]


def machine() -> Row:
    """What the figures were measured on."""
    return machine_record() | {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": numpy.__version__,
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
    }


def summary(repeats: Sequence[Mapping[str, Any]], bounds: Collection[str] = ()) -> Row:
    """Median of each figure, and the spread (highest less lowest, over the figure) of each.

    Of `bounds`, which others are compared with as upper bounds, the highest. What is no number,
    such as a note with histograms, is that of the last repeat.
    """
    row: Row = {}
    for name in repeats[0]:
        values = [repeat[name] for repeat in repeats]
        if not isinstance(values[-1], int | float):
            row[name] = values[-1]
            continue
        row[name] = max(values) if name in bounds else statistics.median(values)
        row[f"{name}_spread"] = round((max(values) - min(values)) / (row[name] or 1.0), 4)
    return row | {"repeats": len(repeats)}


def write_json(path: Path, rows: Sequence[Row]) -> None:
    """`{"machine": ..., "rows": [...]}`, complete or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    record = {"machine": machine(), "rows": list(rows)}
    replace_file(path, (json.dumps(record, indent=1) + "\n").encode())


def print_table(rows: Sequence[Row], columns: Mapping[str, str], title: str) -> None:
    """The rows for a person: figures by name, each under its short heading; never cut."""
    cells = [[_cell(name, row.get(name)) for name in columns] for row in rows]
    print(f"\n{title}", *aligned([list(columns.values()), *cells], gap=1), sep="\n")


def _cell(name: str, value: Any) -> str:
    if value is None:
        return "-"
    if name.endswith("_spread"):
        return f"{value:.0%}"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return str(value)
