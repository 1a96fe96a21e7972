"""Accelerated Methods (Stooke and Abbeel 2018): what limits large batches, exploration or learning?

`accelerated-secondary-learner` trains a second DQN from the replay of a first one, with the same
initial weights, at the same rate of data, with batches and a batch size of its own. The second
never acts: if it fails where the first succeeds, optimisation is the limit (Figures 5 to 7).
"""

from __future__ import annotations

import math
import statistics
import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from scanline import training
from scanline.parameters import LocalParameters
from scanline.records import Views
from scanline.runs.clock import EVALUATION, TimeSplit
from scanline.runs.leader import LeaderRun
from scanline.runs.limits import Every
from scanline.stores import Replay, ReplaySettings
from scanline.stores.batches import Reader
from scanline.tables import Table

from .claims import Claim, Finding, claim
from .experiment import Cell, Experiment, Result, Results, Scale
from .figures import figure

PAPER = "Stooke and Abbeel 2018, Accelerated Methods for Deep Reinforcement Learning"

RATES = {32: 2.5e-4, 512: 7.5e-4, 1024: 15e-4}
"""Learning rates that the paper gives for batch sizes of DQN."""

SIZES: Mapping[Scale, Mapping[str, Any]] = {
    "smoke": {
        "pairs": [(16, 128), (128, 16), (32, 32)],
        "seeds": 1,
        "agent_steps": 1_280,
        "every": 640,
        "pause": 4_800,
        "recipe": {
            "training_intensity": 1.0,
            "learning_starts_agent_steps": 256,
            "capacity_agent_steps": 5_000,
            "decorrelation_agent_steps": 0,
            "target_agent_steps": 256,
        },
    },
    "desk": {
        "pairs": [(64, 2048), (2048, 64), (256, 256)],
        "seeds": 1,
        "agent_steps": 500_000,
        "every": 100_000,
        "pause": 10_000,
        "recipe": {
            "capacity_agent_steps": 200_000,
            "learning_starts_agent_steps": 20_000,
            "epsilon_agent_steps": 100_000,
        },
    },
    "paper": {
        "pairs": [(64, 2048), (2048, 64), (256, 256)],
        "seeds": 2,
        "agent_steps": 50_000_000,
        "every": 1_000_000,
        "pause": 125_000,
        "recipe": {},
    },
}


def rate_of(batch_size: int) -> float:
    """The paper's learning rate; between its batch sizes on a straight line of logarithms."""
    known = sorted(RATES)
    rates = np.log([RATES[size] for size in known])
    return float(np.exp(np.interp(math.log(batch_size), np.log(known), rates)))


def cells(scale: Scale) -> list[Cell]:
    sizes = SIZES[scale]
    shared = {key: sizes[key] for key in ("agent_steps", "every", "pause", "recipe")}
    return [
        Cell(
            name=f"{first}-teaches-{second}.{seed}",
            settings={"first": first, "second": second, "seed": seed, **shared},
        )
        for seed in range(sizes["seeds"])
        for first, second in sizes["pairs"]
    ]


def plan_of(settings: Mapping[str, Any], batch_size: int) -> training.Plan:
    return training.make_plan(
        "accelerated-dqn",
        "breakout",
        **settings["recipe"],
        batch_size=batch_size,
        learning_rate=rate_of(batch_size),
        agent_steps=settings["agent_steps"],
        seed=settings["seed"],
        live=False,
        tensorboard=False,
        save_at_end=False,
        evaluate_every_agent_steps=0,
    )


