"""GA3C (Babaeizadeh 2017): updates per second over numbers of agents, predictors and trainers.

`ga3c-throughput` measures Figures 3 and 4: a grid of N_A, N_P and N_T on Pong, of which the three
fastest are shown for each N_A, with the segments that wait for a trainer and the environments of an
inference; and the larger networks. The grid is measured twice: with the network on this machine's
cores, and with a simulated coprocessor in its place.

As in the paper's figures an update learns from one agent's segment of five steps.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from scanline.tables import Table
from scanline.timing import Stretch

from .claims import Claim, Finding, claim
from .coprocessor import SimulatedCoprocessor
from .experiment import Cell, Experiment, Result, Results, Scale
from .figures import figure
from .ga3c import NETWORKS, PAPER
from .measuring import histogram_mean, stretch

SMALL, LARGE = NETWORKS[0], NETWORKS[1:]
SIMULATED = "simulated"
KINDS = {SMALL: "this machine", SIMULATED: "SIMULATED device"}
"""What does the network's work in a grid; the first name is also that of the network."""

SECONDS_PER_CALL, SECONDS_PER_ITEM = 6.5e-3, 80e-6
"""Of the simulated device. The paper's update takes 11.1 ms, of which 59 % is overhead (section
5.1); at 1,361 predictions/s its device is busy for 56 % (Table 2), and a step costs an item to
decide and four to learn."""

SHOWN = 3
"""Configurations per number of agents in the paper's figures."""
QUEUE_SEGMENTS = 100
"""What the training queue holds in the released code, and here."""

GRID: Mapping[Scale, Mapping[str, Any]] = {
    "smoke": {
        "agents": [16, 32],
        "threads": [1, 2],
        "large": LARGE[:1],
        "seconds": 4.0,
        "warm_up": 1.0,
    },
    "desk": {
        "agents": [16, 32, 64, 128],
        "threads": [1, 2, 4, 8, 16],
        "large": LARGE,
        "seconds": 15.0,
        "warm_up": 5.0,
    },
    "paper": {
        "agents": [16, 32, 64, 128],
        "threads": [1, 2, 4, 8, 16],
        "large": LARGE,
        "seconds": 900.0,
        "warm_up": 60.0,
    },
}


class GridPoint(NamedTuple):
    """Where a cell stands in the grid."""

    network: str
    agents: int
    predictors: int
    trainers: int

    @classmethod
    def of(cls, name: str) -> GridPoint:
        network, *numbers = name.split("_")
        return cls(network, *map(int, numbers))

    @property
    def name(self) -> str:
        return "_".join(map(str, self))

    @property
    def numbers(self) -> str:
        return "/".join(map(str, self[1:]))


def places(scale: Scale) -> list[GridPoint]:
    """The two grids, and the larger networks with the most agents and two threads of each kind."""
    sizes = GRID[scale]
    numbers = itertools.product(sizes["agents"], sizes["threads"], sizes["threads"])
    grid = [GridPoint(kind, *each) for each in numbers for kind in KINDS]
    return grid + [GridPoint(network, max(sizes["agents"]), 2, 2) for network in sizes["large"]]


def cells(scale: Scale) -> list[Cell]:
    times = {name: GRID[scale][name] for name in ("seconds", "warm_up")}
    return [Cell(name=p.name, settings={**p._asdict(), **times}) for p in places(scale)]


def measure(cell: Cell, before: Results) -> Result:
    """Rates of a stretch, and means of its histograms."""
    asked = cell.settings
    simulated = asked["network"] == SIMULATED
    device = SimulatedCoprocessor(SECONDS_PER_CALL, SECONDS_PER_ITEM) if simulated else None
    timing = stretch(
        "ga3c",
        "pong",
        seconds=asked["seconds"],
        warm_up=Stretch(seconds=asked["warm_up"]),
        device=device,
        torch_threads=1,
        num_envs=asked["agents"],
        num_predictors=asked["predictors"],
        num_trainers=asked["trainers"],
        min_batch_agent_steps=0,
        queue_segments=QUEUE_SEGMENTS,
        **({} if simulated else {"network": asked["network"]}),
    )
    return {
        "tps": timing.updates_per_second,
        "pps": timing.agent_steps_per_second,
        "prediction_batch": histogram_mean(timing.note, "prediction_batch"),
        "training_queue": histogram_mean(timing.note, "training_queue"),
        "lag": histogram_mean(timing.note, "policy_lag"),
    }


