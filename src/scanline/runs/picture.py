"""What a run looks like: a picture for a terminal, a line for a file, advice and a last word.

Takes a `View`; gives rich renderables. Knows no clock, no run and no console, so that every
picture can be drawn from made-up numbers.

Shares of the time alone do not help a newcomer: the advice names what limits the run and the
option to change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.text import Text

from .clock import ACTING, ENVIRONMENT, LEARNING, OTHER, TRAINING_PARTS
from .limits import Stop

_STYLES = {ENVIRONMENT: "green", ACTING: "cyan", LEARNING: "magenta", OTHER: "yellow"}
_BAR_WIDTH = 50
_DOMINANT = 0.5
_NEARLY_FULL = 0.9
_IDLE_CORES = 0.75
_LIMITS = {
    ENVIRONMENT: "The environments limit",
    ACTING: "Acting limits",
    LEARNING: "Learning limits",
    OTHER: "Bookkeeping limits",
}


@dataclass(frozen=True, kw_only=True)
class Load:
    """What a run asks of its machine, over the last seconds."""

    split_seconds: Mapping[str, float]
    num_cores: int
    busy_cores: float | None = None
    """Cores that this process kept busy; None where workers do the work."""
    memory_bytes: int = 0
    total_memory_bytes: int = 1


@dataclass(frozen=True)
class View:
    """Everything one picture shows."""

    title: str
    agent_steps: int
    raw_frames: int
    updates: int
    episodes: int
    steps_per_second: float
    frames_per_second: float
    updates_per_second: float
    score: float | None
    best: float | None
    window: int
    training_seconds: float
    remaining_seconds: float | None
    done: float | None
    """Share of the agent steps or seconds that is done; None without such a limit."""
    load: Load
    further: Mapping[str, float] = field(default_factory=dict)
    """Means of this run's own figures since the last row, by the name of the log."""


def picture(view: View) -> RenderableType:
    """The picture of a terminal, as lines of fixed width: tables take five times as long."""
    lines = Text(no_wrap=True, overflow="ellipsis")
    for left, count, right, rate in _number_rows(view):
        lines.append(f"{left:<13}", "dim").append(f" {count:>15}    ")
        lines.append(f"{right:<22}", "dim").append(f" {rate:>10}\n")
    pairs = [*_further(view.further), ("", "")]
    for first, second in zip(pairs[0:-1:2], pairs[1::2], strict=False):
        lines.append(f"{first[0]:<22}", "dim").append(f" {first[1]:>6}    ")
        lines.append(f"{second[0]:<25}", "dim").append(f" {second[1]:>7}\n")
    lines.append("\n")
    bars = [(part, share, _STYLES[part]) for part, share in shares(view.load.split_seconds).items()]
    if view.done is not None:
        bars.append(("done", view.done, "blue"))
    for name, share, style in bars:
        full = round(share * _BAR_WIDTH)
        lines.append(f"{name:<13} ", "dim").append("━" * full, style)
        lines.append(" " * (_BAR_WIDTH - full)).append(f" {share:4.0%}\n")
    words = Text(advice(view.load), style="bold")
    return Panel(Group(lines, words), title=Text(view.title), title_align="left", width=78)


def line(view: View) -> Text:
    """The same in one line."""
    left = view.remaining_seconds
    parts = (
        f"{view.agent_steps:,} agent steps ({view.raw_frames:,} frames)",
        f"{view.steps_per_second:,.0f} steps/s",
        f"{view.frames_per_second:,.0f} frames/s",
        f"{view.updates_per_second:,.1f} updates/s",
        f"score {_score(view)}",
        f"training {_duration(view.training_seconds)}"
        + ("" if left is None else f", left {_duration(left)}"),
        ", ".join(f"{part} {s:.0%}" for part, s in shares(view.load.split_seconds).items()),
        ", ".join(f"{name} {number}" for name, number in _further(view.further)),
        advice(view.load),
    )
    return Text(" | ".join(filter(None, parts)))


