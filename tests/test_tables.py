"""The one printer of tables: columns aligned, nothing cut, nothing interpreted."""

from __future__ import annotations

import pytest

from scanline.tables import Table, aligned


@pytest.mark.parametrize("gap", [1, 2])
def test_lines_are_as_wide_as_their_columns(gap: int) -> None:
    rows = [["name", "steps/s", "x"], ["a" * 90, "1,234", "-"], ["[b]", ":smile:", "12.5"]]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    expected = [
        (" " * gap).join(
            [
                row[0].ljust(widths[0]),
                *(t.rjust(w) for t, w in zip(row[1:], widths[1:], strict=True)),
            ]
        )
        for row in rows
    ]
    assert aligned(rows, gap=gap) == expected


def test_a_table_has_a_rule_under_its_heading_and_its_notes_below() -> None:
    rows = [("pong", 12_345, None), ("boxing", 1.5, "yes")]
    table = Table(title="Rates", columns=("game", "raw", "ok"), rows=rows, notes=("A note.",))
    assert table.text().splitlines() == [
        "Rates",
        "game       raw   ok",
        "-------------------",
        "pong    12,345    -",
        "boxing    1.50  yes",
        "A note.",
    ]
