"""Fast DQN (Daley and Amato 2021): how long its fourteen variants take.

`fast-dqn-speed` measures Tables 1 to 3 twice: with a real network on this machine, and with a
simulated coprocessor in the network's place.

On a CPU the network competes with the games for the same cores, which is what the paper's hardware
avoids. The simulated device brings the missing processor: everything but the network is real. One
constant is set so that the slowest variant takes the paper's time, one is reasoned from its table;
the other thirteen follow.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from scanline import training
from scanline.tables import Table
from scanline.timing import Stretch, Timing, timed

from .claims import Claim, Finding
from .coprocessor import OnCoprocessor, SimulatedCoprocessor, TinyQ
from .experiment import Cell, Experiment, Result, Results, Scale
from .figures import deviation, figure, rank_correlation

PAPER = "Daley and Amato 2021, Human-Level Control without Server-Grade Hardware"

KINDS = ("standard", "concurrent", "synchronized", "both")
THREADS = (1, 2, 4, 8)
PAPER_HOURS: Mapping[str, tuple[float, float]] = {
    "standard-1": (25.08, 0.52),
    "standard-2": (19.10, 0.07),
    "standard-4": (16.84, 0.09),
    "standard-8": (16.92, 0.23),
    "concurrent-1": (20.64, 0.29),
    "concurrent-2": (14.00, 0.00),
    "concurrent-4": (12.14, 0.05),
    "concurrent-8": (11.68, 0.04),
    "synchronized-2": (19.32, 0.28),
    "synchronized-4": (15.74, 0.21),
    "synchronized-8": (14.60, 0.12),
    "both-2": (14.72, 0.13),
    "both-4": (11.08, 0.08),
    "both-8": (9.02, 0.16),
}
"""Table 1: hours for 50 million agent steps, mean and deviation of five trials."""

VARIANTS = tuple(PAPER_HOURS)
BASE = "standard-1"
WHOLE_RUN_AGENT_STEPS = 50_000_000
CALL_ITEMS = 25
"""A call of the simulated device costs as much as so many items: a small network on a GPU spends
its time on launches and transfers. Reasoned from the paper's table; an item's length is fitted."""

# Per scale: C, learning start, replay, repeats, and C's that are measured after one of warm-up.
SIZES: Mapping[Scale, Mapping[str, int]] = {
    "smoke": {"block": 400, "start": 1_600, "replay": 20_000, "repeats": 1, "blocks": 1},
    "desk": {"block": 2_000, "start": 10_000, "replay": 100_000, "repeats": 3, "blocks": 5},
    "paper": {"block": 10_000, "start": 50_000, "replay": 1_000_000, "repeats": 5, "blocks": 100},
}


def settings_of(variant: str, sizes: Mapping[str, int]) -> dict[str, Any]:
    """A variant's settings of the recipe: two switches and the number of threads."""
    kind, num_envs = variant.split("-")
    return {
        "num_envs": int(num_envs),
        "concurrent_training": kind in ("concurrent", "both"),
        "synchronised_execution": kind in ("synchronized", "both"),
        "target_agent_steps": sizes["block"],
        "rollout_agent_steps": sizes.get("rollout", 50),
        "learning_starts_agent_steps": sizes["start"],
        "capacity_agent_steps": sizes["replay"],
        "epsilon_start": 0.1,
        "epsilon_end": 0.1,
        "torch_threads": 1,
        "tensorboard": False,
    }


def plan_of(cell: Cell, **changes: Any) -> training.Plan:
    return training.make_plan("fast-dqn", "pong", **{**cell.settings["recipe"], **changes})


def hours(timing: Timing) -> float:
    """Of 50 million agent steps at the measured rate."""
    return WHOLE_RUN_AGENT_STEPS / timing.agent_steps_per_second / 3600


def speed_cells(scale: Scale) -> list[Cell]:
    """Every variant once, then every variant again; the simulated ones after their calibration."""
    sizes = SIZES[scale]
    simulated = {**sizes, "start": 2 * sizes["block"], "blocks": 3 * sizes["blocks"]}
    repeats = range(1, sizes["repeats"] + 1)

    def cell(name: str, variant: str, sizes: Mapping[str, int]) -> Cell:
        recipe = settings_of(variant, sizes)
        return Cell(name=name, settings={"blocks": sizes["blocks"], "recipe": recipe})

    return [
        *(cell(f"{v}.{r}", v, sizes) for r, v in itertools.product(repeats, VARIANTS)),
        cell("calibration", BASE, simulated),
        *(
            cell(f"simulated.{v}.{r}", v, simulated)
            for r, v in itertools.product(repeats, VARIANTS)
        ),
    ]


def measure_speed(cell: Cell, before: Results) -> Result:
    if cell.name == "calibration":
        return calibrate(lambda seconds: _hours_on_device(cell, seconds)[0])
    if cell.name.startswith("simulated."):
        return _hours_on_device(cell, before["calibration"]["seconds_per_item"])[1]
    timing = timed_blocks(cell, plan_of(cell))
    return figures_of(timing)


