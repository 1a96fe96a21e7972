"""Accelerated Methods (Stooke and Abbeel 2018): do gradients of larger batches still differ?

`accelerated-gradients` trains A2C with more and more environments and measures, at updates spread
over the run, the cosine between the gradient of a batch and that of half of it. Were the halves
independent it would be 1/sqrt(2); near 1, the second half adds nothing. Random starts and a warm-up
of the learning rate are switched off and on beside it.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scanline.tables import Table

from .accelerated_secondary import PAPER
from .claims import Finding, claim
from .experiment import Cell, Experiment, Result, Results, Scale
from .figures import figure
from .learning import learning_curve

COSINE = "norms/half_batch_cosine"
INDEPENDENT = 2**-0.5

SIZES: Mapping[Scale, Mapping[str, Any]] = {
    "smoke": {"num_envs": [16, 64], "agent_steps": 9_600, "every": 5, "game": "pong"},
    "desk": {"num_envs": [16, 64, 256], "agent_steps": 1_000_000, "every": 50, "game": "pong"},
    "paper": {
        "num_envs": [16, 32, 64, 128, 256, 512],
        "agent_steps": 25_000_000,
        "every": 100,
        "game": "breakout",
    },
}
FORMS: Mapping[str, Mapping[str, Any]] = {
    "plain": {},
    "same-start": {"decorrelation_agent_steps": 0},
    "warm-up": {"warmup_share": 0.02},
}
"""As the paper has it; without random steps before training; with a growing learning rate."""


def cells(scale: Scale) -> list[Cell]:
    sizes = SIZES[scale]
    shared = {key: sizes[key] for key in ("agent_steps", "every", "game")}
    return [
        Cell(
            name=f"{form}-{num}",
            settings={**shared, "recipe": {"num_envs": num, **_form(form, scale)}},
        )
        for num, form in itertools.product(sizes["num_envs"], FORMS)
    ]


def _form(name: str, scale: Scale) -> dict[str, Any]:
    """What a form changes, in the recipe's own settings."""
    form = {"decorrelation_agent_steps": 200 if scale == "smoke" else 2_000, **FORMS[name]}
    share = form.pop("warmup_share", 0.0)
    return {**form, "warmup_agent_steps": int(share * SIZES[scale]["agent_steps"])}


def measure(cell: Cell, before: Results) -> Result:
    asked = cell.settings
    return learning_curve(
        "accelerated-a2c",
        asked["game"],
        agent_steps=asked["agent_steps"],
        metrics=(COSINE,),
        cosine_every_updates=asked["every"],
        **asked["recipe"],
    )


def cosines(result: Result) -> list[float]:
    return [value for _, value in result["metrics"][COSINE]]


def tables(scale: Scale, results: Results) -> list[Table]:
    rows = []
    for name, result in results.items():
        found = cosines(result)
        half = len(found) // 2
        early, late = statistics.fmean(found[: half or 1]), statistics.fmean(found[half:])
        rows.append([name, result["updates"], early, late, result["score"]])
    columns = ("form-envs", "updates", "cosine, first half", "second half", "score")
    note = f"Independent halves of a batch would give {INDEPENDENT:.3f}."
    title = "Section 5.5: cosine of half-batch and whole gradients"
    return [Table(title=title, columns=columns, rows=rows, digits=3, notes=(note,))]


def plot(scale: Scale, results: Results, path: Path) -> None:
    with figure(path) as (axes,):
        for name, result in results.items():
            axes.plot(*zip(*result["metrics"][COSINE], strict=True), label=name)
        axes.axhline(INDEPENDENT, color="grey", linestyle=":")
        axes.set(xlabel="agent steps", ylabel="cosine of half and whole")
        axes.grid(alpha=0.3)
        axes.legend(fontsize=7)


@claim(
    "With more environments the gradient saturates: halves of a batch become more parallel.",
    "section 5.5",
)
def _rises(results: Results) -> Finding:
    """Whether larger batches have more parallel halves."""
    means = {
        int(name.rpartition("-")[2]): statistics.fmean(cosines(result))
        for name, result in results.items()
        if name.startswith("plain")
    }
    ordered = [means[num] for num in sorted(means)]
    words = ", ".join(f"{num} environments {means[num]:.3f}" for num in sorted(means))
    return Finding(ordered[-1] > ordered[0], words)


@claim(
    "For small batches the halves' gradients are independent: a cosine of 1/sqrt(2).", "section 5.5"
)
def _independent(results: Results) -> Finding:
    """Whether the smallest batch's halves look independent."""
    first = next(result for name, result in results.items() if name.startswith("plain"))
    mean = statistics.fmean(cosines(first))
    return Finding(abs(mean - INDEPENDENT) < 0.05, f"{mean:.3f} against {INDEPENDENT:.3f}")


@claim("A warm-up of the learning rate has no further effect.", "section 5.2")
def _no_further_effect(results: Results) -> Finding:
    """Whether warm-up leaves the score at the end as it was, for every number of environments."""
    pairs = {
        name.rpartition("-")[2]: (results[name.replace("warm-up", "plain")]["score"], r["score"])
        for name, r in results.items()
        if name.startswith("warm-up")
    }
    if any(None in pair for pair in pairs.values()):
        return Finding(None, "no game finished")
    words = ", ".join(f"{num}: {a:.1f} and {b:.1f}" for num, (a, b) in pairs.items())
    alike = all(abs(a - b) <= 0.25 * max(abs(a), abs(b), 1.0) for a, b in pairs.values())
    return Finding(alike, f"scores without and with warm-up {words}")


EXPERIMENTS = (
    Experiment(
        name="accelerated-gradients",
        summary="A2C's gradients over numbers of environments: the cosine of half and whole batch.",
        paper=f"{PAPER}, section 5.5",
        cells=cells,
        measure=measure,
        tables=tables,
        claims=(_independent, _rises, _no_further_effect),
        plot=plot,
        line=lambda result: f"mean cosine {statistics.fmean(cosines(result)):.3f}",
    ),
)