class SecondLearner:
    """Learns from another run's replay what that run's learner could have learned."""

    def __init__(self, parts: training.PreparedRun, plan: training.Plan) -> None:
        store = parts.context.store
        assert isinstance(store, Replay)
        self._parts, self._store, self.plan = parts, store, plan
        kind = plan.recipe.store
        assert isinstance(kind, ReplaySettings)
        self._per_step = kind.training_intensity / kind.batch_size
        self._start = kind.learning_starts_agent_steps
        self._target_every = plan.recipe.pace.target_agent_steps
        self.learner: LocalParameters = training.build_learner(
            plan, parts.context.spaces, plan.run.seed
        )
        self._reader: Reader = store.reader(kind.batch_size, "secondary")

    def follow(self, before: int, agent_steps: int) -> None:
        """The updates that the steps so far owe, and the target where its time has come."""
        owed = int(max(0, agent_steps - self._start) * self._per_step)
        algorithm = self._parts.context.algorithm
        while self._store.num_drawable and self._reader.num_draws < owed:
            batch = self._store.sample(self._reader)
            result = algorithm.loss(self.learner.views, batch)
            self.learner.apply(self.learner.read(), result.losses, batch.agent_steps)
        Every(self._target_every, self.learner.sync_target).reached(before, agent_steps)


def measure(cell: Cell, before: Results) -> Result:
    """Both learners' scores and norms at every pause."""
    asked = cell.settings
    time_split = TimeSplit()
    with tempfile.TemporaryDirectory() as folder:
        parts = training.prepared(
            plan_of(asked, asked["first"]), time_split.mark, lambda text: None
        )
        try:
            run = training.open_run(parts, Path(folder) / "run", time_split=time_split)
            second = SecondLearner(parts, plan_of(asked, asked["second"]))
            with run.running(parts.saved(run), resume=False, begin=parts.runtime.begin):
                return {"pauses": _taught(parts, run, second, asked)}
        finally:
            parts.runtime.close()


def _taught(
    parts: training.PreparedRun, run: LeaderRun, second: SecondLearner, asked: Mapping[str, Any]
) -> list[dict[str, Any]]:
    pauses: list[dict[str, Any]] = []

    def pause() -> None:
        with run.time_split.during(EVALUATION):
            pauses.append(_pause(parts, run, second, asked["pause"]))

    parts.runtime.run(TeachingRun(run, second, Every(asked["every"], pause)))
    return pauses


class TeachingRun:
    """A run; a second learner does the same after each of its turns."""

    def __init__(self, run: LeaderRun, second: SecondLearner, pauses: Every) -> None:
        self._run, self._second, self._pauses = run, second, pauses
        self._agent_steps = run.progress.agent_steps

    def __getattr__(self, name: str) -> Any:
        return getattr(self._run, name)

    def goes_on(self) -> bool:
        before, now = self._agent_steps, self._run.progress.agent_steps
        self._agent_steps = now
        self._second.follow(before, now)
        self._pauses.reached(before, now)
        return self._run.goes_on()


def _pause(
    parts: training.PreparedRun, run: LeaderRun, second: SecondLearner, most_agent_steps: int
) -> dict[str, Any]:
    learners = {"first": parts.context.parameters, "second": second.learner}
    found: dict[str, Any] = {"agent_steps": run.progress.agent_steps}
    for name, learner in learners.items():
        policy = training.policy_of(second.plan, partial(_weights, learner), found["agent_steps"])
        scores = training.score(second.plan, policy, games=0, most_agent_steps=most_agent_steps)
        found[f"{name}_score"] = scores.mean if scores.scores else None
        found[f"{name}_norm"] = parameter_norm(learner)
        found[f"{name}_updates"] = learner.version
    return found


def _weights(learner: LocalParameters) -> tuple[Views, int]:
    return learner.views, learner.version


def parameter_norm(learner: LocalParameters) -> float:
    """Length of the vector of all parameters."""
    squares = [float(each.detach().square().sum()) for each in learner.views.live.parameters()]
    return math.sqrt(sum(squares))


def tables(scale: Scale, results: Results) -> list[Table]:
    rows = []
    for name, result in results.items():
        last = result["pauses"][-1]
        rows.append(
            [name, last["agent_steps"]]
            + [last[f"{role}_{what}"] for what in ("score", "norm") for role in ("first", "second")]
        )
    columns = ("batches", "agent steps", "score 1st", "score 2nd", "norm 1st", "norm 2nd")
    return [Table(title="Figures 5 to 7 at the last pause", columns=columns, rows=rows, digits=3)]


