"""Which packing gives the most results per hour: one run on all cores, or several on one core each.

Runs the same cells of a recipe through a queue in both ways, for a game with still pictures and one
whose whole picture moves, and prints minutes and cells per hour. Close other programs first.

    python benchmarks/queue_packing.py [--recipe vtrace] [--cells 12] [--agent-steps 200_000]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from scanline.machine import machine_record
from scanline.processes import granted_core_ids
from scanline.queue.folder import Queue
from scanline.queue.sweep import made_of


def packed(game: str, cores: int, slots: int, given: argparse.Namespace) -> dict[str, Any]:
    """Time of all cells with so many cores for each and so many side by side."""
    keys = {
        **{"recipes": given.recipe, "games": game, "seeds": given.cells},
        **{"agent_steps": given.agent_steps, "num_threads": cores, "torch_threads": cores},
        **{"tensorboard": False, "evaluation_games": given.evaluation_games},
    }
    with tempfile.TemporaryDirectory() as folder:
        queue = Queue.make(Path(folder) / "q")
        for cell in made_of(keys).cells():
            queue.add(cell)
        words = ["--slots", str(slots), "--cores-per-run", str(cores)]
        command = [sys.executable, "-m", "scanline", "work", str(queue.path), *words]
        begun = time.monotonic()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        seconds = time.monotonic() - begun
        assert len(queue.tickets("done")) == given.cells, "some cells have failed"
    return {
        "game": game,
        "cores_per_run": cores,
        "slots": slots,
        "minutes": seconds / 60,
        "cells_per_hour": given.cells * 3600 / seconds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--recipe", default="vtrace")
    parser.add_argument("--games", nargs="*", default=["pong", "riverraid"])
    parser.add_argument("--cells", type=int, default=12)
    parser.add_argument("--agent-steps", type=int, default=200_000)
    parser.add_argument("--evaluation-games", type=int, default=2)
    parser.add_argument(
        "--json", type=Path, default=Path(__file__).parent / "results" / "queue-packing.json"
    )
    given = parser.parse_args()
    all_cores, rows = len(granted_core_ids()), []
    print(
        "| game | cores per run | side by side | minutes | cells per hour |\n|---|---|---|---|---|"
    )
    for game in given.games:
        for cores, slots in ((all_cores, 1), (1, all_cores)):
            row = packed(game, cores, slots, given)
            rows.append(row)
            cells = (game, cores, slots, f"{row['minutes']:.1f}", f"{row['cells_per_hour']:.1f}")
            print(f"| {' | '.join(map(str, cells))} |", flush=True)
    settings = {"recipe": given.recipe, "cells": given.cells, "agent_steps": given.agent_steps}
    record = {"machine": machine_record(), **settings, "rows": rows}
    given.json.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
