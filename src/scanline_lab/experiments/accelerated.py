"""Accelerated Methods (Stooke and Abbeel 2018): how fast it samples, and how it scales.

`accelerated-sampling` measures Figure 1b and Table 3: sampling rates over numbers of environments,
one group in lockstep against two that alternate, beside sampling without inference; with a real
network on this machine and with a simulated coprocessor. `accelerated-scaling` trains A2C and PPO
with more and more environments (Figure 2).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scanline import training
from scanline.tables import Table

from .accelerated_secondary import PAPER
from .claims import Claim, Finding, claim
from .coprocessor import SimulatedCoprocessor, TinyPolicy
from .experiment import Cell, Experiment, Result, Results, Scale, grid
from .figures import figure
from .learning import as_good, learning_curve, plot_kinds
from .measuring import sampling_rate

PAPER_THOUSANDS = {64: (29.6, 31.9), 128: (33.0, 34.7), 256: (35.7, 36.7), 512: (35.8, 38.4)}
"""Table 3: thousand samples/s on 16 cores and a P100, in step every 5 samples, and free."""

SECONDS_PER_CALL, SECONDS_PER_ITEM = 5e-4, 5e-6
"""Of the simulated device: a small network on a GPU."""

KINDS = ("inference-free", "network-1", "network-2", "simulated-1", "simulated-2")
"""Who decides, and for the last four in how many alternating groups."""

SAMPLING: Mapping[Scale, Mapping[str, Any]] = {
    "smoke": {"num_envs": [8, 32], "seconds": 1.5},
    "desk": {"num_envs": [4, 8, 16, 32, 64, 128, 256], "seconds": 10.0},
    "paper": {"num_envs": [64, 128, 256, 512], "seconds": 60.0},
}


def sampling_cells(scale: Scale) -> list[Cell]:
    axes = {"num_envs": SAMPLING[scale]["num_envs"], "kind": KINDS}
    return grid("{kind}-{num_envs}", axes, seconds=SAMPLING[scale]["seconds"])


def measure_sampling(cell: Cell, before: Results) -> Result:
    kind, seconds = cell.settings["kind"], cell.settings["seconds"]
    changes: dict[str, Any] = {
        "num_envs": cell.settings["num_envs"],
        "num_groups": 2 if kind.endswith("-2") else 1,
        "decorrelation_agent_steps": 0,
    }
    device = None
    if kind.startswith("simulated"):
        changes["network"] = TinyPolicy
        device = SimulatedCoprocessor(SECONDS_PER_CALL, SECONDS_PER_ITEM)
    plan = training.make_plan("accelerated-a2c", "breakout", **changes)
    decider: Any = "random" if kind == "inference-free" else kind.split("-")[0]
    return {"agent_sps": sampling_rate(plan, decider, seconds=seconds, device=device)}


def sampling_tables(scale: Scale, results: Results) -> list[Table]:
    numbers = sorted({int(name.rpartition("-")[2]) for name in results})
    rows = [
        [
            num,
            *(results[f"{kind}-{num}"]["agent_sps"] / 1e3 for kind in KINDS),
            *PAPER_THOUSANDS.get(num, (None, None)),
        ]
        for num in numbers
    ]
    columns = ("envs", "no net", "net x1", "net x2", "SIM x1", "SIM x2", "paper sync", "free")
    note = (
        "x1: one group in lockstep; x2: two groups that alternate. SIM: a SIMULATED device of "
        f"{SECONDS_PER_CALL * 1e3:g} ms per call and {SECONDS_PER_ITEM * 1e6:g} us per item. "
    )
    title = "Table 3: thousand samples/s"
    return [Table(title=title, columns=columns, rows=rows, digits=1, notes=(note,))]


def sampling_plot(scale: Scale, results: Results, path: Path) -> None:
    with figure(path) as (axes,):
        for kind in KINDS:
            own = [(int(n.rpartition("-")[2]), r) for n, r in results.items() if n.startswith(kind)]
            rates = [result["agent_sps"] for _, result in own]
            axes.plot([num for num, _ in own], rates, marker="o", label=kind)
        axes.set(xscale="log", xlabel="environments", ylabel="agent steps/s")
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.3)
        axes.legend(fontsize=7)


def _rate(results: Results, kind: str) -> dict[int, float]:
    return {
        int(name.rpartition("-")[2]): result["agent_sps"]
        for name, result in results.items()
        if name.startswith(kind)
    }


def _alternating_helps(results: Results, kind: str) -> Finding:
    one, two = _rate(results, f"{kind}-1"), _rate(results, f"{kind}-2")
    gains = {num: two[num] / one[num] for num in one}
    words = ", ".join(f"{num} envs {gain:.2f} times" for num, gain in gains.items())
    return Finding(all(gain > 1 for gain in gains.values()), words)


@claim("Sampling speeds up with more environments per core.", "Table 3; simulated coprocessor")
def _rises(results: Results) -> Finding:
    rates = _rate(results, "simulated-2")
    first, last = rates[min(rates)], rates[max(rates)]
    return Finding(last > first, f"{first:,.0f} to {last:,.0f} steps/s on the simulated device")


@claim(
    "With enough environments per core, sampling reaches about 80 % of the inference-free rate.",
    "Figure 1b; simulated coprocessor",
)
def _near_free(results: Results) -> Finding:
    """Inference hidden on the simulated device, against no inference at all."""
    two, free = _rate(results, "simulated-2"), _rate(results, "inference-free")
    best = max(two[num] / free[num] for num in two)
    return Finding(best >= 0.8, f"{best:.0%} at most, on the simulated device")


# Figure 2

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
        name="accelerated-sampling",
        summary="Samples per second over environments: lockstep against alternating groups.",
        paper=f"{PAPER}, Figure 1b and Table 3",
        cells=sampling_cells,
        measure=measure_sampling,
        tables=sampling_tables,
        claims=(
            Claim(
                "Two alternating groups sample faster than one in lockstep.",
                "section 4.1; this machine, where network and games share the cores",
                lambda results: _alternating_helps(results, "network"),
            ),
            Claim(
                "Two alternating groups sample faster than one in lockstep.",
                "section 4.1; simulated coprocessor",
                lambda results: _alternating_helps(results, "simulated"),
            ),
            _rises,
            _near_free,
        ),
        plot=sampling_plot,
        line=lambda result: f"{result['agent_sps']:,.0f} steps/s",
    ),
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
