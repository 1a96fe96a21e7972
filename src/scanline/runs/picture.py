"""What a run looks like: a picture for a terminal, a line for a file, advice and a last word.

Takes a `View` and a width in columns; gives rich renderables. Knows no clock, no run and no
console, so that every picture can be drawn from made-up numbers.

Shares of the time alone do not help a newcomer: the advice names what limits the run and the
option to change.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, zip_longest
from pathlib import Path

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.text import Text

from .clock import ACTING, ENVIRONMENT, LEARNING, OTHER, TRAINING_PARTS
from .limits import Stop

_STYLES = {ENVIRONMENT: "green", ACTING: "cyan", LEARNING: "magenta", OTHER: "yellow"}
_CELL_WIDTH = 38
"""Least columns of a name with its number and the space behind them."""
_LEAST_WIDTH, _SIDE_BY_SIDE_WIDTH = 20, 116
_CHART_HEIGHT, _LABEL_WIDTH = 5, 14
_LEVELS = " ▁▂▃▄▅▆▇█"
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
class About:
    """Which run a view is of."""

    title: str
    """Recipe, game and seed."""
    folder: Path | None = None
    num_envs: int = 0
    """Games that are played side by side, by all learners; 0 where that is not known."""
    limit_agent_steps: int = 0
    """Agent steps after which a game is cut; 0 for no limit."""


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
    """Losses of the last row and this run's own figures, by the name of the log."""
    folder: Path | None = None
    curve: Sequence[float] = ()
    """Mean scores of the rows so far, and the present one."""
    opening: str = ""
    """What there is to say before the first score."""


def picture(view: View, width: int = 80) -> RenderableType:
    """The picture of a terminal, as lines of fixed width: tables take five times as long."""
    inside = max(width - 4, _LEAST_WIDTH)  # a frame and a space at each side
    lines = Text(no_wrap=True, overflow="ellipsis")
    for pairs in (_numbers(view), _further(view.further)):
        _append_columns(lines, pairs, inside)
    lines.append("\n")
    _append_charts(lines, view, inside)
    words = Text(_word(view), style="bold")
    folder = None if view.folder is None else Text(str(view.folder), "dim")
    return Panel(
        Group(lines, words),
        title=Text(view.title),
        title_align="left",
        subtitle=folder,
        subtitle_align="left",
        width=min(width, inside + 4),
    )


def opening(about: About, agent_steps: int, num_waiting: int) -> str:
    """What there is to say before the first score: a game counts when all earlier ones ended."""
    if not about.num_envs:
        return ""
    limit, steps = about.limit_agent_steps, agent_steps // about.num_envs
    cut = f", cut after {limit:,}" if limit else ""
    ended = f"; {num_waiting:,} have ended and count when it has" if num_waiting else ""
    games = f"{about.num_envs:,} games under way"
    return f"{games}, the longest for {steps:,} agent steps{cut}{ended}"


def _word(view: View) -> str:
    """Shares of the time say nothing before the first steps."""
    return advice(view.load) if view.agent_steps else "Nothing measured yet."


