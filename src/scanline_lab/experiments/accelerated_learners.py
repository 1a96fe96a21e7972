"""Accelerated Methods (Stooke and Abbeel 2018): hours for 50 million steps by number of learners.

`accelerated-learners` fills Table 2: real runs of A2C, PPO and the DQNs, whose learners average
their gradients at every update, and of A3C and APPO, whose learners share a central store. Takes
the recipes; gives rates after a warm-up, and the hours that follow from them.
Knows nothing of how learners meet.

As in the paper, learners of A2C, A3C and APPO bring environments and a batch of their own: the
batch of an update grows with their number, and A2C's learning rate with its root. PPO brings
environments but divides its 2,048 samples, the DQNs divide both: their batch stays what it is.
N learners have N times the cores of one, as the paper's have N times its GPUs and cores.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scanline import training
from scanline.processes import bind, granted_core_ids
from scanline.tables import Table
from scanline.timing import Stretch, timed

from .accelerated_secondary import PAPER
from .claims import Claim, Finding, claim
from .experiment import Cell, Experiment, Result, Results, Scale
from .figures import figure

PAPER_AGENT_STEPS = 50_000_000
PAPER_LEARNERS = (1, 2, 4, 8)
PAPER_GAIN = 6 / 8
"""What the paper calls scaling: more than 6 times the speed with 8 times the machine."""


@dataclass(frozen=True, kw_only=True)
class AlgorithmRow:
    """One algorithm of the table."""

    recipe: str
    family: str
    """Whose sizes it has, in `SIZES`."""
    central: bool = False
    """Whether learners share a central store instead of averaging gradients."""
    own_envs: bool = True
    """Whether every learner brings environments, or a fixed number is divided."""
    paper_hours: tuple[float | None, ...]
    """For 50 million steps with 1, 2, 4 and 8 GPUs of 5 cores each."""


ROWS: Mapping[str, AlgorithmRow] = {
    "A2C": AlgorithmRow(recipe="accelerated-a2c", family="a2c", paper_hours=(3.8, 2.2, 1.2, 0.59)),
    "A3C": AlgorithmRow(
        recipe="accelerated-a3c", family="a2c", central=True, paper_hours=(None, 2.4, 1.3, 0.65)
    ),
    "PPO": AlgorithmRow(recipe="accelerated-ppo", family="ppo", paper_hours=(4.4, 2.6, 1.5, 1.1)),
    "APPO": AlgorithmRow(
        recipe="accelerated-appo", family="ppo", central=True, paper_hours=(None, 2.8, 1.5, 0.71)
    ),
    "DQN": AlgorithmRow(
        recipe="accelerated-dqn", family="dqn", own_envs=False, paper_hours=(8.3, 4.8, 3.1, 2.6)
    ),
    "Rainbow": AlgorithmRow(
        recipe="accelerated-rainbow",
        family="dqn",
        own_envs=False,
        paper_hours=(14.1, 8.6, 6.6, 6.4),
    ),
    "CatDQN": AlgorithmRow(
        recipe="accelerated-categorical-dqn",
        family="categorical",
        own_envs=False,
        paper_hours=(10.7, 6.0, 2.8, 1.8),
    ),
}

_AT_ONCE = {"decorrelation_agent_steps": 0}
"""Random steps before training take minutes and are not timed."""
_DESK_REPLAY = {**_AT_ONCE, "learning_starts_agent_steps": 4_096, "capacity_agent_steps": 65_536}
_SMOKE_REPLAY = {**_AT_ONCE, "learning_starts_agent_steps": 256, "capacity_agent_steps": 8_192}
SIZES: Mapping[Scale, Mapping[str, Any]] = {
    "smoke": {
        "learners": (1, 2),
        "seconds": 6.0,
        "warm_up": 2.0,
        "a2c": {**_AT_ONCE, "num_envs": 16},
        "ppo": {**_AT_ONCE, "num_envs": 8, "rollout_samples": 512},
        "dqn": {**_SMOKE_REPLAY, "num_envs": 8, "batch_size": 64},
        "categorical": {**_SMOKE_REPLAY, "num_envs": 16, "batch_size": 128},
    },
    "desk": {
        "learners": (1, 2, 4),
        "seconds": 120.0,
        "warm_up": 20.0,
        "a2c": {**_AT_ONCE, "num_envs": 16},
        "ppo": {**_AT_ONCE, "num_envs": 8},
        "dqn": {**_DESK_REPLAY, "num_envs": 32, "batch_size": 512},
        "categorical": {**_DESK_REPLAY, "num_envs": 64, "batch_size": 2_048},
    },
    "paper": {
        "learners": PAPER_LEARNERS,
        "seconds": 1_800.0,
        "warm_up": 120.0,
        "a2c": {"num_envs": 16},
        "ppo": {"num_envs": 8},
        "dqn": {"num_envs": 32, "batch_size": 512},
        "categorical": {"num_envs": 64, "batch_size": 2_048},
    },
}


def cells(scale: Scale) -> list[Cell]:
    sizes = SIZES[scale]
    return [
        Cell(
            name=f"{name}-{learners}",
            settings={
                "recipe": ROWS[name].recipe,
                "learners": learners,
                "most_learners": sizes["learners"][-1],
                "seconds": sizes["seconds"],
                "warm_up": sizes["warm_up"],
                "settings": settings_of(ROWS[name], learners, sizes),
            },
        )
        for name, learners in itertools.product(ROWS, sizes["learners"])
        if learners > 1 or not ROWS[name].central
    ]


def settings_of(row: AlgorithmRow, learners: int, sizes: Mapping[str, Any]) -> dict[str, Any]:
    """What differs from the recipe; a central store's recipe counts the environments of one."""
    changes = dict(sizes[row.family])
    if row.own_envs and not row.central:
        changes["num_envs"] *= learners
    return changes


