"""Cells that are whole training runs: carried out by a worker of a queue, side by side, resumable.

Takes cells whose settings are those of a sweep (recipe, game, seed and public settings); gives the
folder of every finished run. Knows no experiment.

The queue lies beside the results. A reproduction that is stopped goes on where its runs stopped,
and other machines that see the folder may help with `scanline work`.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from scanline.queue.cells import Cell as Run
from scanline.queue.folder import Queue
from scanline.queue.sweep import made_of

from .experiment import Cell

OWN = ("recipe", "game", "seed")


def carry_out(cells: Sequence[Cell], path: Path) -> dict[str, Path]:
    """Runs what is missing; gives the folders of finished runs by the names of their cells.

    Raises KeyboardInterrupt where the worker was stopped before all runs were finished or failed.
    """
    queue = Queue.make(path)
    runs = {cell.name: run_of(cell.settings) for cell in cells}
    for run in runs.values():
        queue.add(run)
    if any(not queue.run(run.id).is_dir() for run in runs.values()):
        subprocess.run([sys.executable, "-m", "scanline", "work", str(path), "--nice"], check=True)
        if queue.tickets("pending") or queue.tickets("running"):
            raise KeyboardInterrupt("the worker was stopped")
    folders = {name: queue.run(run.id) for name, run in runs.items()}
    return {name: folder for name, folder in folders.items() if folder.is_dir()}


def run_of(settings: Mapping[str, Any]) -> Run:
    """The run of a cell."""
    axes = {name: value for name, value in settings.items() if name not in OWN}
    keys = {"recipes": settings["recipe"], "games": settings["game"], "seeds": 1}
    [run] = made_of({**keys, "first_seed": settings["seed"], **axes}).cells()
    return run
