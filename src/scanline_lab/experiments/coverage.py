"""Every table and figure of the five papers: which experiment measures it, and what came of it.

Takes the kept records of reproductions by the name of their experiment; gives the generated part of
docs/experiments.md: the experiments with their costs, every table and figure, every claim with its
verdict. Knows no experiment's inside. `benchmarks/experiments_page.py` writes the page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from .experiment import Experiment
from .scores import hours

Kept = Mapping[str, Mapping[str, Any]]
"""`results.json` of reproductions, by the name of their experiment."""

CULE, GA3C, ACCELERATED = "CuLE", "GA3C", "Accelerated Methods"
FAST_DQN, PAAC = "Fast DQN", "PAAC"


class Item(NamedTuple):
    """A table, figure or section of a paper that says something."""

    paper: str
    place: str
    shows: str
    experiments: tuple[str, ...] = ()
    remark: str = ""
    """Why no experiment measures it, or what must be known of its verdict."""


_DRAWING = "a drawing: nothing to measure"
_SETTINGS = "a list: nothing to measure"
ITEMS = (
    Item(CULE, "Table 1", "frames/s and times of systems", ("cule-load",), "rows of GPUs need one"),
    Item(CULE, "Table 2", "systems", (), _SETTINGS),
    Item(
        *(CULE, "Table 3", "rates, minutes and frames to a score", ("cule-training",)),
        "training games here, test games there; rows of a GPU need one",
    ),
    Item(CULE, "Table 4", "training rates of DQN, A2C, PPO", ("cule-systems",), "CPU engines only"),
    Item(CULE, "Figure 1", "the emulator's kernels", (), _DRAWING),
    Item(CULE, "Figure 2", "frames/s over games and environments", ("cule-load",), "without a GPU"),
    Item(CULE, "Figure 3", "frames/s as environments part, GPU", ("cule-load",), "without a GPU"),
    Item(CULE, "Figure 4", "frames/s under three loads, Assault", ("cule-load",), "without a GPU"),
    Item(CULE, "Figure 5", "test scores over time", ("cule-training",), "curves of training games"),
    Item(CULE, "Figure 6", "frames/s as environments part, CPU", ("cule-load",)),
    Item(CULE, "Figure 7", "frames/s under three loads, more games", ("cule-load",), "no GPU"),
    Item(
        *(CULE, "Figure 8", "equal scores on both emulators", ()),
        "confirmed, in a stronger form: 104 games are equal to ALE frame by frame "
        "([emulator](emulator.md))",
    ),
    Item(GA3C, "Table 1", "systems", (), _SETTINGS),
    Item(GA3C, "Table 2", "predictions/s of A3C and GA3C", ("ga3c-vs-a3c",), "network on the CPU"),
    Item(GA3C, "Table 3", "scores after a day", ("ga3c-scores",)),
    Item(GA3C, "Figure 1", "both architectures", (), _DRAWING),
    Item(GA3C, "Figure 2", "the controller's search", ("ga3c-adjustment",)),
    Item(GA3C, "Figure 3", "updates/s over configurations", ("ga3c-throughput",)),
    Item(GA3C, "Figure 4", "queue and batch sizes", ("ga3c-throughput",)),
    Item(GA3C, "Figure 5", "scores of four configurations", ("ga3c-configurations",)),
    Item(GA3C, "Figure 6", "curves of two learning rates", ("ga3c-rates",)),
    Item(GA3C, "Figure 7", "least training batch", ("ga3c-batch-size",)),
    Item(GA3C, "section 4.4", "the epsilon in the logarithm", ("ga3c-epsilon",)),
    Item(ACCELERATED, "Table 1", "human-normalised scores", ("accelerated-scores",)),
    Item(
        *(ACCELERATED, "Table 2", "hours by number of learners"),
        ("accelerated-learners", "accelerated-async"),
        "learners have shares of the cores, not GPUs",
    ),
    Item(
        *(ACCELERATED, "Table 3", "samples/s, barrier or free", ("accelerated-sampling",)),
        "simulated devices; the paper has 8 P100 and 40 cores",
    ),
    Item(ACCELERATED, "Figure 1", "samples/s per core", ("accelerated-sampling",), "simulated"),
    Item(
        *(ACCELERATED, "Figure 2", "scores over environments and learners"),
        ("accelerated-scaling", "accelerated-async"),
    ),
    Item(ACCELERATED, "Figure 3", "batch sizes of the DQNs", ("accelerated-batches",)),
    Item(ACCELERATED, "Figure 4", "scores over minutes", ("accelerated-minutes",), "no GPUs"),
    *(
        Item(ACCELERATED, f"Figure {number}", shows, ("accelerated-secondary-learner",))
        for number, shows in (
            (5, "a second learner, other batches"),
            (6, "its parameter norms"),
            (7, "a second learner, equal batches"),
        )
    ),
    Item(ACCELERATED, "Figure 8", "norms, Adam against RMSProp", ("accelerated-norms",)),
    *(
        Item(
            ACCELERATED, f"Figure {number}", f"curves of {kind}, 49 games", ("accelerated-scores",)
        )
        for number, kind in ((9, "A2C and A3C"), (10, "PPO and APPO"), (11, "the DQNs"))
    ),
    Item(ACCELERATED, "section 5.5", "gradient saturation", ("accelerated-gradients",)),
    *(
        Item(FAST_DQN, f"Table {number}", f"14 variants, {shows}", ("fast-dqn-speed",))
        for number, shows in ((1, "hours"), (2, "percent"), (3, "speed-up"))
    ),
    Item(FAST_DQN, "Table 4", "scores on 49 games", ("fast-dqn-scores",)),
    Item(FAST_DQN, "Table 5", "hyperparameters", (), _SETTINGS),
    Item(FAST_DQN, "Figure 1", "flow charts", (), _DRAWING),
    Item(FAST_DQN, "Figure 2", "timing of threads", ("fast-dqn-timeline",)),
    Item(FAST_DQN, "Figure 3", "threads that compete", ("fast-dqn-speed",), "a drawing of it"),
    Item(PAAC, "Table 1", "scores on twelve games", ("paac-scores",)),
    Item(PAAC, "Figure 1", "the framework", (), _DRAWING),
    Item(PAAC, "Figure 2", "where the time goes", ("paac-time-usage",), "network on the CPU"),
    Item(PAAC, "Figure 3", "scores over steps by environments", ("paac-scaling",)),
    Item(PAAC, "Figure 4", "scores over time by environments", ("paac-scaling",)),
)

HOURS: Mapping[str, tuple[float, float]] = {
    "cule-load": (1.0, 7.0),
    "cule-training": (1.7, 44.0),
    "cule-systems": (0.2, 0.5),
    "accelerated-sampling": (0.2, 1.4),
    "accelerated-scaling": (1.7, 86.0),
    "accelerated-async": (2.4, 67.0),
    "accelerated-gradients": (0.7, 31.0),
    "accelerated-learners": (0.8, 14.0),
    "accelerated-secondary-learner": (6.4, 1_300.0),
    "fast-dqn-speed": (1.8, 160.0),
    "fast-dqn-timeline": (0.1, 0.1),
    "ga3c-vs-a3c": (0.2, 2.8),
    "ga3c-adjustment": (2.0, 6.0),
    "ga3c-throughput": (1.1, 54.0),
    "ga3c-configurations": (4.0, 24.0),
    "ga3c-batch-size": (6.0, 54.0),
    "ga3c-epsilon": (3.8, 90.0),
    "paac-time-usage": (0.1, 0.4),
    "paac-scaling": (0.4, 96.0),
    "pong-minutes": (3.0, 24.0),
    "learning": (30.0, 400.0),
    "learning-bounds": (0.4, 0.4),
}
"""About what the scales desk and paper take on two cores without a GPU, from rates of whole runs;
of studies of scores it is computed."""

Costs = Mapping[str, Sequence[float]]


def costs_of(experiments: Mapping[str, Experiment]) -> Costs:
    """Hours of desk and paper by experiment."""
    return {
        name: HOURS.get(name) or [hours(each.cells(scale)) for scale in ("desk", "paper")]
        for name, each in experiments.items()
    }


def page(experiments: Mapping[str, Experiment], kept: Kept) -> str:
    """Three tables in Markdown."""
    costs = costs_of(experiments)
    sections = (
        _items(costs, kept),
        _experiments(experiments, costs, kept),
        _claims(experiments, kept),
    )
    return "\n\n".join("\n".join(lines) for lines in sections)


def _experiments(experiments: Mapping[str, Experiment], costs: Costs, kept: Kept) -> list[str]:
    lines = ["| experiment | what | hours: desk, paper |", "|---|---|---|"]
    for name, experiment in experiments.items():
        spent = ", ".join(_rounded(each) for each in costs[name])
        lines.append(f"| {_linked(name, kept)} | {experiment.summary} | {spent} |")
    return ["## Experiments", *lines]


def _items(costs: Costs, kept: Kept) -> list[str]:
    lines = ["| paper | place | what it shows | experiment | here |", "|---|---|---|---|---|"]
    for item in ITEMS:
        names = ", ".join(_linked(name, kept) for name in item.experiments) or "-"
        here = "; ".join([*(_status(name, costs, kept) for name in item.experiments), item.remark])
        words = here.strip("; ")
        lines.append(f"| {item.paper} | {item.place} | {item.shows} | {names} | {words} |")
    return ["## Every table and figure", *lines]


def _linked(name: str, kept: Kept) -> str:
    return f"[`{name}`](experiments/{name}.md)" if name in kept else f"`{name}`"


def _rounded(hours: float) -> str:
    return f"{hours:,.0f}" if hours >= 10 else f"{hours:.1g}"


def _status(name: str, costs: Costs, kept: Kept) -> str:
    """Verdicts of a kept reproduction by number; what one would cost where there is none."""
    if name not in kept:
        return f"not run (desk about {_rounded(costs[name][0])} h)"
    verdicts = [claim["verdict"] for claim in kept[name]["claims"]]
    counts = {verdict: verdicts.count(verdict) for verdict in dict.fromkeys(verdicts)}
    scale = kept[name]["scale"]
    return ", ".join(f"{num} {verdict}" for verdict, num in counts.items()) or f"run at {scale}"


def _claims(experiments: Mapping[str, Experiment], kept: Kept) -> list[str]:
    lines = ["| experiment | claim | source | verdict |", "|---|---|---|---|"]
    for name, experiment in experiments.items():
        judged = {(c["claim"], c["source"]): c for c in kept.get(name, {}).get("claims", ())}
        for claim in experiment.claims:
            found = judged.get((claim.sentence, claim.source))
            verdict = _verdict(found) if found else "not run"
            lines.append(f"| `{name}` | {claim.sentence} | {claim.source} | {verdict} |")
    return ["## Every claim", *lines]


def _verdict(judged: Mapping[str, Any]) -> str:
    measured = f": {judged['measured']}" if judged["measured"] else ""
    return f"**{judged['verdict']}**{measured}"