def plot(scale: Scale, results: Results, path: Path) -> None:
    """Scores above, parameter norms below; one column per pair of batch sizes."""
    with figure(path, len(results), 2, width=4.0) as axes:
        for place, (name, result) in enumerate(results.items()):
            for row, what in enumerate(("score", "norm")):
                each = axes[place + row * len(results)]
                for role in ("first", "second"):
                    points = [(p["agent_steps"], p[f"{role}_{what}"]) for p in result["pauses"]]
                    found = [point for point in points if point[1] is not None]
                    if found:
                        each.plot(*zip(*found, strict=True), marker=".", label=role)
                each.set(title=name, xlabel="agent steps", ylabel=what)
                each.grid(alpha=0.3)
        axes[-1].legend()


def _final(results: Results, small_first: bool | None) -> tuple[float, float]:
    """Mean scores of both learners over the last third of the pauses, over all seeds."""
    firsts, seconds = [], []
    for name, result in results.items():
        first, second = (int(size) for size in name.split(".")[0].split("-teaches-"))
        wanted = first == second if small_first is None else (first < second) is small_first
        if (first == second and small_first is not None) or not wanted:
            continue
        pauses = result["pauses"][-max(1, len(result["pauses"]) // 3) :]
        firsts += [p["first_score"] or 0.0 for p in pauses]
        seconds += [p["second_score"] or 0.0 for p in pauses]
    return statistics.fmean(firsts), statistics.fmean(seconds)


LEARNED_SCORE = 20.0
"""A first learner below it has not learned Breakout, so nothing can be said of the second."""


def _follows(results: Results, small_first: bool | None, at_least: float, but: float) -> Finding:
    """Whether the second's score over the first's lies in a range."""
    first, second = _final(results, small_first)
    words = f"first {first:.1f}, second {second:.1f}"
    if first < LEARNED_SCORE:
        return Finding(None, f"{words}: the first has not learned")
    return Finding(at_least <= second / first <= but, words)


@claim("The large-batch learner's parameter norm lags behind the small one's.", "Figure 6")
def _norms(results: Results) -> Finding:
    wrong, seen = [], 0
    for name, result in results.items():
        first, second = (int(size) for size in name.split(".")[0].split("-teaches-"))
        if first == second:
            continue
        last, seen = result["pauses"][-1], seen + 1
        large, small = ("first", "second") if first > second else ("second", "first")
        if last[f"{large}_norm"] >= last[f"{small}_norm"]:
            wrong.append(name)
    return Finding(not wrong, f"not so: {', '.join(wrong)}" if wrong else f"in all {seen} pairs")


EXPERIMENTS = (
    Experiment(
        name="accelerated-secondary-learner",
        summary="A second DQN learns from the first one's replay: batch sizes in both roles.",
        paper=f"{PAPER}, section 5.5 and Figures 5 to 7",
        cells=cells,
        measure=measure,
        tables=tables,
        claims=(
            Claim(
                "A small-batch second learner keeps pace with its large-batch first.",
                "Figure 5a",
                lambda results: _follows(results, False, 0.8, math.inf),
            ),
            Claim(
                "A large-batch second learner fails to track its small-batch first.",
                "Figure 5b",
                lambda results: _follows(results, True, -math.inf, 0.5),
            ),
            Claim(
                "With equal batches the second learner tracks the first.",
                "Figure 7",
                lambda results: _follows(results, None, 0.7, 1.4),
            ),
            _norms,
        ),
        plot=plot,
        notes=("Both learners draw the same number of steps; only the first one acts.",),
        line=lambda result: (
            f"scores {result['pauses'][-1]['first_score']} and "
            f"{result['pauses'][-1]['second_score']}"
        ),
    ),
)