def _append_columns(lines: Text, pairs: Sequence[tuple[str, str]], width: int) -> None:
    """Names with numbers in as many columns as fit, from edge to edge; three spaces between."""
    num_columns = max(1, width // _CELL_WIDTH)
    cell = (width + 3) // num_columns
    for place, (name, number) in enumerate(pairs, 1):
        is_last = place % num_columns == 0 or place == len(pairs)
        room = cell - 4 - len(name)
        lines.append(name, "dim").append(f" {number:>{room}}" + ("\n" if is_last else "   "))


def _append_charts(lines: Text, view: View, width: int) -> None:
    """The score's curve above the bars, or beside them where there is room."""
    is_wide = width >= _SIDE_BY_SIDE_WIDTH and bool(view.curve)
    half = width // 2 - 2 if is_wide else width
    rows = score_chart(view.curve, half, _CHART_HEIGHT) if view.curve else []
    if not rows and view.opening:
        rows = textwrap.wrap(f"No score yet: {view.opening}.", width)
    if not is_wide:
        lines.append("".join(f"{row}\n" for row in [*rows, ""]), "bright_blue")
        rows = []
    for row, bar in zip_longest(rows, _bars(view, half), fillvalue=""):
        if is_wide:
            lines.append(f"{row:<{half}}", "bright_blue").append("    ")
        lines.append(bar).append("\n")


def score_chart(scores: Sequence[float], width: int, height: int) -> list[str]:
    """Rows of blocks from the first score to the newest, with the highest and lowest beside."""
    num, total = max(width - _LABEL_WIDTH, 1), len(scores)
    firsts = [place * total // num for place in range(num + 1)]
    spans = [(a, max(a + 1, b)) for a, b in pairwise(firsts)]
    means = [sum(scores[a:b]) / (b - a) for a, b in spans]
    low, high = min(means), max(means)
    labels = [f"score {high:>{_LABEL_WIDTH - 7},.1f}", *[""] * (height - 2), f"{low:,.1f}"]
    top = height * 8
    heights = [1 + round((mean - low) / ((high - low) or 1.0) * (top - 1)) for mean in means]
    rows = []
    for place, label in enumerate(labels):
        below = 8 * (height - 1 - place)
        blocks = "".join(_LEVELS[min(max(each - below, 0), 8)] for each in heights)
        rows.append(f"{label:>{_LABEL_WIDTH - 1}} {blocks}")
    return rows


def _bars(view: View, width: int) -> list[Text]:
    """Shares of the time, and of the way to the limit."""
    bars = [(part, share, _STYLES[part]) for part, share in shares(view.load.split_seconds).items()]
    if view.done is not None:
        bars.append(("done", view.done, "blue"))
    room = max(width - 19, 1)  # behind a name, before a percentage
    found = []
    for name, share, style in bars:
        full = round(share * room)
        bar = Text(f"{name:<13} ", "dim").append("━" * full, style)
        found.append(bar.append(" " * (room - full)).append(f" {share:4.0%}", "default"))
    return found


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
        _word(view),
    )
    return Text(" | ".join(filter(None, parts)))


def last_word(stop: Stop, folder: Path, longer: str) -> Text:
    """Where a run is and what to do with it; `longer` are options with which it goes on."""
    go_on = f"scanline train --resume {folder} {longer}".rstrip()
    return Text(
        f"{stop.sentence} The run is in {folder}\n"
        f"  go on      {go_on}\n"
        f"  evaluate   scanline evaluate {folder}\n"
        f"  watch      scanline play {folder}\n"
        f"  report     {folder}/report.html\n"
        f"  curves     tensorboard --logdir {folder}   (or {folder}/progress.csv)"
    )


def _numbers(view: View) -> list[tuple[str, str]]:
    left = "" if view.remaining_seconds is None else _duration(view.remaining_seconds)
    score, best = ("-" if s is None else f"{s:,.1f}" for s in (view.score, view.best))
    games = f", last {view.window} games" if view.window else ""
    return [
        ("agent steps", f"{view.agent_steps:,}"),
        ("agent steps/s", f"{view.steps_per_second:,.0f}"),
        ("raw frames", f"{view.raw_frames:,}"),
        ("raw frames/s", f"{view.frames_per_second:,.0f}"),
        ("updates", f"{view.updates:,}"),
        ("updates/s", f"{view.updates_per_second:,.1f}"),
        ("games", f"{view.episodes:,}"),
        (f"score{games}", score),
        ("memory", _memory(view.load)),
        ("best score", best),
        ("training time", _duration(view.training_seconds)),
        ("time left, about", left),
    ]


def _further(figures: Mapping[str, float]) -> list[tuple[str, str]]:
    """Names and numbers, in the order of the log."""
    return [(name.partition("/")[2].replace("_", " "), f"{n:,.3g}") for name, n in figures.items()]


def _score(view: View) -> str:
    if view.score is None:
        return f"no game finished ({view.opening})" if view.opening else "no game finished"
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
