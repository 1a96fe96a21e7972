"""`bench learners`: one learner on one core against N on N, and against N that share nothing.

Takes a recipe, a game and numbers of learners; gives rows of agent steps per second with their
efficiency, the rate over N times that of one learner on one core, and beside it the rate over that
of N learners with the same work that do not exchange anything: what the exchange costs.
Knows `scanline train` from outside: whole runs, in processes that may use N cores only.

Two questions: `strong` divides the recipe's environments and batch among the learners, `weak` gives
each of them as much as the one has. Repeats are interleaved.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from scanline import recipes
from scanline.errors import RefusedError, refusals
from scanline.processes import granted_core_ids
from scanline.reports import read_run
from scanline.samplers import SamplingSettings
from scanline.stores import ReplaySettings

from .options import Numbers, Unasked
from .rows import Row, print_table, summary
from .work import Figures, WorkError

COLUMNS = {
    "recipe": "recipe",
    "learners": "learners",
    "scaling": "scaling",
    "exchange": "exchange",
    "num_envs": "envs",
    "agent_sps": "steps/s",
    "ups": "updates/s",
    "efficiency": "efficiency",
    "of_independent": "of independent",
}
_GRACE_SECONDS = 120.0


@dataclass(frozen=True, kw_only=True)
class LearnersBench:
    """One learner on one core against several, each with a core of its own."""

    recipe: str = "accelerated-ppo"
    """Recipe of ours."""
    game: str = "pong"
    """Game that all learners play."""
    learners: Numbers = (2,)
    """Numbers of learners by commas."""
    repeats: int = 3
    """Interleaved repeats of every number; the median counts."""
    seconds: float = 20.0
    """Timed seconds of one repeat."""
    warm_up_seconds: float = 5.0
    """Seconds before the clock starts."""
    num_envs: int | None = None
    """Environments of the one learner; the recipe's number when not given."""
    json: Path | None = None
    """File for the rows."""
    settings: Unasked = field(default_factory=dict)
    """Further settings of the recipe that differ from its row."""

    @property
    def changes(self) -> dict[str, Any]:
        """Settings of the recipe that differ from its row."""
        return self.settings | ({} if self.num_envs is None else {"num_envs": self.num_envs})


@dataclass(frozen=True)
class Scaling:
    """So many learners, with the recipe's work for all of them or for each."""

    learners: int
    scaling: str
    exchange: bool = True
    """Whether they learn together; else each is a run of its own with its share of the work."""

    @property
    def factor(self) -> Fraction:
        """Work of one run over the recipe's."""
        each = Fraction(1, self.learners) if self.scaling == "strong" else Fraction(1)
        return each * self.learners if self.exchange else each


def run(bench: LearnersBench, say: Any = print) -> list[Row]:
    """Rows of one learner and of all other numbers, in both scalings, together and apart."""
    refuse_too_many(bench.learners)
    cases = [Scaling(1, "one")]
    for num, scaling in itertools.product(bench.learners, ("strong", "weak")):
        cases += [Scaling(num, scaling, exchange) for exchange in (False, True)]
    figures: list[list[Figures]] = [[] for _ in cases]
    for repeat in range(bench.repeats):
        for place, case in enumerate(cases):
            figures[place].append(measure(bench, case))
            rate, kind = figures[place][-1]["agent_sps"], f"{case.scaling}, {case.exchange=}"
            say(f"repeat {repeat + 1}: {case.learners} learners ({kind}) {rate:,.0f}/s")
    rows = [_row(bench, case, done) for case, done in zip(cases, figures, strict=True)]
    for row in rows:
        row["efficiency"] = round(row["agent_sps"] / (row["learners"] * rows[0]["agent_sps"]), 3)
    for apart, together in itertools.pairwise(rows):
        if together["exchange"] and not apart["exchange"]:
            together["of_independent"] = round(together["agent_sps"] / apart["agent_sps"], 3)
    return rows


