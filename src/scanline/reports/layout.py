"""The layout of a page: one HTML file that needs nothing else, narrow or wide, light or dark.

Takes a title and parts; gives the text of a document, a table, a section of pictures.
Knows nothing of runs. Charts take the colours of their texts and grids from the variables here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

_STYLE = """
:root { color-scheme: light dark; --ink: #1c2733; --paper: #fff; --soft: #5b6875; --line: #e6eaee; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #dfe6ec; --paper: #14191f; --soft: #9aa7b3; --line: #2c353e; }
}
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
       max-width: 1000px; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin: 0 0 .2rem; } h2 { font-size: 1.1rem; margin: 1.8rem 0 .5rem; }
h3 { font-size: .95rem; margin: 1.2rem 0 .4rem; }
h1, p, summary { overflow-wrap: anywhere; }
.sub, .legend, footer { color: var(--soft); font-size: .88rem; }
.charts { display: flex; flex-wrap: wrap; gap: 1rem; }
svg { width: 460px; max-width: 100%; height: auto; font-family: system-ui, sans-serif; }
.bar { display: flex; height: 26px; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .88rem; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .9rem .25rem 0; text-align: left; border-bottom: 1px solid var(--line);
         vertical-align: top; }
details td { overflow-wrap: anywhere; }
td.number, th.number { text-align: right; white-space: nowrap; }
.legend span { margin-right: 1.1rem; white-space: nowrap; }
.legend i { display: inline-block; width: .7rem; height: .7rem; margin-right: .35rem; }
details summary { cursor: pointer; margin: .4rem 0; }
"""


def document(title: str, parts: Iterable[str]) -> str:
    """The whole file; parts are HTML, the title is text."""
    view = '<meta name="viewport" content="width=device-width, initial-scale=1">'
    head = f'<meta charset="utf-8">{view}<title>{escape(title)}</title><style>{_STYLE}</style>'
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{"".join(parts)}</body></html>'


def section(title: str, pictures: Iterable[str], if_none: str = "Nothing was logged yet.") -> str:
    """A heading and the pictures that are not empty, side by side where there is room."""
    drawn = [picture for picture in pictures if picture]
    if not drawn:
        return f"<h2>{title}</h2><p class='sub'>{if_none}</p>"
    return f'<h2>{title}</h2><div class="charts">{"".join(drawn)}</div>'


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], num_left: int = 1) -> str:
    """Cells of text; columns after the first `num_left` are numbers, aligned to the right.

    A table that is wider than the page scrolls by itself.
    """

    def line(cells: Sequence[str], tag: str) -> str:
        kinds = ["" if n < num_left else ' class="number"' for n in range(len(cells))]
        texts = zip(kinds, cells, strict=True)
        return f"<tr>{''.join(f'<{tag}{kind}>{escape(c)}</{tag}>' for kind, c in texts)}</tr>"

    body = line(columns, "th") + "".join(line(row, "td") for row in rows)
    return f'<div class="wide"><table>{body}</table></div>'
