"""PAAC (Clemente 2017): where the time goes, and what more environments do to learning.

`paac-time-usage` measures Figure 2: shares of environment, learning and action selection over the
number of environments, for both networks. `paac-scaling` trains with 16 to 256 environments and a
learning rate in proportion (Figures 3 and 4).
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scanline.tables import Table
from scanline.timing import Stretch

from .claims import Finding, claim
from .experiment import Cell, Experiment, Result, Results, Scale, grid
from .figures import figure
from .learning import by_game, learning_curve, plot_groups, steps_to
from .measuring import stretch

PAPER = "Clemente 2017, Efficient Parallel Methods for Deep Reinforcement Learning"
NETWORKS = {"nips": "nips", "nature": "nature-uniform"}
PARTS = ("environment", "learning", "acting", "other")
PAPER_SHARES = {"environment": 50.0, "learning and acting": 37.0}
"""Percent of the time with 32 environments and the small network."""

USAGE: Mapping[Scale, Mapping[str, Any]] = {
    "smoke": {"num_envs": [16, 32, 64], "seconds": 3.0, "warm_up": 1.0},
    "desk": {"num_envs": [16, 32, 64, 128, 256], "seconds": 20.0, "warm_up": 5.0},
    "paper": {"num_envs": [16, 32, 64, 128, 256], "seconds": 120.0, "warm_up": 20.0},
}


def usage_cells(scale: Scale) -> list[Cell]:
    sizes = USAGE[scale]
    return [
        Cell(
            name=f"{network}-{num_envs}",
            settings={
                "network": NETWORKS[network],
                "num_envs": num_envs,
                "seconds": sizes["seconds"],
                "warm_up": sizes["warm_up"],
            },
        )
        for num_envs, network in itertools.product(sizes["num_envs"], NETWORKS)
    ]


def measure_usage(cell: Cell, before: Results) -> Result:
    asked = cell.settings
    timing = stretch(
        "paac",
        "pong",
        seconds=asked["seconds"],
        warm_up=Stretch(seconds=asked["warm_up"]),
        network=asked["network"],
        num_envs=asked["num_envs"],
    )
    total = sum(timing.split_seconds.values())
    shares = {part: 100 * seconds / total for part, seconds in timing.split_seconds.items()}
    return {"agent_sps": timing.agent_steps_per_second, "shares": shares}


def usage_tables(scale: Scale, results: Results) -> list[Table]:
    rows = [
        [name, round(r["agent_sps"]), *(r["shares"][part] for part in PARTS)]
        for name, r in results.items()
    ]
    note = (
        f"The paper with 32 environments and nips on a GPU: environment "
        f"{PAPER_SHARES['environment']:.0f} %, learning and acting "
        f"{PAPER_SHARES['learning and acting']:.0f} %."
    )
    columns = ("network-envs", "steps/s", *(f"{part} %" for part in PARTS))
    return [
        Table(title="Figure 2: time usage", columns=columns, rows=rows, digits=1, notes=(note,))
    ]


def usage_plot(scale: Scale, results: Results, path: Path) -> None:
    with figure(path, len(NETWORKS)) as axes:
        for each, network in zip(axes, NETWORKS, strict=True):
            own = {n: r for n, r in results.items() if n.startswith(f"{network}-")}
            names, bottom = [n.split("-")[1] for n in own], [0.0] * len(own)
            for part in PARTS:
                heights = [r["shares"][part] for r in own.values()]
                each.bar(names, heights, bottom=bottom, label=part)
                bottom = [low + height for low, height in zip(bottom, heights, strict=True)]
            each.set(title=network, xlabel="environments", ylabel="% of the time")
        axes[0].legend(fontsize=8)


@claim("The larger network costs 22 % of the steps/s on a GPU and 41 % on a CPU.", "section 5.2")
def _slower(results: Results) -> Finding:
    """The large network's loss of speed with 32 environments."""
    small, large = results["nips-32"]["agent_sps"], results["nature-32"]["agent_sps"]
    return Finding(small > large, f"{100 * (1 - large / small):.0f} % fewer steps/s")


@claim(
    "With 32 environments and the small network the environment takes more "
    "time than learning and action selection.",
    "section 5.2",
)
def _environment_first(results: Results) -> Finding:
    shares = results["nips-32"]["shares"]
    network = shares["learning"] + shares["acting"]
    return Finding(
        shares["environment"] > network,
        f"environment {shares['environment']:.0f} %, learning and acting {network:.0f} %",
    )


