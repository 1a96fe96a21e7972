"""GA3C (Babaeizadeh 2017): speed beside A3C, and the search for the best numbers of threads.

`ga3c-vs-a3c` measures Table 2: predictions per second of agents with weights of their own and of
GA3C, for the small network and the four large ones. `ga3c-adjustment` starts from one agent, one
predictor and one trainer and lets the controller search (Figure 2).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scanline.tables import Table
from scanline.timing import Stretch

from .claims import Finding, claim
from .experiment import Cell, Experiment, Result, Results, Scale, grid
from .figures import figure
from .measuring import stretch, utilisation

PAPER = "Babaeizadeh 2017, Reinforcement Learning through Asynchronous Advantage Actor-Critic"

NETWORKS = ("ga3c", "ga3c-large-4", "ga3c-large-3", "ga3c-large-2", "ga3c-large-1")
RECIPES = ("a3c-agents", "ga3c")
PAPER_TABLE: Mapping[str, tuple[int, int, int, int]] = {
    "ga3c": (352, 1_361, 32, 56),
    "ga3c-large-4": (113, 1_271, 27, 68),
    "ga3c-large-3": (97, 1_206, 27, 77),
    "ga3c-large-2": (43, 874, 26, 82),
    "ga3c-large-1": (11, 490, 17, 90),
}
"""Table 2, System I: PPS of A3C and of GA3C, CPU and GPU utilisation of GA3C in percent."""

SPEED: Mapping[Scale, Mapping[str, Any]] = {
    "smoke": {"seconds": 8.0, "warm_up": 3.0, "num_envs": 16},
    "desk": {"seconds": 60.0, "warm_up": 15.0, "num_envs": 32},
    "paper": {"seconds": 960.0, "warm_up": 60.0, "num_envs": 128},
}


def speed_cells(scale: Scale) -> list[Cell]:
    axes = {"network": NETWORKS, "recipe": RECIPES}
    return grid("{recipe}_{network}", axes, **SPEED[scale])


def measure_speed(cell: Cell, before: Results) -> Result:
    """Rates of a real run, and the share of all cores that it kept busy from start to end."""
    asked = cell.settings
    own = {"num_envs": asked["num_envs"]} if asked["recipe"] == "ga3c" else {}
    with utilisation() as cores:
        timing = stretch(
            asked["recipe"],
            "pong",
            seconds=asked["seconds"],
            warm_up=Stretch(seconds=asked["warm_up"]),
            network=asked["network"],
            torch_threads=1,
            **own,
        )
    return {"pps": timing.agent_steps_per_second, "tps": timing.updates_per_second, **cores}


def speed_tables(scale: Scale, results: Results) -> list[Table]:
    rows = []
    for network in NETWORKS:
        a3c, ga3c = (results.get(f"{recipe}_{network}") for recipe in RECIPES)
        paper = PAPER_TABLE[network]
        rows.append(
            [
                network,
                a3c and a3c["pps"],
                ga3c and ga3c["pps"],
                ga3c["pps"] / a3c["pps"] if a3c and ga3c else None,
                ga3c and ga3c["cpu_percent"],
                "not run",
                *paper[:2],
                paper[1] / paper[0],
                *paper[2:],
            ]
        )
    columns = (
        "network",
        "A3C",
        "GA3C",
        "x",
        "CPU%",
        "GPU%",
        "A3C*",
        "GA3C*",
        "x*",
        "CPU%*",
        "GPU%*",
    )
    note = (
        "PPS: predictions per second. *: the paper, System I (16 cores, Titan X); here a CPU only."
    )
    return [
        Table(title="Table 2: A3C and GA3C", columns=columns, rows=rows, digits=1, notes=(note,))
    ]


def speed_plot(scale: Scale, results: Results, path: Path) -> None:
    with figure(path, 2) as axes:
        for each, values, title in (
            (axes[0], lambda n: [results[f"{r}_{n}"]["pps"] for r in RECIPES], "here"),
            (axes[1], lambda n: PAPER_TABLE[n][:2], "the paper, System I"),
        ):
            there = [n for n in NETWORKS if all(f"{r}_{n}" in results for r in RECIPES)]
            for place, recipe in enumerate(RECIPES):
                each.plot(there, [values(n)[place] for n in there], "o-", label=recipe)
            each.set(title=title, ylabel="predictions/s", yscale="log")
            each.tick_params(axis="x", rotation=30)
        axes[0].legend(fontsize=8)


@claim("GA3C predicts faster than A3C with every network.", "section 5.1, on a GPU")
def _faster(results: Results) -> Finding:
    factors = {n: _factor(results, n) for n in NETWORKS}
    words = ", ".join(f"{n.removeprefix('ga3c-')} {f:.2f}x" for n, f in factors.items())
    return Finding(all(factor > 1 for factor in factors.values()), words)


@claim("The larger the network, the larger the speed-up.", "section 5.1, on a GPU")
def _grows(results: Results) -> Finding:
    small, large = _factor(results, "ga3c"), _factor(results, "ga3c-large-1")
    return Finding(large > small, f"small {small:.2f}x, largest {large:.2f}x")


def _factor(results: Results, network: str) -> float:
    return float(results[f"ga3c_{network}"]["pps"] / results[f"a3c-agents_{network}"]["pps"])


# Figure 2

ADJUSTMENT: Mapping[Scale, Mapping[str, Any]] = {
    "smoke": {"seconds": 90.0, "adjust_seconds": 3.0, "settle_seconds": 1.0, "num_envs": 32},
    "desk": {"seconds": 3_600.0, "adjust_seconds": 20.0, "settle_seconds": 5.0, "num_envs": 64},
    "paper": {"seconds": 10_800.0, "adjust_seconds": 60.0, "settle_seconds": 10.0, "num_envs": 256},
}
GAMES = ("boxing", "pong")


def adjustment_cells(scale: Scale) -> list[Cell]:
    return grid("{game}", {"game": GAMES}, **ADJUSTMENT[scale])


def measure_adjustment(cell: Cell, before: Results) -> Result:
    """Every measurement of the controller: when, numbers, updates per second, kept or not."""
    asked = dict(cell.settings)
    game, seconds = asked.pop("game"), asked.pop("seconds")
    start: dict[str, Any] = {
        "start_agents": 1,
        "num_predictors": 1,
        "num_trainers": 1,
        "adjust": True,
    }
    timing = stretch(
        "ga3c",
        game,
        seconds=seconds,
        warm_up=Stretch(),
        torch_threads=1,
        **start,
        **asked,
    )
    rows = timing.note["controller"]
    best = max((row for row in rows if row[5]), key=lambda row: row[4])
    return {"rows": rows, "first_tps": rows[0][4], "best_tps": best[4], "best": best[1:4]}


def adjustment_tables(scale: Scale, results: Results) -> list[Table]:
    rows = [
        [
            game,
            len(r["rows"]),
            sum(1 for row in r["rows"][1:] if row[5]),
            r["first_tps"],
            r["best_tps"],
            "/".join(map(str, r["best"])),
        ]
        for game, r in results.items()
    ]
    columns = ("game", "windows", "kept", "TPS of 1/1/1", "best TPS", "N_A/N_P/N_T")
    note = "The paper's figure 2 has curves and no numbers; TPS are updates per second."
    return [
        Table(title="Figure 2: adjustment", columns=columns, rows=rows, digits=1, notes=(note,))
    ]


def adjustment_plot(scale: Scale, results: Results, path: Path) -> None:
    with figure(path, len(results), 2) as axes:
        for place, (game, result) in enumerate(results.items()):
            seconds = [row[0] for row in result["rows"]]
            above, below = axes[place], axes[place + len(results)]
            for number, name in ((1, "N_A"), (2, "N_P"), (3, "N_T")):
                above.step(seconds, [r[number] for r in result["rows"]], where="post", label=name)
            above.set(title=game, ylabel="number", yscale="log")
            above.legend(fontsize=8)
            below.plot(seconds, [row[4] for row in result["rows"]], ".-")
            below.set(xlabel="seconds", ylabel="TPS")


@claim("The controller finds numbers with a higher rate of updates.", "section 4.3")
def _improves(results: Results) -> Finding:
    found = {game: (results[game]["first_tps"], results[game]["best_tps"]) for game in GAMES}
    words = ", ".join(f"{g} {first:.1f} to {best:.1f} TPS" for g, (first, best) in found.items())
    return Finding(all(best > first for first, best in found.values()), words)


@claim("Different games end with different numbers.", "Figure 2")
def _differ(results: Results) -> Finding:
    best = {game: tuple(results[game]["best"]) for game in GAMES}
    words = ", ".join(f"{game} {'/'.join(map(str, n))}" for game, n in best.items())
    return Finding(len(set(best.values())) > 1, words)


EXPERIMENTS = (
    Experiment(
        name="ga3c-vs-a3c",
        summary="Predictions per second of A3C and GA3C, for the small and the large networks.",
        paper=f"{PAPER}, Table 2",
        cells=speed_cells,
        measure=measure_speed,
        tables=speed_tables,
        claims=(_faster, _grows),
        plot=speed_plot,
        notes=("The paper's GA3C has a GPU for its network; here both have the same cores.",),
        line=lambda result: f"{result['pps']:,.0f} PPS, {result['tps']:,.1f} TPS",
    ),
    Experiment(
        name="ga3c-adjustment",
        summary="GA3C's controller, from one agent, one predictor and one trainer.",
        paper=f"{PAPER}, Figure 2",
        cells=adjustment_cells,
        measure=measure_adjustment,
        tables=adjustment_tables,
        claims=(_improves, _differ),
        plot=adjustment_plot,
        line=lambda result: f"{result['first_tps']:.1f} to {result['best_tps']:.1f} TPS",
    ),
)