def timed_blocks(cell: Cell, plan: training.Plan, **more: Any) -> Timing:
    block = cell.settings["recipe"]["target_agent_steps"]
    measured = Stretch(agent_steps=block * cell.settings["blocks"])
    return timed(plan, warm_up=Stretch(agent_steps=block), measured=measured, **more)


def figures_of(timing: Timing) -> dict[str, Any]:
    return {
        "hours": hours(timing),
        "agent_sps": timing.agent_steps_per_second,
        "agent_steps": timing.agent_steps,
        "updates": timing.updates,
        "seconds": timing.seconds,
    }


def device_of(seconds_per_item: float) -> SimulatedCoprocessor:
    return SimulatedCoprocessor(CALL_ITEMS * seconds_per_item, seconds_per_item)


def _hours_on_device(cell: Cell, seconds_per_item: float) -> tuple[float, dict[str, Any]]:
    device = device_of(seconds_per_item)
    attachments = training.Attachments(around=lambda inner: OnCoprocessor(inner, device))
    timing = timed_blocks(cell, plan_of(cell, network=TinyQ), attachments=attachments)
    return hours(timing), {
        **figures_of(timing),
        "device_calls": device.num_calls,
        "simulated": True,
    }


def calibrate(
    hours_at: Callable[[float], float], target_hours: float = PAPER_HOURS[BASE][0]
) -> dict[str, float]:
    """The length of an item at which the time is the target's: it grows in a straight line.

    Two measurements around the target give the line.
    """
    first = 2e-5
    hours_first = hours_at(first)
    second = first * min(max(target_hours / hours_first, 0.2), 5.0) * 1.1
    hours_second = hours_at(second)
    slope = (hours_second - hours_first) / (second - first)
    chosen = second + (target_hours - hours_second) / slope if slope > 0 else 0.0
    if chosen <= 0:
        raise ValueError(
            f"without any device a run takes {hours_first - slope * first:.1f} h on this machine, "
            f"more than the {target_hours} h that a simulated one should take; use a faster one"
        )
    return {"seconds_per_item": chosen, "seconds_per_call": CALL_ITEMS * chosen}


def hours_of(results: Results, variant: str, simulated: bool = False) -> list[float]:
    """Hours of all repeats."""
    prefix = f"simulated.{variant}." if simulated else f"{variant}."
    found = [r["hours"] for name, r in results.items() if name.startswith(prefix)]
    if not found:
        raise KeyError(prefix.removesuffix("."))
    return found


def mean_hours(results: Results, simulated: bool = False) -> dict[str, float]:
    return {v: statistics.fmean(hours_of(results, v, simulated)) for v in VARIANTS}


def correlation_with_paper(results: Results) -> float:
    """Rank correlation of the thirteen variants that were not calibrated."""
    ours, others = mean_hours(results, simulated=True), [v for v in VARIANTS if v != BASE]
    return rank_correlation([ours[v] for v in others], [PAPER_HOURS[v][0] for v in others])


def speed_tables(scale: Scale, results: Results) -> list[Table]:
    device = results["calibration"]
    per_call, per_item = device["seconds_per_call"] * 1e3, device["seconds_per_item"] * 1e6
    note = (
        f"SIMULATED device: {per_call:.2f} ms per call, {per_item:.1f} us per item, set so that "
        f"{BASE} takes {PAPER_HOURS[BASE][0]} h.",
        f"Rank correlation of the other 13 with the paper: {correlation_with_paper(results):.2f}.",
    )
    return [
        _hours_table("Table 1: hours per 50M steps, real network", scale, results, False, ()),
        _relative_table("Tables 2 and 3, real network", results, False),
        _hours_table("Table 1 on a SIMULATED coprocessor", scale, results, True, note),
        _relative_table("Tables 2 and 3 on a SIMULATED coprocessor", results, True),
    ]


def _hours_table(
    title: str, scale: Scale, results: Results, simulated: bool, notes: Sequence[str]
) -> Table:
    with_ratio = scale != "smoke"
    rows: list[list[Any]] = []
    for variant in VARIANTS:
        found = hours_of(results, variant, simulated)
        mean, paper = statistics.fmean(found), PAPER_HOURS[variant]
        row = [variant, _total(results, variant, simulated, "updates"), mean, deviation(found)]
        rows.append([*row, *paper, *([mean / paper[0]] if with_ratio else [])])
    columns = ("variant", "updates", "hours", "+-", "paper", "+-", *(["ratio"] * with_ratio))
    return Table(title=title, columns=columns, rows=rows, notes=notes)


def _total(results: Results, variant: str, simulated: bool, figure_name: str) -> int:
    prefix = f"simulated.{variant}." if simulated else f"{variant}."
    return sum(r[figure_name] for name, r in results.items() if name.startswith(prefix))