def fastest(results: Results, kind: str) -> dict[int, list[tuple[GridPoint, Result]]]:
    """The paper's choice: for each number of agents the three with the most updates/s."""
    found: dict[int, list[tuple[GridPoint, Result]]] = {}
    for name, result in results.items():
        place = GridPoint.of(name)
        if place.network == kind:
            found.setdefault(place.agents, []).append((place, result))
    if not found:
        raise KeyError(kind)
    return {
        agents: sorted(own, key=lambda each: -each[1]["tps"])[:SHOWN]
        for agents, own in sorted(found.items())
    }


def best(results: Results, kind: str) -> tuple[GridPoint, Result]:
    """The fastest of a grid."""
    return max((own[0] for own in fastest(results, kind).values()), key=lambda e: e[1]["tps"])


def _shown(results: Results, kind: str) -> list[tuple[GridPoint, Result]]:
    return [each for own in fastest(results, kind).values() for each in own]


def tables(scale: Scale, results: Results) -> list[Table]:
    there = {GridPoint.of(name).network for name in results}
    found = [_grid_table(results, kind) for kind in KINDS if kind in there]
    return found + ([_large_table(results)] if SMALL in there else [])


def _grid_table(results: Results, kind: str) -> Table:
    top = best(results, kind)[1]["tps"]
    rows = [
        [place.numbers, r["tps"], r["tps"] / top, r["pps"]]
        + [r["prediction_batch"], r["training_queue"], r["lag"]]
        for place, r in _shown(results, kind)
    ]
    columns = ("N_A/N_P/N_T", "TPS", "of best", "PPS", "pred. batch", "queue", "lag")
    note = "The paper's figures have curves and no numbers; its fastest is 128/2/2, with 1,361 PPS."
    if kind == SIMULATED:
        note = (
            f"SIMULATED: {SECONDS_PER_CALL * 1e3:g} ms per call and {SECONDS_PER_ITEM * 1e6:g} us "
            "per item stand for the network; agents, queues and threads are real."
        )
    title = f"Figures 3 and 4: the fastest {SHOWN} per number of agents, {KINDS[kind]}"
    return Table(title=title, columns=columns, rows=rows, digits=2, notes=(note,))


def _large_table(results: Results) -> Table:
    """Networks with the same numbers of threads, beside the small one."""
    large = [(GridPoint.of(n), r) for n, r in results.items() if GridPoint.of(n).network in LARGE]
    rows = []
    for place, result in large:
        small = results.get(place._replace(network=SMALL).name)
        share = result["tps"] / small["tps"] if small else None
        rows.append([place.network, place.numbers, result["tps"], share, result["pps"]])
    columns = ("network", "N_A/N_P/N_T", "TPS", "of small", "PPS")
    note = "The paper: one layer more (stride 4) costs 7 % of the TPS, on a GPU."
    title = "Figure 3: larger networks, this machine"
    return Table(title=title, columns=columns, rows=rows, digits=2, notes=(note,))


def plot(scale: Scale, results: Results, path: Path) -> None:
    there = {GridPoint.of(name).network for name in results}
    shown = [kind for kind in KINDS if kind in there]
    with figure(path, 3, len(shown), width=4.5) as axes:
        for row, kind in enumerate(shown):
            top = best(results, kind)[1]["tps"]
            for each, (name, shared, words) in zip(axes[3 * row :], PANELS, strict=False):
                _bars(each, fastest(results, kind), name, top if shared else 1.0)
                each.set(title=KINDS[kind], ylabel=words, xlabel="N_A, and N_P/N_T")


PANELS = (
    ("tps", True, "TPS, of the best"),
    ("training_queue", False, "segments in the training queue"),
    ("prediction_batch", False, "environments per inference"),
)
"""A figure of a result, whether it is shown as a share of the best one's, and its words."""


def _bars(
    axes: Any, own: Mapping[int, list[tuple[GridPoint, Result]]], name: str, unit: float
) -> None:
    """Bars in groups of a number of agents."""
    for group, each in enumerate(own.values()):
        names = [f"{p.agents}, {p.predictors}/{p.trainers}" for p, _ in each]
        axes.bar(names, [r[name] / unit for _, r in each], color=f"C{group}")
    axes.tick_params(axis="x", rotation=70, labelsize=7)