def measure(cell: Cell, before: Results) -> Result:
    """Rates of a real run on the cores of so many learners."""
    asked = cell.settings
    learners, granted = asked["learners"], len(granted_core_ids())
    share = max(1, granted // asked["most_learners"])
    plan = training.make_plan(
        asked["recipe"],
        "pong",
        learners=learners,
        num_threads=share,
        torch_threads=share,
        tensorboard=False,
        **asked["settings"],
    )
    random = asked["settings"].get("learning_starts_agent_steps", 0)
    with only_cores(share * learners):
        timing = timed(
            plan,
            warm_up=Stretch(agent_steps=random, seconds=asked["warm_up"]),
            measured=Stretch(seconds=asked["seconds"]),
        )
    return {
        "agent_sps": timing.agent_steps_per_second,
        "ups": timing.updates_per_second,
        "score": timing.score,
        "cores": min(share * learners, granted),
        "own_cores": share * learners <= granted,
    }


@contextmanager
def only_cores(num: int) -> Iterator[None]:
    """This thread, and whatever it starts inside, on the first of the granted cores.

    Where the system does not let a program choose, threads alone keep a learner to its share.
    """
    granted = granted_core_ids()
    chosen = num < len(granted) and sys.platform == "linux"
    if chosen:
        bind(0, granted[:num])
    try:
        yield
    finally:
        if chosen:
            bind(0, granted)


def hours(result: Result) -> float:
    """For the paper's number of steps, at this rate."""
    return float(PAPER_AGENT_STEPS / result["agent_sps"] / 3_600)


def tables(scale: Scale, results: Results) -> list[Table]:
    numbers = SIZES[scale]["learners"]
    paper = [f"{num}*" for num in PAPER_LEARNERS]
    rows = []
    for name, row in ROWS.items():
        found = [results.get(f"{name}-{num}") for num in numbers]
        rows.append([name, *(r and hours(r) for r in found), *row.paper_hours])
    notes = (
        "Columns: numbers of learners. Hours follow from the rate of a stretch.",
        "*: the paper, a P100 and 5 cores per learner; for DQN on 4 it also gives 3.9, and one "
        "of the two is asynchronous.",
    )
    title = "Table 2: hours for 50 million agent steps"
    columns = ("algorithm", *map(str, numbers), *paper)
    return [
        Table(title=title, columns=columns, rows=rows, digits=2, notes=notes),
        _rates(results),
    ]


def _rates(results: Results) -> Table:
    rows = [
        [name, r["cores"], round(r["agent_sps"]), r["ups"], r["score"]]
        for name, r in results.items()
    ]
    columns = ("algorithm-learners", "cores", "steps/s", "updates/s", "score")
    return Table(title="Rates", columns=columns, rows=rows, digits=1)


def plot(scale: Scale, results: Results, path: Path) -> None:
    """Speed-ups over one learner, ours and the paper's."""
    with figure(path, 2) as axes:
        for each, mine in zip(axes, (True, False), strict=True):
            for name, row in ROWS.items():
                if row.central:
                    continue
                found = _hours_by_number(results, name) if mine else _paper_hours(row)
                if found:
                    gains = [found[min(found)] / value for value in found.values()]
                    each.plot(list(found), gains, marker="o", label=name)
            most = PAPER_LEARNERS if not mine else SIZES[scale]["learners"]
            each.plot(most, most, color="grey", linestyle=":", label="as many times")
            each.set(xlabel="learners", ylabel="times the speed of one", xticks=most)
            each.set_title("here" if mine else "the paper")
            each.grid(alpha=0.3)
        axes[0].legend(fontsize=7)


def _paper_hours(row: AlgorithmRow) -> dict[int, float]:
    pairs = zip(PAPER_LEARNERS, row.paper_hours, strict=True)
    return {num: value for num, value in pairs if value is not None}


def _hours_by_number(results: Results, name: str) -> dict[int, float]:
    """Hours by learners, where each had cores of its own."""
    found = {num: results.get(f"{name}-{num}") for num in PAPER_LEARNERS}
    return {num: hours(r) for num, r in found.items() if r is not None and r["own_cores"]}


def _gain(results: Results, name: str) -> tuple[int, float] | None:
    """The largest number of learners, and how many times as fast they are as one."""
    found = _hours_by_number(results, name)
    most = max(found, default=1)
    return (most, found[1] / found[most]) if most > 1 and 1 in found else None


TOO_FEW = Finding(None, "fewer than two learners had cores of their own")


@claim("Every further learner shortens training, for all synchronous algorithms.", "Table 2")
def _more_is_faster(results: Results) -> Finding:
    """Whether every further learner saves time, for algorithms that average gradients."""
    signs: list[bool] = []
    words = []
    for name, row in ROWS.items():
        found = list(_hours_by_number(results, name).values())
        if row.central or len(found) < 2:
            continue
        signs.extend(later < sooner for sooner, later in itertools.pairwise(found))
        words.append(f"{name} {found[0] / found[-1]:.2f} times")
    return Finding(all(signs), ", ".join(words)) if signs else TOO_FEW


@claim(
    "Eight learners are more than 6 times as fast as one, so N are at least 6/8 of N times.",
    "section 5.4, A2C",
)
def _six_of_eight(results: Results) -> Finding:
    gain = _gain(results, "A2C")
    if gain is None:
        return TOO_FEW
    most, times = gain
    return Finding(times / most >= PAPER_GAIN, f"{times:.2f} times with {most} learners of A2C")


def _order(results: Results, first: str, second: str, numbers: tuple[int, ...]) -> Finding:
    """Whether the first algorithm needs no more hours than the second with as many learners."""
    one, two = _hours_by_number(results, first), _hours_by_number(results, second)
    both = [num for num in numbers if num in one and num in two]
    words = ", ".join(f"{num} learners {one[num]:.2f} h and {two[num]:.2f} h" for num in both)
    return Finding(all(one[num] <= two[num] for num in both), words) if both else TOO_FEW


@claim(
    "Of the DQNs, categorical DQN gains most from more learners, by its larger batch.",
    "section 5.4",
)
def _large_batches_gain_most(results: Results) -> Finding:
    gains = {name: _gain(results, name) for name in ("DQN", "Rainbow", "CatDQN")}
    times = {name: gain[1] for name, gain in gains.items() if gain is not None}
    if len(times) < len(gains):
        return TOO_FEW
    words = ", ".join(f"{name} {value:.2f} times" for name, value in times.items())
    return Finding(times["CatDQN"] == max(times.values()), words)


@claim("DQN and Rainbow gain little from more than two learners.", "section 5.4", scales=("paper",))
def _small_batches_stop(results: Results) -> Finding:
    """Whether eight learners of DQN and Rainbow gain less than half of what four times two says."""
    gains = {}
    for name in ("DQN", "Rainbow"):
        found = _hours_by_number(results, name)
        if 2 not in found or 8 not in found:
            return Finding(None, "no eight learners had cores of their own")
        gains[name] = found[2] / found[8]
    words = ", ".join(f"{name} {value:.2f} times from 2 to 8" for name, value in gains.items())
    return Finding(all(value < 4 / 2 for value in gains.values()), words)


EXPERIMENTS = (
    Experiment(
        name="accelerated-learners",
        summary="Hours for 50 million steps by number of learners: A2C, A3C, PPO, APPO, DQNs.",
        paper=f"{PAPER}, Table 2",
        cells=cells,
        measure=measure,
        tables=tables,
        claims=(
            _more_is_faster,
            _six_of_eight,
            Claim(
                "A2C needs no more hours than A3C with as many learners.",
                "Table 2",
                lambda results: _order(results, "A2C", "A3C", PAPER_LEARNERS),
            ),
            Claim(
                "With eight learners APPO needs fewer hours than PPO.",
                "Table 2",
                lambda results: _order(results, "APPO", "PPO", (8,)),
                scales=("paper",),
            ),
            _large_batches_gain_most,
            _small_batches_stop,
        ),
        plot=plot,
        notes=(
            "Batches: A2C, A3C and APPO add one per learner; PPO and the DQNs divide one among "
            "them.",
        ),
        line=lambda result: f"{result['agent_sps']:,.0f} steps/s on {result['cores']} cores",
    ),
)
