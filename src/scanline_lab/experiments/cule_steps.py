"""CuLE (Dalton 2020): frames per second over the steps of environments that start alike.

Figures 3 and 6, a part of `cule-load`: all environments begin in one state and play random actions,
so that they drift apart; a game that ends starts anew. Takes an engine and a game; gives frames/s
and the number of environments that were reset, by step.
Knows no network and no learner.

On a GPU, threads that execute the same instruction are fast together, and lose that when they part;
on a CPU nothing of the kind should be seen. Rates are those of whole windows of steps.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping, Sequence
from typing import Any

from scanline import engines, protocols
from scanline.acting import RandomPolicy
from scanline.engines import EngineSettings
from scanline.records import Slot
from scanline.samplers import LockstepSampler
from scanline.tables import Table

from .claims import Finding, claim
from .experiment import Cell, Result, Results, Scale, grid

GAMES = ("asterix", "pong", "ms_pacman", "assault")
"""In the order of the paper's panels."""
STEPS = "steps"
PROTOCOL = protocols.get("ale-vector").replace(noop_max=0)
"""Which both engines honour; without no-ops every game has one start."""
PEAK = 1.1
"""A rate that much above the later ones is a peak."""
PAPER_LOSS = 0.3
"""Of the frames/s on a GPU, at most, when environments have parted."""

SIZES: Mapping[Scale, Mapping[str, Any]] = {
    "smoke": {"num_envs": 32, "num_steps": 600, "games": GAMES[:2]},
    "desk": {"num_envs": 512, "num_steps": 3_000, "games": GAMES},
    "paper": {"num_envs": 512, "num_steps": 5_000, "games": GAMES},
}
NUM_WINDOWS = 60


def cells(scale: Scale, names: Sequence[str]) -> list[Cell]:
    """Every game on every engine."""
    sizes = dict(SIZES[scale])
    axes = {"game": sizes.pop("games"), "engine": names}
    return grid("{game}-{load}-{engine}-{num_envs}", axes, load=STEPS, **sizes)


def measure(cell: Cell) -> Result:
    """Per window: agent steps of every environment so far, raw frames/s, games that have ended."""
    asked = cell.settings
    num_envs, num_steps = asked["num_envs"], asked["num_steps"]
    wanted = EngineSettings(game=asked["game"], num_envs=num_envs, protocol=PROTOCOL)
    engine = engines.build(asked["engine"], wanted)
    try:
        sampler, random = LockstepSampler(engine, 0), RandomPolicy(engine.spaces.num_actions)
        slot = Slot.allocate(engine.spaces, max(num_steps // NUM_WINDOWS, 1), num_envs, {})
        sampler.reset()
        sampler.collect(random, into=slot)  # warms up
        sampler.abandon()
        sampler.drain_episodes()
        windows: list[list[float]] = []
        for done in range(slot.num_steps, num_steps + 1, slot.num_steps):
            begun = time.perf_counter()
            sampler.collect(random, into=slot)
            frames = slot.actions.numel() * PROTOCOL.frame_skip
            rate = frames / (time.perf_counter() - begun)
            windows.append([done, rate, len(sampler.drain_episodes())])
        return {"windows": windows, "raw_fps": statistics.median(rate for _, rate, _ in windows)}
    finally:
        engine.close()


def own(results: Results) -> dict[str, Result]:
    """The results that are of this file, by game and engine."""
    return {
        name.replace(f"-{STEPS}-", ", ").rpartition("-")[0]: result
        for name, result in results.items()
        if f"-{STEPS}-" in name
    }


def _first_and_later(result: Result) -> tuple[float, float]:
    """Frames/s of the first window, and the median of those after it."""
    first, *later = (rate for _, rate, _ in result["windows"])
    return first, statistics.median(later)


def tables(results: Results) -> list[Table]:
    rows = []
    for name, result in own(results).items():
        first, later = _first_and_later(result)
        resets = [num for _, _, num in result["windows"]]
        rows.append([name, round(first), round(later), first / later, sum(resets), max(resets)])
    columns = ("game, engine", "first steps", "later", "x", "resets", "most at once")
    title = "Figures 3 and 6: raw frames/s of environments that start alike"
    note = "At once: within one window of steps, a sixtieth of all."
    return [Table(title=title, columns=columns, rows=rows, notes=(note,))] if rows else []


def plot(axes: Any, name: str, result: Result) -> None:
    """Rates over steps, and below them the resets."""
    steps, rates, resets = zip(*result["windows"], strict=True)
    axes.plot(steps, rates)
    axes.set(title=name, xlabel="agent steps of each environment", ylabel="raw frames/s")
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    below = axes.twinx()
    below.bar(steps, resets, width=steps[0], color="tab:red", alpha=0.4)
    below.set(ylabel="resets", ylim=(0, 4 * max(*resets, 1)))


@claim(
    "On a CPU, environments that start alike are not faster at the beginning.",
    "section 7.2, Figure 6",
)
def _no_peak(results: Results) -> Finding:
    """Whether no game starts faster than it goes on, on our engine."""
    gains = {}
    for name, result in own(results).items():
        if name.endswith("native"):
            first, later = _first_and_later(result)
            gains[name.partition(",")[0]] = first / later
    words = ", ".join(f"{game} {gain:.2f}" for game, gain in gains.items())
    holds = all(gain <= PEAK for gain in gains.values()) if gains else None
    return Finding(holds, f"frames/s of the first steps over later ones: {words}")


@claim("On a GPU, frames/s fall by up to 30 % when environments part.", "Figure 3")
def _loses_on_a_gpu(results: Results) -> Finding:
    losses = {
        name: 1 - min(rate for _, rate, _ in r["windows"]) / r["windows"][0][1]
        for name, r in own(results).items()
        if name.endswith("cuda")
    }
    if not losses:
        return Finding(None, "no engine on a GPU was measured")
    most = max(losses.values())
    return Finding(0 < most <= PAPER_LOSS, f"at most {most:.0%}")


CLAIMS = (_no_peak, _loses_on_a_gpu)
