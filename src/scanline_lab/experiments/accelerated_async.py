"""Accelerated Methods (Stooke and Abbeel 2018): asynchronous learners, more and more.

`accelerated-async` measures the asynchronous half of Figure 2, A3C with more and more learners of
16 environments and APPO with 1 to 4 updates between two merges, as scores over the steps of all
learners; and their columns of Table 2, hours for 50 million steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scanline.runs.clock import LEARNING, TRAINING_PARTS
from scanline.tables import Table

from .accelerated_secondary import PAPER
from .claims import Claim, Finding, claim
from .experiment import Cell, Experiment, Result, Results, Scale
from .learning import as_good, best_score, learning_curve, mean_of, plot_kinds

LAG, WAITED = "perf/policy_lag", "perf/lock_wait_share"
TIMES = tuple(f"perf/time_{part}" for part in TRAINING_PARTS)
PAPER_STEPS = 50_000_000
PAPER_HOURS = {"a3c": {2: 2.4, 4: 1.3, 8: 0.65}, "appo": {2: 2.8, 4: 1.5, 8: 0.71}}
"""Table 2: hours for 50 million steps by learners, each with a GPU and 5 cores."""

SIZES: Mapping[Scale, Mapping[str, Any]] = {
    "smoke": {
        "game": "pong",
        "agent_steps": {"a3c": 40_000, "appo": 16_384},
        "learners": [1, 2, 4],
        "periods": [1, 2, 4],
        "appo": {"learners": 2, "rollout_samples": 512},
        "decorrelation": 50,
    },
    "desk": {
        "game": "pong",
        "agent_steps": {"a3c": 2_000_000, "appo": 2_000_000},
        "learners": [1, 2, 4, 8],
        "periods": [1, 2, 3, 4],
        "appo": {"learners": 8},
        "decorrelation": 500,
    },
    "paper": {
        "game": "breakout",
        "agent_steps": {"a3c": PAPER_STEPS, "appo": PAPER_STEPS},
        "learners": [1, 2, 4, 8, 16, 32],
        "periods": [1, 2, 3, 4],
        "appo": {"learners": 8},
        "decorrelation": 2_000,
    },
}


def cells(scale: Scale) -> list[Cell]:
    sizes = SIZES[scale]
    recipes: dict[str, dict[str, Any]] = {
        f"a3c-{number}": {"learners": number} for number in sizes["learners"]
    }
    recipes |= {
        f"appo-{period}": {"sync_updates": period, **sizes["appo"]} for period in sizes["periods"]
    }
    return [_cell(scale, name, recipe) for name, recipe in recipes.items()]


def _cell(scale: Scale, name: str, recipe: Mapping[str, Any]) -> Cell:
    sizes, kind = SIZES[scale], name.partition("-")[0]
    return Cell(
        name=name,
        settings={
            "kind": kind,
            "game": sizes["game"],
            "agent_steps": sizes["agent_steps"][kind],
            "recipe": {**recipe, "decorrelation_agent_steps": sizes["decorrelation"]},
        },
    )


def measure(cell: Cell, before: Results) -> Result:
    asked = cell.settings
    found = learning_curve(
        f"accelerated-{asked['kind']}",
        asked["game"],
        agent_steps=asked["agent_steps"],
        metrics=(LAG, WAITED, *TIMES),
        torch_threads=1,
        **asked["recipe"],
    )
    return {**found, "learners": asked["recipe"]["learners"]}


def tables(scale: Scale, results: Results) -> list[Table]:
    rows = []
    for name, r in results.items():
        kind = name.partition("-")[0]
        waited = mean_of(r, WAITED)
        rows.append(
            [
                name,
                r["learners"],
                r["agent_sps"],
                PAPER_STEPS / r["agent_sps"] / 3_600,
                PAPER_HOURS[kind].get(r["learners"]),
                mean_of(r, LAG),
                None if waited is None else 100 * waited,
                r["score"],
                best_score(r),
            ]
        )
    columns = ("cell", "learners", "steps/s", "h/50M", "paper", "lag", "lock %", "score", "best")
    notes = (
        "a3c-N: N learners of 16 environments; appo-P: P updates between two merges. lag: updates "
        "of others between acting and learning. lock: share of a learner's time that it waited.",
        "paper: Table 2, hours with a GPU and 5 cores per learner; here all share the same cores.",
    )
    title = "Figure 2 and Table 2: asynchronous learners"
    return [Table(title=title, columns=columns, rows=rows, digits=2, notes=notes)]


def plot(scale: Scale, results: Results, path: Path) -> None:
    plot_kinds(path, results, ("a3c", "appo"))


@claim(
    "More learners make more steps per second.",
    "Table 2, where each has a GPU and 5 cores of its own",
)
def _faster(results: Results) -> Finding:
    rates = {r["learners"]: r["agent_sps"] for n, r in results.items() if n.startswith("a3c-")}
    if len(rates) < 2:
        raise KeyError("a3c")
    words = ", ".join(f"{number} learners {rate:,.0f} steps/s" for number, rate in rates.items())
    return Finding(rates[max(rates)] > rates[min(rates)], words)


@claim(
    "With chunks, learners spend less time blocked than updating.",
    "footnote 2, 8 learners and 3 chunks",
)
def _rarely_blocked(results: Results) -> Finding:
    """Whether waiting is less than half of learning, of which it is a part."""
    found = {}
    for name, result in results.items():
        waited = mean_of(result, WAITED)
        if name.startswith("a3c-") and waited is not None:
            found[name] = waited, _learning_share(result)
    words = ", ".join(
        f"{n} {waited:.1%} of {learned:.0%}" for n, (waited, learned) in found.items()
    )
    holds = all(waited < learned / 2 for waited, learned in found.values())
    return Finding(holds if found else None, f"waiting of learning: {words}")


def _learning_share(result: Result) -> float:
    """Learning's share of a learner's time, waits for locks included."""
    seconds = {name: sum(value for _, value in result["metrics"][name]) for name in TIMES}
    return float(seconds[f"perf/time_{LEARNING}"] / max(sum(seconds.values()), 1e-9))


EXPERIMENTS = (
    Experiment(
        name="accelerated-async",
        summary="A3C with more and more learners, APPO with longer and longer periods.",
        paper=f"{PAPER}, Figure 2 and Table 2",
        cells=cells,
        measure=measure,
        tables=tables,
        claims=(
            Claim(
                "A3C's curves over all learners' steps hardly differ with more learners.",
                "section 5.2",
                lambda results: as_good(results, "a3c"),
                scales=("paper",),
            ),
            Claim(
                "APPO's learning stays consistent with 1 to 4 updates between merges.",
                "section 5.2",
                lambda results: as_good(results, "appo"),
                scales=("paper",),
            ),
            _faster,
            _rarely_blocked,
        ),
        plot=plot,
        notes=("Steps are those of all learners together, as in the paper's figure.",),
        line=lambda result: f"score {result['score']} at {result['agent_sps']:,.0f} steps/s",
    ),
)
