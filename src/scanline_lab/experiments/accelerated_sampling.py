"""Accelerated Methods (Stooke and Abbeel 2018): how fast it samples.

`accelerated-sampling` measures three things without learning, on Breakout: one group in lockstep
against two that alternate (section 4.1), with a network on this machine and with a simulated
coprocessor; samplers with a device each, free or with a barrier every five steps (Table 3); and the
rate per core over environments per core for numbers of cores that share a device (Figure 1b).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scanline import training
from scanline.processes import granted_cores
from scanline.tables import Table

from .accelerated_secondary import PAPER
from .claims import Claim, Finding, claim
from .coprocessor import SimulatedCoprocessor, TinyPolicy
from .experiment import Cell, Experiment, Result, Results, Scale, grid
from .figures import figure
from .measuring import sampling_rate, sampling_rate_side_by_side

PAPER_THOUSANDS = {64: (29.6, 31.9), 128: (33.0, 34.7), 256: (35.7, 36.7), 512: (35.8, 38.4)}
"""Table 3: thousand samples/s of 8 P100 and 40 cores by environments, with a barrier across the
GPUs every 5 steps, and free."""

SECONDS_PER_CALL, SECONDS_PER_ITEM = 5e-4, 5e-6
"""Of the simulated device: a small network on a GPU."""

GROUPS = ("inference-free", "network-1", "network-2", "simulated-1", "simulated-2")
"""Who decides, and for the last four in how many alternating groups."""
SIDE_BY_SIDE = ("barrier", "free")
"""A sampler per core, each with a simulated device and two groups of environments."""

SIZES: Mapping[Scale, Mapping[str, Any]] = {
    "smoke": {"num_envs": [8, 32], "cores": [1, 2], "per_core": [4], "seconds": 1.5},
    "desk": {
        "num_envs": [8, 16, 32, 64, 128, 256],
        "cores": [1, 2],
        "per_core": [2, 4, 8, 16, 32],
        "seconds": 10.0,
    },
    "paper": {
        "num_envs": [64, 128, 256, 512],
        "cores": [1, 2, 4, 8, 16],
        "per_core": [2, 4, 8, 16, 32],
        "seconds": 60.0,
    },
}


def cells(scale: Scale) -> list[Cell]:
    sizes = SIZES[scale]
    seconds = {"seconds": sizes["seconds"]}
    kinds = {"num_envs": sizes["num_envs"], "kind": (*GROUPS, *SIDE_BY_SIDE)}
    cores = {"cores": sizes["cores"], "per_core": sizes["per_core"], "kind": ("cores", "idle")}
    return [
        *grid("{kind}-{num_envs}", kinds, **seconds),
        *grid("{kind}-{cores}x{per_core}", cores, **seconds),
    ]


def _device() -> SimulatedCoprocessor:
    return SimulatedCoprocessor(SECONDS_PER_CALL, SECONDS_PER_ITEM)


def _plan(num_envs: int, num_groups: int, **settings: Any) -> training.Plan:
    shared = {"num_envs": num_envs, "num_groups": num_groups, "decorrelation_agent_steps": 0}
    return training.make_plan("accelerated-a2c", "breakout", **shared, **settings)


def measure(cell: Cell, before: Results) -> Result:
    asked = cell.settings
    kind, seconds = asked["kind"], asked["seconds"]
    if kind in SIDE_BY_SIDE:
        return {"agent_sps": _side_by_side(asked["num_envs"], seconds, kind == "barrier")}
    if kind in ("cores", "idle"):
        return _on_cores(asked["cores"], asked["per_core"], seconds, kind)
    decider: Any = "random" if kind == "inference-free" else kind.split("-")[0]
    simulated = {"network": TinyPolicy} if decider == "simulated" else {}
    plan = _plan(asked["num_envs"], 2 if kind.endswith("-2") else 1, **simulated)
    device = _device() if simulated else None
    return {"agent_sps": sampling_rate(plan, decider, seconds=seconds, device=device)}


def _side_by_side(num_envs: int, seconds: float, barrier: bool) -> float:
    num = min(granted_cores(), num_envs // 2)
    plan = _plan(num_envs // num, 2, network=TinyPolicy, num_threads=1)
    return sampling_rate_side_by_side(
        [plan] * num, [_device() for _ in range(num)], seconds=seconds, barrier=barrier
    )


def _on_cores(cores: int, per_core: int, seconds: float, kind: str) -> Result:
    """Environments on so many cores, all served by one device; idle: without inference."""
    decider: Any = "simulated" if kind == "cores" else "random"
    plan = _plan(cores * per_core, 2, network=TinyPolicy, num_threads=cores)
    rate = sampling_rate(plan, decider, seconds=seconds, device=_device())
    return {"agent_sps": rate, "has_cores": cores <= granted_cores()}


def tables(scale: Scale, results: Results) -> list[Table]:
    by_kind = {kind: _rate(results, kind) for kind in (*GROUPS, *SIDE_BY_SIDE)}
    numbers = sorted({num for rates in by_kind.values() for num in rates})
    groups = [[num, *(_thousand(by_kind[k].get(num)) for k in GROUPS)] for num in numbers]
    papers = {} if scale == "smoke" else PAPER_THOUSANDS
    free = [
        [
            num,
            *(_thousand(by_kind[kind].get(num)) for kind in SIDE_BY_SIDE),
            *papers.get(num, (None, None)),
        ]
        for num in numbers
    ]
    note = (
        "x1: one group in lockstep; x2: two groups that alternate. SIM: a SIMULATED device of "
        f"{SECONDS_PER_CALL * 1e3:g} ms per call and {SECONDS_PER_ITEM * 1e6:g} us per item."
    )
    servers = (
        f"Here {granted_cores()} samplers of a core and a SIMULATED device each; the paper: 8 "
        "samplers of a P100 each on 40 cores. barrier: all wait for each other every 5 steps."
    )
    kinds = ("envs", "no net", "net x1", "net x2", "SIM x1", "SIM x2")
    sides = ("envs", "SIM barrier", "SIM free", "paper barrier", "paper free")
    return [
        Table(title="Thousand samples/s", columns=kinds, rows=groups, digits=1, notes=(note,)),
        Table(title="Table 3: the same", columns=sides, rows=free, digits=1, notes=(servers,)),
        _cores_table(results),
    ]


def _thousand(rate: float | None) -> float | None:
    return None if rate is None else rate / 1e3


def _cores_table(results: Results) -> Table:
    found = _on_core_counts(results)
    rows = [
        [f"{cores} x {per_core}", own["cores"], own["idle"], 100 * own["cores"] / own["idle"]]
        for (cores, per_core), own in found.items()
    ]
    columns = ("cores x envs per core", "SIM", "no net", "%")
    title = "Figure 1b: samples/s per core, one device for all"
    note = "Only numbers of cores that this machine grants; the paper: 1 to 16 cores and a P100."
    return Table(title=title, columns=columns, rows=rows, digits=0, notes=(note,))


def _on_core_counts(results: Results) -> dict[tuple[int, int], dict[str, float]]:
    """Rates per core by cores and environments per core, with and without inference."""
    found: dict[tuple[int, int], dict[str, float]] = {}
    for name, result in results.items():
        kind, _, place = name.partition("-")
        if kind in ("cores", "idle") and result["has_cores"]:
            cores, per_core = map(int, place.split("x"))
            found.setdefault((cores, per_core), {})[kind] = result["agent_sps"] / cores
    return {place: own for place, own in found.items() if len(own) == 2}


def plot(scale: Scale, results: Results, path: Path) -> None:
    """Rates of groups over environments, and rates per core over environments per core."""
    with figure(path, 2) as (left, right):
        for kind in (*GROUPS, *SIDE_BY_SIDE):
            rates = _rate(results, kind)
            left.plot(list(rates), list(rates.values()), marker="o", label=kind)
        left.set(xscale="log", xlabel="environments", ylabel="agent steps/s")
        found = _on_core_counts(results)
        for cores in sorted({cores for cores, _ in found}):
            own = {per: rates["cores"] for (num, per), rates in found.items() if num == cores}
            right.plot(list(own), list(own.values()), marker="o", label=f"{cores} cores, SIM")
        right.set(xscale="log", xlabel="environments per core", ylabel="agent steps/s per core")
        for each in (left, right):
            each.set_ylim(bottom=0)
            each.grid(alpha=0.3)
            each.legend(fontsize=7)


def _rate(results: Results, kind: str) -> dict[int, float]:
    """Rates of a kind by environments."""
    own = {n.rpartition("-")[2]: r for n, r in results.items() if n.rpartition("-")[0] == kind}
    return {int(num): result["agent_sps"] for num, result in own.items() if num.isdecimal()}


def _is_faster(results: Results, first: str, second: str) -> Finding:
    """Whether the first kind is faster than the second at every number of environments."""
    one, other = _rate(results, first), _rate(results, second)
    if not one or not other:
        raise KeyError(first)
    gains = {num: one[num] / other[num] for num in one}
    words = ", ".join(f"{num} envs {gain:.2f} times" for num, gain in gains.items())
    return Finding(all(gain > 1 for gain in gains.values()), words)


@claim("Sampling speeds up with more environments per core.", "Table 3; simulated coprocessor")
def _rises(results: Results) -> Finding:
    rates = _rate(results, "free")
    if not rates:
        raise KeyError("free")
    first, last = rates[min(rates)], rates[max(rates)]
    return Finding(last > first, f"{first:,.0f} to {last:,.0f} steps/s on simulated devices")


@claim(
    "With 8 environments per core, cores reach about 80 % of their rate without inference.",
    "section 5.1 and Figure 1b, 16 cores and a P100; simulated coprocessor",
)
def _near_free(results: Results) -> Finding:
    found = {p: own["cores"] / own["idle"] for p, own in _on_core_counts(results).items()}
    at_8 = {cores: share for (cores, per_core), share in found.items() if per_core == 8}
    if not at_8:
        raise KeyError("8 environments per core")
    words = ", ".join(f"{cores} cores {share:.0%}" for cores, share in at_8.items())
    return Finding(at_8[max(at_8)] >= 0.75, words)


EXPERIMENTS = (
    Experiment(
        name="accelerated-sampling",
        summary="Samples per second: groups, barriers, and environments per core.",
        paper=f"{PAPER}, Figure 1b and Table 3",
        cells=cells,
        measure=measure,
        tables=tables,
        claims=(
            Claim(
                "Two alternating groups sample faster than one in lockstep.",
                "section 4.1; this machine, where network and games share the cores",
                lambda results: _is_faster(results, "network-2", "network-1"),
            ),
            Claim(
                "Two alternating groups sample faster than one in lockstep.",
                "section 4.1; simulated coprocessor",
                lambda results: _is_faster(results, "simulated-2", "simulated-1"),
            ),
            Claim(
                "GPUs that run on their own sample faster than with a barrier every 5 steps.",
                "Table 3, 8 P100 and 40 cores; simulated coprocessors",
                lambda results: _is_faster(results, "free", "barrier"),
            ),
            _rises,
            _near_free,
        ),
        plot=plot,
        line=lambda result: f"{result['agent_sps']:,.0f} steps/s",
    ),
)
