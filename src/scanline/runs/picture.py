"""What a run looks like: a picture for a terminal, a line for a file, and a last word.

Takes a `View`; gives rich renderables. Knows no clock, no run and no console, so that every
picture can be drawn from made-up numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.text import Text

from .advice import Load, advice, shares
from .limits import Stop

_STYLES = {"environment": "green", "acting": "cyan", "learning": "magenta", "other": "yellow"}
_BAR_WIDTH = 50


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
    for (left, count), (right, rate) in _number_rows(view):
        lines.append(f"{left:<13}", "dim").append(f" {count:>15}    ")
        lines.append(f"{right:<22}", "dim").append(f" {rate:>10}\n")
    for first, second in _further_rows(view.further):
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
        *(
            [", ".join(f"{name} {number}" for name, number in _further(view.further))]
            if view.further
            else []
        ),
        advice(view.load),
    )
    return Text(" | ".join(parts))


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


def _number_rows(view: View) -> list[tuple[tuple[str, str], tuple[str, str]]]:
    left = "" if view.remaining_seconds is None else _duration(view.remaining_seconds)
    score = "" if view.score is None else f"{view.score:,.1f}"
    best = "" if view.best is None else f"{view.best:,.1f}"
    return [
        (
            ("agent steps", f"{view.agent_steps:,}"),
            ("agent steps/s", f"{view.steps_per_second:,.0f}"),
        ),
        (
            ("raw frames", f"{view.raw_frames:,}"),
            ("raw frames/s", f"{view.frames_per_second:,.0f}"),
        ),
        (("updates", f"{view.updates:,}"), ("updates/s", f"{view.updates_per_second:,.1f}")),
        (("games", f"{view.episodes:,}"), (f"score, last {view.window} games", score)),
        (("memory", _memory(view.load)), ("best score", best)),
        (("training time", _duration(view.training_seconds)), ("time left, about", left)),
    ]


def _further(figures: Mapping[str, float]) -> list[tuple[str, str]]:
    """Names and numbers, in the order of the log."""
    return [(name.partition("/")[2].replace("_", " "), f"{n:,.3g}") for name, n in figures.items()]


def _further_rows(
    figures: Mapping[str, float],
) -> list[tuple[tuple[str, str], tuple[str, str]]]:
    pairs = [*_further(figures), ("", "")]
    return list(zip(pairs[0:-1:2], pairs[1::2], strict=False))


def _score(view: View) -> str:
    if view.score is None:
        return "no game finished"
    best = "" if view.best is None else f", best {view.best:,.1f}"
    return f"{view.score:,.1f} (last {view.window} games{best})"


def _memory(load: Load) -> str:
    if load.memory_bytes is None:
        return "unknown"
    total = "" if load.total_memory_bytes is None else f" of {load.total_memory_bytes / 2**30:.0f}"
    return f"{load.memory_bytes / 2**30:.1f}{total} GiB"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"