def _more_agents(results: Results, kind: str) -> Finding:
    rates = {agents: own[0][1]["tps"] for agents, own in fastest(results, kind).items()}
    words = ", ".join(f"{agents} agents {tps:,.0f} TPS" for agents, tps in rates.items())
    return Finding(rates[max(rates)] > rates[min(rates)], words)


def _few_predictors(results: Results, kind: str) -> Finding:
    numbers = [place.predictors for place, _ in _shown(results, kind)]
    return Finding(max(numbers) <= 4, f"N_P of the fastest: {', '.join(map(str, numbers))}")


def _balanced(results: Results, kind: str) -> Finding:
    """Whether most of the fastest have ratios between 1:2 and 2:1."""
    ratios = [place.predictors / place.trainers for place, _ in _shown(results, kind)]
    share = sum(0.5 <= ratio <= 2 for ratio in ratios) / len(ratios)
    return Finding(share > 0.5, f"{share:.0%} of the fastest have N_P:N_T from 1:2 to 2:1")


def _short_queue(results: Results, kind: str) -> Finding:
    longest = max(r["training_queue"] for _, r in _shown(results, kind))
    return Finding(longest <= QUEUE_SEGMENTS / 2, f"at most {longest:.0f} of {QUEUE_SEGMENTS}")


def _large_batches(results: Results, kind: str) -> Finding:
    """Whether the fastest one's prediction batch is among the largest third of those shown."""
    place, top = best(results, kind)
    sizes = sorted((r["prediction_batch"] for _, r in _shown(results, kind)), reverse=True)
    rank = sizes.index(top["prediction_batch"]) + 1
    words = f"{place.numbers} with {top['prediction_batch']:.1f}, rank {rank} of {len(sizes)}"
    return Finding(rank <= max(1, len(sizes) // 3), words)


@claim(
    "A network with one layer more loses only 7 % of the updates per second.",
    "section 5.1, on a GPU; this machine",
)
def _deeper_costs_little(results: Results) -> Finding:
    names = [name for name in results if GridPoint.of(name).network == LARGE[0]]
    if not names:
        raise KeyError(LARGE[0])
    large = GridPoint.of(names[0])
    small = results[large._replace(network=SMALL).name]["tps"]
    change = results[large.name]["tps"] / small - 1
    return Finding(change > -0.1, f"{change:+.0%} TPS")


class Finder(Protocol):
    """A claim's predicate over one of the grids."""

    def __call__(self, results: Results, kind: str) -> Finding: ...


def _of_both(sentence: str, source: str, find: Finder) -> list[Claim]:
    """One claim per grid: the sign may differ between this machine and the simulated device."""
    return [
        Claim(sentence, f"{source}; {words}", partial(find, kind=kind))
        for kind, words in KINDS.items()
    ]


EXPERIMENTS = (
    Experiment(
        name="ga3c-throughput",
        summary="GA3C's updates/s, queue and prediction batch over agents, predictors, trainers.",
        paper=f"{PAPER}, Figures 3 and 4",
        cells=cells,
        measure=measure,
        tables=tables,
        claims=(
            *_of_both("More agents yield more updates per second.", "section 5.1", _more_agents),
            *_of_both(
                "The best results have 4 or fewer predictors.", "section 5.1", _few_predictors
            ),
            *_of_both(
                "N_P:N_T of the top performers tends to be 1:2, 1:1 or 2:1.",
                "section 5.1",
                _balanced,
            ),
            *_of_both(
                "The training queue stays well below its capacity.", "Figure 4", _short_queue
            ),
            *_of_both(
                "The fastest configuration has one of the largest prediction batches.",
                "Figure 4",
                _large_batches,
            ),
            _deeper_costs_little,
        ),
        plot=plot,
        notes=(
            "An update learns from one segment of 5 steps, as in the paper: PPS is about 5 TPS.",
            "The paper's queues have no limit; here at most 100 segments wait, as in its code.",
        ),
        line=lambda result: f"{result['tps']:,.1f} TPS, {result['pps']:,.0f} PPS",
    ),
)