def refuse_too_many(learners: Sequence[int]) -> None:
    cores = len(granted_core_ids())
    if max(learners) > cores or min(learners) < 2:
        raise RefusedError(
            f"learners={','.join(map(str, learners))}: each learner gets a core of its own, of "
            f"which there are {cores}; use 2 to {cores}."
        )


@refusals()
def settings_of(bench: LearnersBench, case: Scaling) -> dict[str, Any]:
    """The recipe's settings with the environments and batch of one run of the case."""
    recipe = recipes.find(bench.recipe).replace(**bench.changes)
    changes = {**bench.changes, "num_envs": int(recipe.sampling.num_envs * case.factor)}
    sampling = recipe.sampling
    if isinstance(sampling, SamplingSettings) and sampling.rollout_samples:
        changes["rollout_samples"] = int(sampling.rollout_samples * case.factor)
    if isinstance(recipe.store, ReplaySettings):
        changes["batch_size"] = int(recipe.store.batch_size * case.factor)
    return changes


def measure(bench: LearnersBench, case: Scaling) -> Figures:
    """Rates of one run on as many cores as learners, or the sum of one run on each of them."""
    cores = granted_core_ids()[: case.learners]
    if case.exchange:
        return _measured(bench, case, cores)
    with ThreadPoolExecutor(len(cores)) as pool:
        found = list(pool.map(lambda core: _measured(bench, case, [core]), cores))
    return {name: sum(each[name] for each in found) for name in found[0]}


def _measured(bench: LearnersBench, case: Scaling, cores: Sequence[int]) -> Figures:
    """Rates of a run of its own on these cores, after the warm-up."""
    options = {
        **settings_of(bench, case),
        "learners": len(cores),
        "seconds": bench.warm_up_seconds + bench.seconds,
        "torch_threads": 1,
        "num_threads": 1,
        "log_every_agent_steps": 200,
    }
    words = [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        train = [sys.executable, "-m", "scanline", "train", bench.recipe, bench.game]
        plain = ["--pin-cores", "--no-live", "--no-tensorboard"]
        done = subprocess.run(
            ["taskset", "--cpu-list", ",".join(map(str, cores)), *train, "--out", str(out)]
            + [*plain, *words],
            capture_output=True,
            text=True,
            timeout=options["seconds"] + _GRACE_SECONDS,
            check=False,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        if done.returncode:
            raise WorkError(f"{bench.recipe} failed:\n{done.stderr.strip()[-3000:]}")
        rows = read_run(out).rates
    return rates_of(rows, bench.warm_up_seconds)


def rates_of(rows: Sequence[Mapping[str, Any]], warm_up_seconds: float) -> Figures:
    """Rates between the first row after the warm-up and the last."""
    counted = [row for row in rows if row["training_seconds"] >= warm_up_seconds]
    if len(counted) < 2:
        raise WorkError("The run logged fewer than two rows after its warm-up; time it longer.")
    seconds = counted[-1]["training_seconds"] - counted[0]["training_seconds"]
    steps = counted[-1]["agent_steps"] - counted[0]["agent_steps"]
    updates = sum(
        (row["training_seconds"] - before["training_seconds"]) * row["perf/updates_per_second"]
        for before, row in itertools.pairwise(counted)
    )
    return {"agent_sps": steps / seconds, "ups": updates / seconds}


def _row(bench: LearnersBench, case: Scaling, repeats: list[Figures]) -> Row:
    return {
        "recipe": bench.recipe,
        "game": bench.game,
        "learners": case.learners,
        "cores": case.learners,
        "scaling": case.scaling,
        "exchange": case.exchange,
        "num_envs": settings_of(bench, case)["num_envs"],
        **summary(repeats),
    }


def show(rows: Sequence[Row]) -> None:
    print_table(rows, COLUMNS, "Learners, one core each (efficiency: of N times one learner)")
