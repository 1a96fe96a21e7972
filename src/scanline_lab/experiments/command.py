"""`scanline reproduce EXPERIMENT`: options to one reproduction, its report on the terminal.

Takes words of the command line; gives an exit code. Knows which experiments there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tyro

from scanline.errors import RefusedError, look_up, refusals

from . import EXPERIMENTS, reproduce
from .experiment import Experiment, Scale
from .frame import PLOT, REPORT, Outcome

STOPPED = 130
"""Exit code of a command that a signal ended."""
BROKEN = 1
"""Exit code where a claim that must hold is not confirmed."""


@dataclass(frozen=True, kw_only=True)
class ReproduceOptions:
    """Measure a paper's table or figure again, beside the paper's numbers."""

    experiment: tyro.conf.Positional[str]
    """Which one (`scanline list experiments`)."""
    scale: Scale = "smoke"
    """smoke: minutes, whether it works; desk: hours on one machine; paper: the paper's sizes."""
    out: Path | None = None
    """Folder of the results; reproduced/EXPERIMENT-SCALE when not given. Kept cells are reused."""
    only: tuple[str, ...] = ()
    """Names of cells, * for anything: the others are not measured now, but reported where they are
    kept."""
    fresh: bool = False
    """Measure every cell anew, even where a result is kept."""
    must_hold: bool = False
    """Exit with 1 unless every claim is confirmed."""


def find(name: str) -> Experiment:
    """The experiment of this name."""
    with refusals():
        return look_up("experiment", name, EXPERIMENTS)


def summaries() -> dict[str, str]:
    """Every experiment's name with its sentence: `scanline list experiments`."""
    return {name: experiment.summary for name, experiment in EXPERIMENTS.items()}


def run(words: Sequence[str], program: str) -> int:
    """The command: measures one experiment and prints its report."""
    if not words:
        raise RefusedError("reproduce needs an experiment (`scanline list experiments`).")
    options = tyro.cli(ReproduceOptions, args=list(words), prog=program)
    experiment = find(options.experiment)
    try:
        outcome = reproduce(
            experiment, options.scale, options.out, only=options.only, fresh=options.fresh
        )
    except KeyboardInterrupt:
        print("Stopped. What was measured is kept; the same command goes on from there.")
        return STOPPED
    show(experiment, outcome)
    broken = any(judged.verdict != "confirmed" for judged in outcome.claims)
    return BROKEN if options.must_hold and broken else 0


def show(experiment: Experiment, outcome: Outcome) -> None:
    """The report for a terminal."""
    for table in outcome.tables:
        print("\n" + table.text())
    for note in experiment.notes:
        print(f"\n{note}")
    if outcome.claims:
        print("\nClaims of the paper")
    for judged in outcome.claims:
        print(f"  {judged.verdict}: {judged.claim.sentence} ({judged.claim.source})")
        if judged.measured:
            print(f"    here: {judged.measured}")
    picture = f" and {outcome.folder / PLOT}" if experiment.plot is not None else ""
    print(f"\nThe report is {outcome.folder / REPORT}{picture}")
