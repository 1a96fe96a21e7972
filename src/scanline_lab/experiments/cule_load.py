"""CuLE (Dalton 2020): frames per second of engines under three loads.

`cule-load` measures Figure 2 (emulation alone and with inference, over games and numbers of
environments), Figures 4 and 7 (those and training, on a few games), and Figures 3 and 6
(`cule_steps.py`). Takes engines and games; gives raw frames/s.
Knows no engine's inside.

The paper's engines are Gym's and CuLE's on CPU and GPU. Here they are ale-py's vector environment
and our own emulator on the CPU: their columns stand beside the paper's, not for them.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scanline import games, training
from scanline.tables import Table
from scanline.timing import Stretch, timed

from . import cule_steps
from .claims import Finding, claim
from .cule import ENGINES, PAPER
from .experiment import Cell, Experiment, Result, Results, Scale, grid
from .figures import figure
from .measuring import sampling_rate

LOADS = ("emulation", "inference", "training")
PAPER_GAMES = ("assault", "pong", "ms_pacman", "asterix")
FRAME_SKIP = 4

SIZES: Mapping[Scale, Mapping[str, Any]] = {
    "smoke": {"num_envs": [16, 64], "games": ["assault"], "all": PAPER_GAMES, "seconds": 0.8},
    "desk": {
        "num_envs": [1, 16, 32, 64, 128, 256, 512],
        "games": ["assault", "pong"],
        "all": games.ATARI26,
        "seconds": 3.0,
    },
    "paper": {
        "num_envs": [1, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096],
        "games": PAPER_GAMES,
        "all": games.ATARI57,
        "seconds": 10.0,
    },
}
"""`games` of Figures 4 and 7, which are trained too; `all` of Figure 2."""


def cells(scale: Scale) -> list[Cell]:
    sizes = SIZES[scale]
    names = list(dict.fromkeys([*sizes["games"], *sizes["all"]]))
    axes = {"game": names, "num_envs": sizes["num_envs"], "load": LOADS, "engine": ENGINES}
    every = grid("{game}-{load}-{engine}-{num_envs}", axes, seconds=sizes["seconds"])
    left_out = {("training", game) for game in names if game not in sizes["games"]}
    found = [c for c in every if (c.settings["load"], c.settings["game"]) not in left_out]
    return [*found, *cule_steps.cells(scale, ENGINES)]


def measure(cell: Cell, before: Results) -> Result:
    """Raw frames per second."""
    asked = cell.settings
    if asked["load"] == cule_steps.STEPS:
        return cule_steps.measure(cell)
    plan = training.make_plan(
        "cule-a2c",
        asked["game"],
        engine=asked["engine"],
        num_envs=asked["num_envs"],
        decorrelation_agent_steps=0,
        tensorboard=False,
    )
    seconds = asked["seconds"]
    if asked["load"] == "training":
        timing = timed(
            plan,
            warm_up=Stretch(seconds=seconds / 10),
            measured=Stretch(seconds=seconds),
        )
        return {"raw_fps": timing.raw_frames_per_second}
    decider: Any = "random" if asked["load"] == "emulation" else "network"
    return {"raw_fps": FRAME_SKIP * sampling_rate(plan, decider, seconds=seconds)}


Rates = Mapping[tuple[str, str, str, int], float]


def rates(results: Results) -> Rates:
    """Frames/s by game, load, engine and number of environments."""
    found = {}
    for name, result in results.items():
        game, load, engine, num = name.split("-")
        if load in LOADS:
            found[game, load, engine, int(num)] = float(result["raw_fps"])
    return found


def over_games(found: Rates, load: str, engine: str, num: int) -> list[float]:
    """Frames/s of all games, lowest first."""
    return sorted(rate for key, rate in found.items() if key[1:] == (load, engine, num))


def _numbers(found: Rates) -> list[int]:
    return sorted({num for *_, num in found})


def _trained(found: Rates) -> list[str]:
    """The games of Figures 4 and 7."""
    return list(dict.fromkeys(game for game, load, *_ in found if load == "training"))


def tables(scale: Scale, results: Results) -> list[Table]:
    found = rates(results)
    return [_games_table(found), *_load_tables(found), *cule_steps.tables(results)]


def _games_table(found: Rates) -> Table:
    """The boxes of Figure 2, as numbers."""
    rows = []
    for load, engine, num in itertools.product(LOADS[:2], ENGINES, _numbers(found)):
        values = over_games(found, load, engine, num)
        box = (min(values), *quartiles(values), max(values))
        per_env = statistics.median(values) / num
        rows.append([f"{load}, {engine}", num, *map(round, box), round(per_env)])
    columns = ("load, engine", "envs", "lowest", "25 %", "median", "75 %", "highest", "per env")
    notes = (
        "The paper with 4,096 environments: emulation 18,000 (median) on its CPU engine, 14,000 to "
        "27,000 over games; 64,000 on a GPU, 41,000 to 155,000; with inference 56,000 on a GPU.",
    )
    num_games = len({game for game, *_ in found})
    title = f"Figure 2: raw frames/s over {num_games} games"
    return Table(title=title, columns=columns, rows=rows, notes=notes)


def quartiles(values: list[float]) -> list[float]:
    """25 %, median, 75 %."""
    if len(values) < 2:
        return values * 3
    return statistics.quantiles(values, n=4, method="inclusive")


def _load_tables(found: Rates) -> list[Table]:
    pairs = list(itertools.product(LOADS, ENGINES))
    heads = [f"{load[:3]} {engine}" for load, engine in pairs]
    return [
        Table(
            title=f"Figures 4 and 7: raw frames/s, {game}",
            columns=("envs", *heads),
            rows=[
                [num, *(round(found[game, load, engine, num]) for load, engine in pairs)]
                for num in _numbers(found)
            ],
        )
        for game in _trained(found)
    ]


def plot(scale: Scale, results: Results, path: Path) -> None:
    found, steps = rates(results), cule_steps.own(results)
    columns = max(len(LOADS), len(ENGINES) * 2)
    num_rows = 2 + -(-len(steps) // columns)
    with figure(path, columns, num_rows, width=4.0) as axes:
        for each in axes:
            each.set_visible(False)
        boxes = itertools.product(LOADS[:2], ENGINES)
        for each, (load, engine) in zip(axes, boxes, strict=False):
            _plot_boxes(each, found, load, engine)
        for each, load in zip(axes[columns:], LOADS, strict=False):
            _plot_load(each, found, load)
        for each, (name, result) in zip(axes[2 * columns :], steps.items(), strict=False):
            each.set_visible(True)
            cule_steps.plot(each, name, result)


def _plot_boxes(axes: Any, found: Rates, load: str, engine: str) -> None:
    axes.set_visible(True)
    values = {num: over_games(found, load, engine, num) for num in _numbers(found)}
    axes.boxplot(list(values.values()), whis=(0, 100))
    axes.set_xticks(range(1, len(values) + 1), map(str, values), fontsize=7)
    axes.set(title=f"{load}, {engine}", xlabel="environments", ylabel="raw frames/s")
    axes.set_ylim(bottom=0)
    axes.grid(axis="y", alpha=0.3)


def _plot_load(axes: Any, found: Rates, load: str) -> None:
    axes.set_visible(True)
    for game, engine in itertools.product(_trained(found), ENGINES):
        numbers = _numbers(found)
        values = [found[game, load, engine, num] for num in numbers]
        axes.plot(numbers, values, marker="o", label=f"{game}, {engine}")
    axes.set(title=load, xlabel="environments", ylabel="raw frames/s", xscale="log")
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=7)


@claim("The own engine beats ALE's under every load (the paper's CPU engine does not).", "Figure 2")
def _own_is_faster(results: Results) -> Finding:
    found = rates(results)
    pairs = [
        rate / found[game, load, "ale", num]
        for (game, load, engine, num), rate in found.items()
        if engine == "native"
    ]
    low, high = min(pairs), max(pairs)
    return Finding(low > 1, f"{low:.2f} to {high:.2f} times ale-py's rate")


@claim("Frames/s fall from emulation alone to inference to training.", "Figure 4")
def _learning_is_the_limit(results: Results) -> Finding:
    """Whether the loads come in the paper's order on our engine."""
    found, signs = rates(results), []
    for game, num in itertools.product(_trained(found), _numbers(found)):
        one, two, three = (found[game, load, "native", num] for load in LOADS)
        signs.append(one > two > three)
    return Finding(all(signs), f"{sum(signs)} of {len(signs)} sizes")


@claim("With inference, frames/s rise with the number of environments.", "Figure 2")
def _rises_with_envs(results: Results) -> Finding:
    """Whether the median game gains from more environments, with inference, on our engine."""
    found = rates(results)
    first, *_, last = _numbers(found)
    low, high = (
        statistics.median(over_games(found, "inference", "native", num)) for num in (first, last)
    )
    return Finding(high > low, f"{low:,.0f} with {first} and {high:,.0f} with {last} environments")


EXPERIMENTS = (
    Experiment(
        name="cule-load",
        summary="Raw frames/s of engines under emulation alone, with inference, and training.",
        paper=f"{PAPER}, Figures 2 to 4, 6 and 7",
        cells=cells,
        measure=measure,
        tables=tables,
        claims=(_learning_is_the_limit, _own_is_faster, _rises_with_envs, *cule_steps.CLAIMS),
        plot=plot,
        line=lambda result: f"{result['raw_fps']:,.0f} raw frames/s",
    ),
)
