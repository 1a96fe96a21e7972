"""Steps and minutes until `vtrace` wins Pong, seed by seed: rows and a picture from finished runs.

    scanline train vtrace pong --target-score 17 --seed 40 --out runs/pong-40      and so on, then
    python benchmarks/pong_seeds.py runs/pong-?? --rows FILE.jsonl --picture FILE.png

A run's score is the mean of its last 100 training games. CPU minutes are read from RUN.time, where
`/usr/bin/time -f "%U %S" -o RUN.time` wrote it; they include the 30 games that confirm the score.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot

POINTS = 60
"""Points of a kept curve."""


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def row_of(run: Path) -> dict[str, Any]:
    """What one run came to, with a thinned curve of (agent steps, training seconds, score)."""
    settings = json.loads((run / "settings.json").read_text())["settings"]
    curve = [
        (row["agent_steps"], rate["training_seconds"], row["charts/episodic_return"])
        for row, rate in zip(
            rows_of(run / "progress.jsonl"), rows_of(run / "rates.jsonl"), strict=True
        )
        if row["charts/episodic_return"] is not None
    ]
    last = max((run / "checkpoints").glob("*-agent-steps-*")).name
    clock = run.with_suffix(".time")
    times = clock.read_text().split() if clock.exists() else None
    return {
        "seed": settings["run"]["seed"],
        "agent_steps": int(last.rsplit("-", 1)[1]),
        **{f"agent_steps_to_{score}": reached(curve, score) for score in (15, 17)},
        "cpu_minutes": times and round((float(times[0]) + float(times[1])) / 60, 2),
        "curve": curve[:: max(1, len(curve) // POINTS)],
    }


def reached(curve: list[tuple[int, float, float]], score: float) -> int | None:
    """Agent steps of the first row with this score."""
    return next((steps for steps, _, seen in curve if seen >= score), None)


def draw(rows: list[dict[str, Any]], picture: Path) -> None:
    figure, axes = pyplot.subplots(figsize=(7, 3.6), layout="constrained")
    for row in rows:
        steps, _, scores = zip(*row["curve"], strict=True)
        axes.plot([s / 1e6 for s in steps], scores, linewidth=1.1, label=f"seed {row['seed']}")
    axes.axhline(15, color="#888888", linewidth=0.8, linestyle="--")
    axes.set(xlabel="million agent steps", ylabel="mean score of 100 games", ylim=(-21.5, 21))
    axes.grid(alpha=0.3)
    axes.legend(fontsize=7, ncols=2, loc="lower right")
    figure.savefig(picture, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("runs", type=Path, nargs="+")
    parser.add_argument("--rows", type=Path, required=True)
    parser.add_argument("--picture", type=Path, required=True)
    options = parser.parse_args()
    rows = sorted(
        (row_of(run) for run in options.runs if run.is_dir()), key=lambda row: row["seed"]
    )
    options.rows.write_text("".join(json.dumps(row) + "\n" for row in rows))
    draw(rows, options.picture)
    for row in rows:
        print({name: value for name, value in row.items() if name != "curve"})


if __name__ == "__main__":
    main()
