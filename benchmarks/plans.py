"""What `train --plan` foretells beside what the command reaches, for six recipes and two games.

Takes recipes, games and seconds; prints a table and writes it as JSON. Every plan measures this
machine anew (its rates are kept in a folder that is thrown away), and its run follows at once, so
both meet the same machine. Other programs must be closed.

    python benchmarks/plans.py --out benchmarks/results/plans.json
"""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro

from scanline.reports import read_run
from scanline_lab.benchmarks.learners import rates_of
from scanline_lab.benchmarks.rows import print_table, write_json

SHORT_REPLAY = ["--capacity-agent-steps=20_000", "--learning-starts-agent-steps=2_000"]
CHANGES = {"dqn": SHORT_REPLAY}
"""A replay that learns after seconds, so that a short run shows what a long one does."""
WARM_UP_SECONDS = 6.0
COLUMNS = {
    "recipe": "recipe",
    "game": "game",
    "predicted_sps": "predicted steps/s",
    "measured_sps": "measured steps/s",
    "error": "error",
}


@dataclass(frozen=True, kw_only=True)
class Plans:
    """Plans beside runs."""

    out: Path
    """File for the rows."""
    recipes: str = "paac,a2c,ppo,vtrace,dqn,ga3c"
    """Recipes by commas."""
    games: str = "pong,riverraid"
    """Games by commas."""
    seconds: float = 15.0
    """Timed seconds of a run, after its warm-up."""


def command(recipe: str, game: str) -> list[str]:
    changes = CHANGES.get(recipe, [])
    return [sys.executable, "-m", "scanline", "train", recipe, game, "--no-live", *changes]


def planned_sps(recipe: str, game: str) -> float:
    """The plan's agent steps per second, with nothing remembered of this machine."""
    with tempfile.TemporaryDirectory() as cache:
        env = {**os.environ, "SCANLINE_CACHE": cache}
        words = [*command(recipe, game), "--plan"]
        said = subprocess.run(words, capture_output=True, text=True, check=True, env=env).stdout
    found = re.search(r"About ([\d,]+) agent steps/s", said)
    assert found is not None, said
    return float(found[1].replace(",", ""))


def reached_sps(recipe: str, game: str, seconds: float) -> float:
    """Agent steps per second of a run, without its first seconds."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        limits = [f"--seconds={WARM_UP_SECONDS + seconds}", "--log-every-agent-steps=200"]
        words = [*command(recipe, game), *limits, "--no-tensorboard", f"--out={out}"]
        subprocess.run(words, capture_output=True, text=True, check=True)
        return rates_of(read_run(out).rates, WARM_UP_SECONDS)["agent_sps"]


def compared(recipe: str, game: str, seconds: float) -> dict[str, Any]:
    predicted, measured = planned_sps(recipe, game), reached_sps(recipe, game, seconds)
    row = {"recipe": recipe, "game": game, "predicted_sps": predicted, "measured_sps": measured}
    return row | {"error": round(predicted / measured - 1, 3)}


def main(plans: Plans) -> None:
    rows = []
    for game in plans.games.split(","):
        for recipe in plans.recipes.split(","):
            rows.append(compared(recipe, game, plans.seconds))
            print(rows[-1], flush=True)
    print_table(rows, COLUMNS, "Plans and runs")
    middle = statistics.median(abs(row["error"]) for row in rows)
    print(f"Median of the errors without their signs: {middle:.0%}.")
    write_json(plans.out, rows)


if __name__ == "__main__":
    main(tyro.cli(Plans))