def last_word(stop: Stop, folder: Path) -> Text:
    """Where a run is and what to do with it."""
    return Text(
        f"{stop.sentence} The run is in {folder}\n"
        f"  go on      the same command with --out {folder} --resume\n"
        f"  evaluate   scanline evaluate {folder}\n"
        f"  watch      scanline play {folder}\n"
        f"  report     {folder}/report.html\n"
        f"  curves     tensorboard --logdir {folder}   (or {folder}/progress.csv)"
    )


def _number_rows(view: View) -> list[tuple[str, str, str, str]]:
    left = "" if view.remaining_seconds is None else _duration(view.remaining_seconds)
    score, best = ("" if s is None else f"{s:,.1f}" for s in (view.score, view.best))
    time = _duration(view.training_seconds)
    return [
        ("agent steps", f"{view.agent_steps:,}", "agent steps/s", f"{view.steps_per_second:,.0f}"),
        ("raw frames", f"{view.raw_frames:,}", "raw frames/s", f"{view.frames_per_second:,.0f}"),
        ("updates", f"{view.updates:,}", "updates/s", f"{view.updates_per_second:,.1f}"),
        ("games", f"{view.episodes:,}", f"score, last {view.window} games", score),
        ("memory", _memory(view.load), "best score", best),
        ("training time", time, "time left, about", left),
    ]


def _further(figures: Mapping[str, float]) -> list[tuple[str, str]]:
    """Names and numbers, in the order of the log."""
    return [(name.partition("/")[2].replace("_", " "), f"{n:,.3g}") for name, n in figures.items()]


def _score(view: View) -> str:
    if view.score is None:
        return "no game finished"
    best = "" if view.best is None else f", best {view.best:,.1f}"
    return f"{view.score:,.1f} (last {view.window} games{best})"


def _memory(load: Load) -> str:
    return f"{load.memory_bytes / 2**30:.1f} of {load.total_memory_bytes / 2**30:.0f} GiB"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"


def shares(split_seconds: Mapping[str, float]) -> dict[str, float]:
    """Each part's share of the training time."""
    total = sum(split_seconds.get(part, 0.0) for part in TRAINING_PARTS)
    return {part: split_seconds.get(part, 0.0) / total if total else 0.0 for part in TRAINING_PARTS}


def advice(load: Load) -> str:
    """What limits the run and what to try."""
    used = load.memory_bytes / load.total_memory_bytes
    if used > _NEARLY_FULL:
        return f"Memory limits: {used:.0%} is in use; try fewer --num-envs or a smaller store."
    share = shares(load.split_seconds)
    part = max(TRAINING_PARTS, key=lambda p: share[p])
    if not share[part]:
        return "Nothing measured yet."
    if share[part] < _DOMINANT:
        first, second = sorted(share, key=lambda p: -share[p])[:2]
        return (
            f"Balanced: {first} {share[first]:.0%} and {second} {share[second]:.0%} of the time; "
            "a faster machine helps most."
        )
    return f"{_LIMITS[part]} ({share[part]:.0%} of the time); {_remedy(part, load)}."


def _remedy(part: str, load: Load) -> str:
    idle = load.busy_cores is not None and load.busy_cores < _IDLE_CORES * load.num_cores
    if part == ENVIRONMENT and idle:
        return (
            f"{load.busy_cores:.1f} of {load.num_cores} cores are busy: "
            f"try --num-threads {load.num_cores} or more --num-envs"
        )
    return {
        ENVIRONMENT: "all cores are at work: try --engine native, or a machine with more cores",
        ACTING: "try more --num-envs, so that one batch serves more steps, or --device cuda",
        LEARNING: "try a smaller network, fewer updates per step, or --device cuda",
        OTHER: "try larger --log-every-agent-steps and --save-every-agent-steps",
    }[part]