@claim("Timesteps per second rise with the number of environments.", "Figure 2")
def _rises(results: Results) -> Finding:
    rates = [r["agent_sps"] for name, r in results.items() if name.startswith("nips-")]
    return Finding(rates[-1] > rates[0], f"{rates[0]:,.0f} to {rates[-1]:,.0f} steps/s")


# Figures 3 and 4

GAMES = ("pong", "breakout", "qbert", "seaquest", "space_invaders", "beam_rider")
"""The paper's figures show six games."""
SCALING: Mapping[Scale, Mapping[str, Any]] = {
    "smoke": {"num_envs": [16, 32, 64], "games": ["pong"], "agent_steps": 6_400},
    "desk": {"num_envs": [16, 32, 64, 128, 256], "games": ["pong"], "agent_steps": 3_000_000},
    "paper": {"num_envs": [16, 32, 64, 128, 256], "games": GAMES, "agent_steps": 115_000_000},
}


def scaling_cells(scale: Scale) -> list[Cell]:
    sizes = SCALING[scale]
    axes = {"game": sizes["games"], "num_envs": sizes["num_envs"]}
    return grid("{game}-{num_envs}", axes, agent_steps=sizes["agent_steps"])


def measure_scaling(cell: Cell, before: Results) -> Result:
    asked = cell.settings
    steps, num_envs = asked["agent_steps"], asked["num_envs"]
    return learning_curve("paac", asked["game"], agent_steps=steps, num_envs=num_envs)


def scaling_tables(scale: Scale, results: Results) -> list[Table]:
    rows = [
        [
            name,
            0.0007 * int(name.rpartition("-")[2]),
            round(r["agent_sps"]),
            r["updates"],
            r["score"],
        ]
        for name, r in results.items()
    ]
    columns = ("game-envs", "learning rate", "steps/s", "updates", "score")
    title = "Figures 3 and 4: scores at the end"
    return [Table(title=title, columns=columns, rows=rows, digits=4)]


def scaling_plot(scale: Scale, results: Results, path: Path) -> None:
    plot_groups(path, {game: list(own.items()) for game, own in by_game(results).items()})


PONG_LEARNED = 0.0


@claim("By agent steps, learning is about the same for 16 to 128 environments.", "Figure 3")
def _alike_by_steps(results: Results) -> Finding:
    """Whether numbers of environments up to 128 need about the same number of steps."""
    needed = {n: steps_to(results[f"pong-{n}"], PONG_LEARNED) for n in (16, 32, 64, 128)}
    found = [steps for steps in needed.values() if steps is not None]
    words = ", ".join(f"{n}: {steps or 'not reached'}" for n, steps in needed.items())
    if len(found) < len(needed):
        return Finding(None if not found else False, f"agent steps to {PONG_LEARNED:g}: {words}")
    return Finding(max(found) < 3 * min(found), f"agent steps to {PONG_LEARNED:g}: {words}")


@claim(
    "With 256 environments and their learning rate, training diverges in some games.", "section 5.2"
)
def _diverges(results: Results) -> Finding:
    final = {n: results[f"pong-{n}"]["score"] for n in (32, 256)}
    if None in final.values():
        return Finding(None, "no game finished")
    words = ", ".join(f"{n} environments {score:.1f}" for n, score in final.items())
    return Finding(final[256] < final[32] - 5 if final[32] > PONG_LEARNED else None, words)


EXPERIMENTS = (
    Experiment(
        name="paac-time-usage",
        summary="Shares of environment, learning and action selection in PAAC's time.",
        paper=f"{PAPER}, Figure 2",
        cells=usage_cells,
        measure=measure_usage,
        tables=usage_tables,
        claims=(_environment_first, _slower, _rises),
        plot=usage_plot,
        line=lambda result: f"{result['agent_sps']:,.0f} steps/s",
    ),
    Experiment(
        name="paac-scaling",
        summary="PAAC's scores with 16 to 256 environments and a learning rate in proportion.",
        paper=f"{PAPER}, Figures 3 and 4",
        cells=scaling_cells,
        measure=measure_scaling,
        tables=scaling_tables,
        claims=(_alike_by_steps, _diverges),
        plot=scaling_plot,
        line=lambda result: f"score {result['score']} at {result['agent_sps']:,.0f} steps/s",
    ),
)
