"""docs/experiments.md: every table and figure of the papers is there, and nothing has drifted."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from scanline_lab.experiments import EXPERIMENTS
from scanline_lab.experiments.coverage import ITEMS, costs_of, page

ROOT = Path(__file__).parents[3]
NUMBERS = {
    "CuLE": (8, 4),
    "GA3C": (7, 3),
    "Accelerated Methods": (11, 3),
    "Fast DQN": (3, 5),
    "PAAC": (4, 1),
}
"""Figures and tables of each paper."""


def experiments_page() -> Any:
    """The script as a module."""
    path = ROOT / "benchmarks" / "experiments_page.py"
    spec = importlib.util.spec_from_file_location("experiments_page", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("paper", NUMBERS)
def test_every_table_and_figure_of_a_paper_is_a_row(paper: str) -> None:
    own = [item.place for item in ITEMS if item.paper == paper]
    figures, tables = NUMBERS[paper]
    wanted = [f"Figure {n}" for n in range(1, figures + 1)]
    wanted += [f"Table {n}" for n in range(1, tables + 1)]
    assert sorted(place for place in own if "section" not in place) == sorted(wanted)


def test_rows_name_experiments_that_exist_or_say_why_there_is_none() -> None:
    for item in ITEMS:
        assert set(item.experiments) <= set(EXPERIMENTS)
        assert item.experiments or item.remark
    measured = {name for item in ITEMS for name in item.experiments}
    assert set(EXPERIMENTS) - measured == {"pong-minutes", "learning", "learning-bounds"}
    assert all(0 < desk <= paper for desk, paper in costs_of(EXPERIMENTS).values())


def test_the_page_is_what_experiments_and_kept_reports_say() -> None:
    script, text = experiments_page(), (ROOT / "docs" / "experiments.md").read_text()
    assert script.written(text) == text, (
        "docs/experiments.md: python benchmarks/experiments_page.py"
    )


def test_a_kept_report_is_linked_with_its_verdicts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim = EXPERIMENTS["paac-time-usage"].claims[0]
    judged = {"claim": claim.sentence, "source": claim.source, "measured": "50 %"}
    record = {
        **{"experiment": "paac-time-usage", "paper": "p", "scale": "desk", "machine": {}},
        **{"tables": [], "claims": [{**judged, "verdict": "contradicted"}], "cells": {}},
    }
    folder = tmp_path / "reproduced"
    folder.mkdir()
    (folder / "results.json").write_text(json.dumps(record))
    (folder / "report.md").write_text("# paac-time-usage\n\nWords.\n\n![it](plot.png)\n")
    (folder / "plot.png").write_bytes(b"picture")
    script = experiments_page()
    for name in ("REPORTS", "RECORDS"):
        monkeypatch.setattr(script, name, tmp_path / name)
    script.keep(folder)
    report = (tmp_path / "REPORTS" / "paac-time-usage.md").read_text()
    assert "scanline reproduce paac-time-usage --scale desk" in report
    assert "(paac-time-usage.png)" in report
    text = page(EXPERIMENTS, script.kept())
    assert "[`paac-time-usage`](experiments/paac-time-usage.md) | 1 contradicted" in text
    assert (
        f"| `paac-time-usage` | {claim.sentence} | {claim.source} | **contradicted**: 50 % |"
        in text
    )
    assert "| `paac-scaling` | not run (desk about 0.4 h) |" in text
