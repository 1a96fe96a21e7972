"""Charts as inline SVG: curves and a bar of shares.

Takes named points or shares; gives SVG text that needs no script, font or file from elsewhere.
Knows nothing of runs.

A page should be readable anywhere and for years, so nothing is drawn by a library at reading time.
Curves of more points than the picture has columns are thinned; the newest point always stays.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from html import escape

Point = tuple[float, float]
Span = tuple[float, float, float]
"""x, low and high."""
COLOURS = ("#1f77b4", "#d95f02", "#2ca02c", "#9467bd", "#c51b7d", "#8c6d31", "#17a2b8", "#555555")
_WIDTH, _HEIGHT = 460, 250
_LEFT, _RIGHT, _TOP, _BOTTOM = 62, 12, 26, 36
_MOST_POINTS = 400
_GRID = 'stroke="#e6eaee"'
_TEXT = 'font-family="system-ui, sans-serif" font-size="11" fill="#5b6875"'


def line_chart(
    title: str,
    curves: Mapping[str, Sequence[Point]],
    x_label: str,
    bands: Mapping[str, Sequence[Span]] | None = None,
) -> str:
    """Curves over one axis, coloured in their order as `legend` has it; '' if none has a point.

    `bands` are intervals around curves, by the names of the curves.
    """
    drawn = {name: thinned(points) for name, points in curves.items()}
    if not any(drawn.values()):
        return ""
    spans = bands or {}
    every = [point for points in drawn.values() for point in points]
    edges = [y for points in spans.values() for _, *ends in points for y in ends]
    xs = _Axis.around([x for x, _ in every], _LEFT, _WIDTH - _RIGHT)
    ys = _Axis.around([y for _, y in every] + edges, _HEIGHT - _BOTTOM, _TOP)
    coloured = list(zip(drawn, itertools.cycle(COLOURS), strict=False))
    parts = [_frame(title, x_label), *_grid(xs, ys)]
    parts += [_band(spans[name], colour, xs, ys) for name, colour in coloured if spans.get(name)]
    for name, colour in coloured:
        if drawn[name]:
            places = [(f"{xs.place(x):.1f}", f"{ys.place(y):.1f}") for x, y in drawn[name]]
            parts += _curve(places, colour)
    size = f'viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}"'
    return f'<svg {size} {_TEXT} role="img" aria-label="{escape(title)}">{"".join(parts)}</svg>'


def legend(names: Sequence[str]) -> str:
    """Which colour is whose, for all charts that draw the same curves."""
    colours = (COLOURS[number % len(COLOURS)] for number in range(len(names)))
    words = (_key(name, colour) for name, colour in zip(names, colours, strict=True))
    return f'<p class="legend">{"".join(words)}</p>'


def _key(words: str, colour: str) -> str:
    return f'<span><i style="background:{colour}"></i>{escape(words)}</span>'


def share_bar(shares: Mapping[str, float]) -> str:
    """Parts of a whole as one bar with their percentages underneath."""
    total = sum(shares.values())
    if total <= 0:
        return ""
    at, bars, words = 0.0, [], []
    for number, (name, share) in enumerate(shares.items()):
        colour, width = COLOURS[number % len(COLOURS)], 100 * share / total
        bars.append(f'<rect x="{at:.2f}%" width="{width:.2f}%" height="26" fill="{colour}"/>')
        words.append(
            f'<span><i style="background:{colour}"></i>{escape(name)} {width:.0f} %</span>'
        )
        at += width
    bar = f'<svg width="100%" height="26" role="img">{"".join(bars)}</svg>'
    return f'{bar}<p class="legend">{"".join(words)}</p>'


def thinned(points: Sequence[Point], most: int = _MOST_POINTS) -> list[Point]:
    """Equally spaced points, the first and the last among them."""
    if len(points) <= most:
        return list(points)
    step = (len(points) - 1) / (most - 1)
    return [points[round(number * step)] for number in range(most)]


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round numbers within low..high, at steps of 1, 2 or 5 times a power of ten."""
    if not high > low:
        return [low]
    raw = (high - low) / about
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= raw * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [number * step for number in range(first, last + 1)]


def number_words(value: float) -> str:
    """12,000,000 as 12M: short enough for an axis."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(value) >= size:
            return f"{value / size:.4g}{unit}"
    return f"{value:.4g}"


class _Axis:
    """From values to places of the picture."""

    def __init__(self, low: float, high: float, begin: float, end: float) -> None:
        self.low, self.high, self._begin, self._end = low, high, begin, end

    @classmethod
    def around(cls, values: Sequence[float], begin: float, end: float) -> _Axis:
        low, high = min(values), max(values)
        if low == high:
            low, high = low - (abs(low) or 1.0) * 0.5, high + (abs(high) or 1.0) * 0.5
        return cls(low, high, begin, end)

    def place(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return self._begin + share * (self._end - self._begin)


def _frame(title: str, x_label: str) -> str:
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    return (
        f'<text x="{_LEFT}" y="15" font-weight="600" fill="#1c2733">{escape(title)}</text>'
        f'<text x="{middle}" y="{_HEIGHT - 4}" text-anchor="middle">{escape(x_label)}</text>'
    )


def _grid(xs: _Axis, ys: _Axis) -> list[str]:
    left, right, top, bottom = _LEFT, _WIDTH - _RIGHT, _TOP, _HEIGHT - _BOTTOM
    parts = []
    for value in ticks(ys.low, ys.high):
        y = ys.place(value)
        parts.append(f'<line x1="{left}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}" {_GRID}/>')
        text = escape(number_words(value))
        parts.append(f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{text}</text>')
    for value in ticks(xs.low, xs.high):
        x = xs.place(value)
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{top}" y2="{bottom}" {_GRID}/>')
        text = escape(number_words(value))
        parts.append(f'<text x="{x:.1f}" y="{bottom + 15}" text-anchor="middle">{text}</text>')
    return parts


def _band(spans: Sequence[Span], colour: str, xs: _Axis, ys: _Axis) -> str:
    """The area between low and high; an upright stroke where there is one point."""
    outline = [(x, low) for x, low, _ in spans] + [(x, high) for x, _, high in reversed(spans)]
    path = " ".join(f"{xs.place(x):.1f},{ys.place(y):.1f}" for x, y in outline)
    paint = f'fill="{colour}" stroke="{colour}" fill-opacity="0.16" stroke-opacity="0.3"'
    return f'<polygon points="{path}" {paint}/>'


def _curve(places: Sequence[tuple[str, str]], colour: str) -> list[str]:
    """A line, and a dot at its newest point: a curve of one point is seen too."""
    path = " ".join(f"{x},{y}" for x, y in places)
    x, y = places[-1]
    return [
        f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.6"/>',
        f'<circle cx="{x}" cy="{y}" r="2.5" fill="{colour}"/>',
    ]