def _relative_table(title: str, results: Results, simulated: bool) -> Table:
    """Percent of the slowest variant and speed-up, ours and the paper's."""
    ours, base = mean_hours(results, simulated), PAPER_HOURS[BASE][0]
    rows = [
        [
            variant,
            100 * ours[variant] / ours[BASE],
            100 * PAPER_HOURS[variant][0] / base,
            ours[BASE] / ours[variant],
            base / PAPER_HOURS[variant][0],
        ]
        for variant in VARIANTS
    ]
    columns = ("variant", "%", "paper's %", "speed-up", "paper's speed-up")
    return Table(title=title, columns=columns, rows=rows)


def speed_plot(scale: Scale, results: Results, path: Path) -> None:
    """Speed-up over the slowest variant by threads: real, simulated, paper."""
    sources = {
        "real network, this machine": mean_hours(results),
        "simulated coprocessor": mean_hours(results, simulated=True),
        "paper": {variant: paper[0] for variant, paper in PAPER_HOURS.items()},
    }
    with figure(path, len(sources)) as axes:
        for each, (title, found) in zip(axes, sources.items(), strict=True):
            for kind in KINDS:
                threads = [n for n in THREADS if f"{kind}-{n}" in found]
                speed_ups = [found[BASE] / found[f"{kind}-{n}"] for n in threads]
                each.plot(threads, speed_ups, marker="o", label=kind)
            each.set_xscale("log", base=2)
            each.set_xticks(THREADS, [str(n) for n in THREADS])
            each.set(title=title, xlabel="sampler threads", ylabel=f"speed-up over {BASE}")
            each.set_ylim(bottom=0)
            each.grid(alpha=0.3)
        axes[0].legend()


def _pairs(ours: Mapping[str, float], pairs: Sequence[tuple[str, str]]) -> Finding:
    """Whether the first of every pair takes less time than the second."""
    wrong = [f"{a} {ours[a]:.2f} h, {b} {ours[b]:.2f} h" for a, b in pairs if ours[a] >= ours[b]]
    return Finding(not wrong, "not so: " + "; ".join(wrong) if wrong else f"all {len(pairs)} pairs")


def _speed_claims(simulated: bool) -> list[Claim]:
    where = "simulated coprocessor" if simulated else "this machine"
    several = [n for n in THREADS if n > 1]

    def claim(sentence: str, find: Callable[[Mapping[str, float]], Finding]) -> Claim:
        return Claim(
            sentence, f"section 5.1; {where}", lambda results: find(mean_hours(results, simulated))
        )

    concurrency = [(f"concurrent-{n}", f"standard-{n}") for n in THREADS]
    synchrony = [(f"synchronized-{n}", f"standard-{n}") for n in several]
    both = [(f"both-{n}", f"{k}-{n}") for n in several for k in ("concurrent", "synchronized")]
    return [
        claim(
            "Concurrency helps for any number of threads.",
            lambda ours: _pairs(ours, concurrency),
        ),
        claim(
            "Synchronization helps for any number of threads (the paper's own table says "
            "otherwise at 2).",
            lambda ours: _pairs(ours, synchrony),
        ),
        claim(
            "Both together are faster than either alone (the paper's own table says otherwise "
            "at 2).",
            lambda ours: _pairs(ours, both),
        ),
        claim(
            "Without either, more than four threads do not help.",
            lambda ours: Finding(
                ours["standard-8"] > 0.98 * ours["standard-4"],
                f"{ours['standard-4']:.2f} h with 4, {ours['standard-8']:.2f} h with 8",
            ),
        ),
        claim(
            "Both with eight threads are the fastest and almost triple the speed.",
            lambda ours: Finding(
                min(ours, key=ours.__getitem__) == "both-8" and ours[BASE] / ours["both-8"] > 2.5,
                f"fastest {min(ours, key=ours.__getitem__)}, both-8 "
                f"{ours[BASE] / ours['both-8']:.2f} times {BASE}",
            ),
        ),
    ]


EXPERIMENTS = (
    Experiment(
        name="fast-dqn-speed",
        summary="Hours of fast DQN's 14 variants, on this machine and on a simulated coprocessor.",
        paper=f"{PAPER}, Tables 1 to 3",
        cells=speed_cells,
        measure=measure_speed,
        tables=speed_tables,
        claims=(*_speed_claims(simulated=False), *_speed_claims(simulated=True)),
        plot=speed_plot,
        notes=(
            "One thread of PyTorch per calling thread. Hours are the measured time per agent step "
            "times 50 million, without evaluation.",
        ),
        line=lambda result: (
            f"{result['hours']:.1f} h at {result['agent_sps']:,.0f} steps/s"
            if "hours" in result
            else f"{result['seconds_per_item'] * 1e6:.1f} us per item"
        ),
    ),
)
