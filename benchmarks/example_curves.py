"""Curves of the examples on their toy games, for the pages in docs/examples.

Takes names of examples (all by default); runs the toy command in the opening words of each file,
with three seeds, and draws the mean score of the last 100 games over agent steps:

    python benchmarks/example_curves.py [NAME...]

The pages quote the same command, so a picture is what a reader will see.
"""

from __future__ import annotations

import ast
import json
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from matplotlib.figure import Figure

ROOT = Path(__file__).parents[1]
SEEDS = (0, 1, 2)
QUIET = ("--num-workers", "0", "--torch-threads", "1", "--no-live", "--no-tensorboard")
LOGGED = ("--log-every-agent-steps", "500")


def toy_command(file: Path) -> list[str]:
    """The first command of the file's opening words that plays a toy game."""
    words = ast.get_docstring(ast.parse(file.read_text())) or ""
    lines = words.replace("\\\n", " ").splitlines()
    toys = [line.partition("#")[0] for line in lines if "train" in line and "scanline/" in line]
    return shlex.split(toys[0])


def curve(file: Path, seed: int) -> tuple[list[int], list[float]]:
    """Agent steps and scores of one run."""
    _, verb, _, *rest = toy_command(file)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        own = ["--seed", str(seed), "--out", str(out), *QUIET, *LOGGED]
        command = [sys.executable, "-m", "scanline", verb, str(file), *rest, *own]
        subprocess.run(command, check=True, capture_output=True, timeout=1200)
        rows = [json.loads(row) for row in (out / "progress.jsonl").read_text().splitlines()]
    scored = [row for row in rows if row.get("charts/episodic_return") is not None]
    return (
        [row["agent_steps"] for row in scored],
        [row["charts/episodic_return"] for row in scored],
    )


def draw(file: Path) -> None:
    figure = Figure(figsize=(4.2, 2.2), dpi=80, layout="tight")
    axes = figure.subplots()
    for seed in SEEDS:
        axes.plot(*curve(file, seed), linewidth=1.2, label=f"seed {seed}")
    axes.set_xlabel("agent steps")
    axes.set_ylabel("score, last 100 games")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=7)
    figure.savefig(ROOT / "docs" / "examples" / f"{file.stem}.png")


def main() -> int:
    named = [f"{name}.py" for name in sys.argv[1:]]
    files = [ROOT / "examples" / name for name in named] or [
        file
        for file in sorted((ROOT / "examples").glob("*.py"))
        if (ROOT / "docs" / "examples" / f"{file.stem}.md").exists()
    ]
    for file in files:
        draw(file)
        print(f"docs/examples/{file.stem}.png", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
