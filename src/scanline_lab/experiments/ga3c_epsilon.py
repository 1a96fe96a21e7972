"""GA3C (Babaeizadeh 2017): what the epsilon in the logarithm saves a lagging policy gradient from.

`ga3c-epsilon` examines section 4.4: an action that was likely when it was chosen may have become so
unlikely, by updates in between, that the logarithm of its probability is minus infinity. GA3C is
trained without the epsilon, with it, and with the logarithm computed from the network's outputs, in
the last form also without lag; each at the paper's learning rate and at higher ones that bring the
trouble sooner. Shown: whether the run went on, how small the probabilities became of actions that
were learned from, and the lag.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from scanline import training
from scanline.parameters import NotFiniteGradientError
from scanline.records import Batch, LossResult, Views
from scanline.runners.synchronous import Alternate
from scanline.runs.leader import NotFiniteError
from scanline.samplers import SamplingSettings
from scanline.stores import RolloutSettings
from scanline.tables import Table
from scanline.timing import Stretch, timed

from .claims import Finding, claim
from .coprocessor import AlgorithmWrapper
from .experiment import Cell, Experiment, Result, Results, Scale, grid
from .figures import figure
from .ga3c import PAPER
from .measuring import histogram_mean

FORMS: Mapping[str, Mapping[str, Any]] = {
    "none": {"log_form": "plain", "log_epsilon": 0.0},
    "added": {"log_form": "added", "log_epsilon": 1e-6},
    "floor": {"log_form": "floor", "log_epsilon": 1e-6},
    "exact": {"log_form": "exact", "log_epsilon": 0.0},
    "lockstep": {"log_form": "exact", "log_epsilon": 0.0},
}
"""Equation 4; equation 5; the released code; a logarithm of the softmax that no rounding makes
infinite, which the paper does not have; the same where acting waits for learning: nothing lags."""
UNLIKELY = 1e-6
"""The epsilon: below it, it is more than the probability itself."""

SIZES: Mapping[Scale, Mapping[str, Any]] = {
    "smoke": {"rates": [3e-4, 0.3], "seeds": [0], "seconds": 10.0, "num_envs": 32},
    "desk": {"rates": [3e-4, 0.03, 0.3], "seeds": [0, 1, 2], "seconds": 300.0, "num_envs": 32},
    "paper": {"rates": [3e-4, 3e-3], "seeds": [0, 1, 2], "seconds": 10_800.0, "num_envs": 128},
}


def cells(scale: Scale) -> list[Cell]:
    """Seeds are the outer loop, so that a repetition is complete before the next one begins."""
    sizes = dict(SIZES[scale])
    axes = {"seed": sizes.pop("seeds"), "rate": sizes.pop("rates"), "form": tuple(FORMS)}
    return grid("{form}-{rate:g}.{seed}", axes, **sizes)


def synchronous(plan: training.Plan) -> training.Plan:
    """The same work by one learner that takes turns: network, batch and algorithm stay."""
    sampling: Any = plan.recipe.sampling
    store: Any = plan.recipe.store
    steps = sampling.rollout_agent_steps
    num_envs = store.updates(sampling.num_envs, steps).batch_agent_steps // steps
    recipe = replace(
        plan.recipe,
        sampling=SamplingSettings(num_envs=num_envs, rollout_agent_steps=steps),
        store=RolloutSettings(),
        pace=Alternate(),
    )
    return replace(plan, recipe=recipe)


@dataclass
class ProbabilityCounts:
    """How likely the learned actions were so far, counted by any number of trainers."""

    updates: int = 0
    steps: int = 0
    unlikely_steps: int = 0
    least: float = 1.0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, probabilities: torch.Tensor) -> None:
        with self.lock:
            self.updates += 1
            self.steps += probabilities.numel()
            self.unlikely_steps += int((probabilities < UNLIKELY).sum())
            self.least = min(self.least, float(probabilities.min()))


@dataclass(frozen=True)
class CountedAlgorithm(AlgorithmWrapper):
    """An algorithm that also notes how likely, by now, the actions are that it learns from."""

    counts: ProbabilityCounts

    def loss(self, views: Views, batch: Batch) -> LossResult:
        with torch.no_grad():
            logits = views.live(self.inner.inputs(views, batch.observations)).logits
            taken = torch.softmax(logits, -1).gather(-1, batch.actions[:, None])
        self.counts.note(taken)
        return self.inner.loss(views, batch)


def measure(cell: Cell, before: Results) -> Result:
    """A run of one segment per update, as far as it comes."""
    asked, counts = cell.settings, ProbabilityCounts()
    lockstep = asked["form"] == "lockstep"
    plan = training.make_plan(
        "ga3c",
        asked.get("game", "pong"),
        tensorboard=False,
        torch_threads=1,
        seed=asked["seed"],
        num_envs=asked["num_envs"],
        learning_rate=asked["rate"],
        min_batch_agent_steps=0,
        **FORMS[asked["form"]],
        **asked.get("recipe", {}),
    )
    lag: float | None = None
    try:
        timing = timed(
            synchronous(plan) if lockstep else plan,
            warm_up=Stretch(),
            measured=Stretch(seconds=asked["seconds"]),
            attachments=training.Attachments(around=lambda inner: CountedAlgorithm(inner, counts)),
        )
        failed, lag = False, 0.0 if lockstep else histogram_mean(timing.note, "policy_lag")
    except (NotFiniteGradientError, NotFiniteError):
        failed = True
    return {
        "failed": failed,
        "updates": counts.updates,
        "least_probability": counts.least,
        "unlikely_share": counts.unlikely_steps / max(counts.steps, 1),
        "lag": lag,
    }


def _of(results: Results, form: str) -> dict[str, Result]:
    """The runs of a form, by rate and seed."""
    found = {
        name.partition("-")[2]: result
        for name, result in results.items()
        if name.startswith(f"{form}-")
    }
    if not found:
        raise KeyError(form)
    return found


def _rate_of(place: str) -> str:
    return place.rpartition(".")[0]


def tables(scale: Scale, results: Results) -> list[Table]:
    rows = []
    there = [form for form in FORMS if any(name.startswith(f"{form}-") for name in results)]
    for form in there:
        own = _of(results, form)
        for rate in dict.fromkeys(map(_rate_of, own)):
            runs = [result for place, result in own.items() if _rate_of(place) == rate]
            lags = [run["lag"] for run in runs if run["lag"] is not None]
            rows.append(
                [
                    f"{form} {rate}",
                    f"{sum(run['failed'] for run in runs)} of {len(runs)}",
                    min(run["updates"] for run in runs),
                    f"{min(run['least_probability'] for run in runs):.1e}",
                    f"{max(run['unlikely_share'] for run in runs):.2%}",
                    sum(lags) / len(lags) if lags else None,
                ]
            )
    columns = ("logarithm, rate", "failed", "fewest updates", "least p", f"p < {UNLIKELY:g}", "lag")
    notes = (
        "none: log p; added: log(p + 1e-6), the paper; floor: log max(p, 1e-6), its code; exact: "
        "from the network's outputs, never of 0; lockstep: the same without lag.",
        "p: probability, when it is learned from, of an action that was taken before. failed: the "
        "loss was no finite number.",
    )
    title = "Section 4.4: lag and the logarithm"
    return [Table(title=title, columns=columns, rows=rows, digits=2, notes=notes)]


def plot(scale: Scale, results: Results, path: Path) -> None:
    """Smallest probabilities; a failed run has a cross."""
    with figure(path) as (axes,):
        for number, result in enumerate(results.values()):
            least = max(result["least_probability"], 1e-45)
            axes.plot(number, least, "x" if result["failed"] else "o", color="C0")
        axes.axhline(UNLIKELY, color="grey", linewidth=0.8)
        axes.set(yscale="log", ylabel="least probability of a learned action (x: failed)")
        axes.set_xticks(range(len(results)), list(results), rotation=80, fontsize=6)


def _shown(own: Mapping[str, Result]) -> str:
    failed = [place for place, result in own.items() if result["failed"]]
    return f"{len(failed)} of {len(own)} failed" + (f" ({', '.join(failed)})" if failed else "")


@claim("Without epsilon the logarithm becomes infinite and optimisation fails.", "section 4.4")
def _fails_without(results: Results) -> Finding:
    """None where no run came to such probabilities: then the epsilon had nothing to do."""
    own = _of(results, "none")
    failed = any(result["failed"] for result in own.values())
    rare = max(result["unlikely_share"] for result in own.values()) > 0
    return Finding(failed if failed or rare else None, _shown(own))


@claim("A small epsilon avoids this, without gradient clipping.", "section 4.4")
def _goes_on_with(results: Results) -> Finding:
    """Whether the epsilon saved every run that failed without it."""
    without, added = _of(results, "none"), _of(results, "added")
    both = [place for place, r in without.items() if r["failed"] and added[place]["failed"]]
    any_failed = any(result["failed"] for result in without.values())
    return Finding(not both if any_failed else None, _shown(added))


@claim("New parameters can make the probability of an old action very small.", "section 4.4")
def _becomes_small(results: Results) -> Finding:
    """Whether actions become as unlikely as the epsilon more often with lag than without."""
    shares = {
        form: max(result["unlikely_share"] for result in _of(results, form).values())
        for form in ("exact", "lockstep")
    }
    words = f"{shares['exact']:.2%} of the steps with lag, {shares['lockstep']:.2%} without"
    return Finding(shares["exact"] > shares["lockstep"] if any(shares.values()) else None, words)


EXPERIMENTS = (
    Experiment(
        name="ga3c-epsilon",
        summary="GA3C with and without the epsilon that keeps a lagging logarithm finite.",
        paper=f"{PAPER}, section 4.4",
        cells=cells,
        measure=measure,
        tables=tables,
        claims=(_becomes_small, _fails_without, _goes_on_with),
        plot=plot,
        notes=(
            "No gradient is clipped. Rates above the paper's 0.0003 bring the trouble sooner.",
            "The entropy has the same epsilon as the policy's logarithm.",
        ),
        line=lambda result: (
            f"{'failed' if result['failed'] else 'went on'}, {result['updates']:,} updates, "
            f"least p {result['least_probability']:.1e}"
        ),
    ),
)
