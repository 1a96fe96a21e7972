"""Charts as inline SVG: curves by matplotlib, and a bar of shares.

Takes named points or shares; gives text for a page, which needs no script, font or file from
elsewhere. Knows nothing of runs.

Colours of text and grid are the page's own CSS variables (layout.py), so a chart is readable on
light and dark pages. Equal input gives equal text.
"""

from __future__ import annotations

import io
import itertools
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from html import escape
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Point = tuple[float, float]
Span = tuple[float, float, float]
"""x, low and high."""
COLOURS = ("#1f77b4", "#d95f02", "#2ca02c", "#9467bd", "#c51b7d", "#8c6d31", "#17a2b8", "#555555")
_Values = TypeVar("_Values", Point, Span)
_MOST_POINTS = 400
"""A curve of more points than the picture has columns is thinned."""
_LARGEST = 1e300
"""Axes of larger numbers overflow."""
_INCHES = (6.4, 3.5)
"""Width and height, at 72 points of the page each."""
_AXES = (0.14, 0.16, 0.84, 0.74)
"""Left, bottom, width and height of the plot within the figure."""
_VARIABLES = {"#1c2733": "var(--ink)", "#5b6875": "var(--soft)", "#e6eaee": "var(--line)"}
_INK, _SOFT, _LINE = _VARIABLES
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "scanline",
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlecolor": _INK,
    "axes.titley": 1.02,
    "axes.labelcolor": _SOFT,
    "axes.edgecolor": _LINE,
    "axes.grid": True,
    "grid.color": _LINE,
    "xtick.color": _SOFT,
    "ytick.color": _SOFT,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "lines.linewidth": 1.6,
    "lines.markersize": 4,
    "text.parse_math": False,
}
_NO_METADATA = dict.fromkeys(("Creator", "Date", "Format", "Type"))


def line_chart(
    title: str,
    curves: Mapping[str, Sequence[Point]],
    x_label: str,
    bands: Mapping[str, Sequence[Span]] | None = None,
) -> str:
    """Curves over one axis, coloured in their order as `legend` has it; '' if none has a point.

    A dot marks the newest point. `bands` are intervals around curves, by the names of the curves.
    """
    spans = bands or {}
    thin = [(tuple(thinned(c)), tuple(thinned(spans.get(name, ())))) for name, c in curves.items()]
    return _drawn(title, x_label, tuple(thin)) if any(points for points, _ in thin) else ""


@lru_cache(maxsize=64)
def _drawn(
    title: str, x_label: str, curves: tuple[tuple[tuple[Point, ...], tuple[Span, ...]], ...]
) -> str:
    """Curves with their bands; a page that is written again draws only what has changed."""
    # Imported here: processes that draw no page start sooner without it.
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(_STYLE):
        figure = Figure(figsize=_INCHES)
        axes = figure.add_axes(_AXES, title=title, xlabel=x_label)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(lambda value, _: short_number(value))
        for (points, band), colour in zip(curves, itertools.cycle(COLOURS), strict=False):
            if points:
                xs, ys = zip(*points, strict=True)
                axes.plot(xs, ys, color=colour, marker="o", markevery=[-1])
            if band:
                xs, low, high = zip(*band, strict=True)
                axes.fill_between(xs, low, high, color=colour, alpha=0.16)
        return _svg_of(figure, title)


def _svg_of(figure: Figure, title: str) -> str:
    """The figure as an element of a page: no XML header, ids of groups or fonts."""
    text = io.StringIO()
    figure.savefig(text, format="svg", transparent=True, metadata=_NO_METADATA)
    svg = text.getvalue()
    svg = svg[svg.index("<svg") :].replace("<svg", f'<svg role="img" aria-label="{escape(title)}"')
    svg = re.sub(r'(?<=<g) id="[^"]*"| font-family: [^;]*;', "", svg)
    for colour, variable in _VARIABLES.items():
        svg = svg.replace(colour, variable)
    return svg


def legend(names: Sequence[str]) -> str:
    """The colours of names, for all charts that draw the same curves."""
    words = map(_key, names, itertools.cycle(COLOURS))
    return f'<p class="legend">{"".join(words)}</p>'


def _key(words: str, colour: str) -> str:
    return f'<span><i style="background:{colour}"></i>{escape(words)}</span>'


def share_bar(shares: Mapping[str, float]) -> str:
    """Parts of a whole as one bar with their percentages underneath."""
    total = sum(shares.values())
    if total <= 0:
        return ""
    percents = [100 * share / total for share in shares.values()]
    bars = (
        f'<i style="width:{percent:.2f}%;background:{colour}"></i>'
        for percent, colour in zip(percents, itertools.cycle(COLOURS), strict=False)
    )
    words = [f"{name} {percent:.0f} %" for name, percent in zip(shares, percents, strict=True)]
    return f'<div class="bar">{"".join(bars)}</div>{legend(words)}'


def thinned(points: Sequence[_Values], most: int = _MOST_POINTS) -> list[_Values]:
    """Equally spaced points, the first and the last that can be drawn among them."""
    drawable = [point for point in points if max(map(abs, point)) < _LARGEST]
    if len(drawable) <= most:
        return drawable
    step = (len(drawable) - 1) / (most - 1)
    return [drawable[round(number * step)] for number in range(most)]


def short_number(value: float) -> str:
    """12,000,000 as 12M: short enough for an axis."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(value) >= size:
            return f"{value / size:.4g}{unit}"
    return f"{value:.4g}"
