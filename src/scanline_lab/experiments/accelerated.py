"""Accelerated Methods (Stooke and Abbeel 2018): A2C and PPO with more and more environments.

`accelerated-scaling` trains both over numbers of environments (Figure 2).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scanline.tables import Table

from .accelerated_secondary import PAPER
from .claims import Claim
from .experiment import Cell, Experiment, Result, Results, Scale
from .learning import as_good, learning_curve, plot_kinds

SCALING: Mapping[Scale, Mapping[str, Any]] = {
    "smoke": {"a2c": [16, 64], "ppo": [8, 32], "agent_steps": 8_192, "game": "pong"},
    "desk": {
        "a2c": [16, 32, 64, 128],
        "ppo": [8, 32, 128],
        "agent_steps": 2_000_000,
        "game": "pong",
    },
    "paper": {
        "a2c": [16, 32, 64, 128, 256, 512],
        "ppo": [8, 16, 32, 64, 128, 256, 512],
        "agent_steps": 50_000_000,
        "game": "breakout",
    },
}


def scaling_cells(scale: Scale) -> list[Cell]:
    sizes = SCALING[scale]
    shared = {"agent_steps": sizes["agent_steps"], "game": sizes["game"]}
    return [
        Cell(name=f"{kind}-{num}", settings={"kind": kind, "num_envs": num, **shared})
        for kind in ("a2c", "ppo")
        for num in sizes[kind]
    ]


def measure_scaling(cell: Cell, before: Results) -> Result:
    asked = cell.settings
    recipe, steps = f"accelerated-{asked['kind']}", asked["agent_steps"]
    most = min(2_000, steps // asked["num_envs"] // 4)
    return learning_curve(
        recipe,
        asked["game"],
        agent_steps=steps,
        num_envs=asked["num_envs"],
        decorrelation_agent_steps=most,
    )


def scaling_tables(scale: Scale, results: Results) -> list[Table]:
    rows = [
        [name, r["agent_steps"], round(r["agent_sps"]), r["updates"], r["score"]]
        for name, r in results.items()
    ]
    columns = ("algorithm-envs", "agent steps", "steps/s", "updates", "score")
    return [Table(title="Figure 2: scores at the end", columns=columns, rows=rows)]


def scaling_plot(scale: Scale, results: Results, path: Path) -> None:
    plot_kinds(path, results, ("a2c", "ppo"))


EXPERIMENTS = (
    Experiment(
        name="accelerated-scaling",
        summary="A2C and PPO with more and more environments: scores and rates.",
        paper=f"{PAPER}, Figure 2",
        cells=scaling_cells,
        measure=measure_scaling,
        tables=scaling_tables,
        claims=(
            Claim(
                "A2C scales to many environments with a rate of sqrt(envs).",
                "section 5.2",
                lambda results: as_good(results, "a2c"),
                scales=("paper",),
            ),
            Claim(
                "PPO scales to many environments with the samples per update held.",
                "section 5.2",
                lambda results: as_good(results, "ppo"),
                scales=("paper",),
            ),
        ),
        plot=scaling_plot,
        line=lambda result: f"score {result['score']} at {result['agent_sps']:,.0f} steps/s",
    ),
)
