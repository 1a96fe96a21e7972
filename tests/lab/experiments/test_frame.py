"""The frame: cells are measured once, kept, and judged; smoke claims nothing it cannot show."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from scanline.tables import WIDTH, Table
from scanline_lab.experiments import EXPERIMENTS, SCALES, Cell, CellError, Experiment, reproduce
from scanline_lab.experiments.claims import UNTESTABLE, Claim, Finding, judge
from scanline_lab.experiments.frame import KeptCellError


def squares(measured: list[str], **changes: Any) -> Experiment:
    """Squares of three numbers; notes what it measures."""

    def measure(cell: Cell, before: Any) -> dict[str, Any]:
        measured.append(cell.name)
        return {"square": cell.settings["number"] ** 2, "before": sorted(before)}

    experiment = Experiment(
        name="squares",
        summary="Squares.",
        paper="Nobody 2000",
        cells=lambda scale: [Cell(name=f"n{n}", settings={"number": n}) for n in (1, 2, 3)],
        measure=measure,
        tables=lambda scale, results: [
            Table(
                title="Squares",
                columns=("name", "square"),
                rows=[[name, r["square"]] for name, r in results.items()],
            )
        ],
        claims=[
            Claim(
                "Two squared is four.",
                "Table 1",
                lambda results: Finding(results["n2"]["square"] == 4, "4"),
            ),
            Claim(
                "Three squared is eight.",
                "Table 2",
                lambda results: Finding(results["n3"]["square"] == 8, "9"),
            ),
            Claim(
                "Four squared is sixteen.",
                "Table 3",
                lambda results: Finding(results["n4"]["square"] == 16),
            ),
        ],
    )
    return dataclasses.replace(experiment, **changes)


def quiet(sentence: str) -> None:
    pass


def test_cells_are_measured_in_order_and_kept(tmp_path: Path) -> None:
    measured: list[str] = []
    first = reproduce(squares(measured), "desk", tmp_path, say=quiet)
    assert measured == ["n1", "n2", "n3"]
    assert first.results["n3"]["before"] == ["n1", "n2"]
    again = reproduce(squares(measured), "desk", tmp_path, say=quiet)
    assert measured == ["n1", "n2", "n3"]
    assert again.results == first.results
    reproduce(squares(measured), "desk", tmp_path, fresh=True, say=quiet)
    assert len(measured) == 6


def test_only_some_cells_are_measured_and_all_that_are_kept_reported(tmp_path: Path) -> None:
    measured: list[str] = []
    some = reproduce(squares(measured), "desk", tmp_path, only=["n[13]"], say=quiet)
    assert measured == list(some.results) == ["n1", "n3"]
    again = reproduce(squares(measured), "desk", tmp_path, only=["n3"], fresh=True, say=quiet)
    assert measured == ["n1", "n3", "n3"]
    assert list(again.results) == ["n1", "n3"]
    with pytest.raises(ValueError, match="No cell is named like 'x'; they are n1, n2, n3"):
        reproduce(squares(measured), "desk", tmp_path, only=["x"], say=quiet)


def test_a_killed_reproduction_goes_on_with_the_missing_cell(tmp_path: Path) -> None:
    measured: list[str] = []
    sound = squares(measured)

    def breaks(cell: Cell, before: Any) -> Any:
        if cell.name == "n2":
            raise OSError("no more power")
        return sound.measure(cell, before)

    with pytest.raises(CellError, match=r"n2 of squares .*no more power.*kept"):
        reproduce(dataclasses.replace(sound, measure=breaks), "desk", tmp_path, say=quiet)
    reproduce(sound, "desk", tmp_path, say=quiet)
    assert measured == ["n1", "n2", "n3"]


def test_a_kept_cell_with_other_settings_is_refused(tmp_path: Path) -> None:
    reproduce(squares([]), "desk", tmp_path, say=quiet)
    other = squares([], cells=lambda scale: [Cell(name="n1", settings={"number": 7})])
    with pytest.raises(KeptCellError, match="--fresh"):
        reproduce(other, "desk", tmp_path, say=quiet)
    (tmp_path / "cells" / "n1.json").write_text("{")
    with pytest.raises(KeptCellError, match="not JSON"):
        reproduce(squares([]), "desk", tmp_path, say=quiet)


def test_claims_are_confirmed_contradicted_or_not_testable(tmp_path: Path) -> None:
    verdicts = [j.verdict for j in reproduce(squares([]), "desk", tmp_path, say=quiet).claims]
    assert verdicts == ["confirmed", "contradicted", UNTESTABLE]
    smoke = reproduce(squares([]), "smoke", tmp_path / "smoke", say=quiet)
    assert {judged.verdict for judged in smoke.claims} == {UNTESTABLE}


def test_the_report_holds_tables_claims_and_results(tmp_path: Path) -> None:
    outcome = reproduce(squares([]), "desk", tmp_path, say=quiet)
    record = json.loads((tmp_path / "results.json").read_text())
    assert record["scale"] == "desk" and record["machine"]["num_cores"] >= 1
    assert record["tables"][0]["rows"] == [["n1", 1], ["n2", 4], ["n3", 9]]
    assert record["claims"][1]["verdict"] == "contradicted"
    assert "| n3 | 9 |" in outcome.report and "**contradicted**: Three squared" in outcome.report
    assert not (tmp_path / "run.lock").exists()


def test_doubled_cells_and_unknown_scales_are_refused(tmp_path: Path) -> None:
    twice = squares([], cells=lambda scale: [Cell(name="n1"), Cell(name="n1")])
    with pytest.raises(ValueError, match="n1 appear twice"):
        reproduce(twice, "desk", tmp_path, say=quiet)
    with pytest.raises(ValueError, match="one of smoke, desk, paper"):
        reproduce(squares([]), "huge", tmp_path, say=quiet)  # type: ignore[arg-type]


def test_a_table_prints_dashes_digits_and_thousands() -> None:
    rows = [["a", 1.23456, None, 12345]]
    table = Table(title="T", columns=("name", "x", "y", "z"), rows=rows, digits=1)
    assert table.text().splitlines()[-1].split() == ["a", "1.2", "-", "12,345"]
    assert table.markdown().splitlines()[-1] == "| a | 1.2 | - | 12,345 |"


@pytest.mark.parametrize("name", EXPERIMENTS)
@pytest.mark.parametrize("scale", SCALES)
def test_every_experiment_names_its_cells_in_plain_values(name: str, scale: Any) -> None:
    cells = EXPERIMENTS[name].cells(scale)
    assert len({cell.name for cell in cells}) == len(cells) > 0
    for cell in cells:
        assert json.loads(json.dumps(cell.settings)) == cell.settings
        assert "/" not in cell.name
    assert len(EXPERIMENTS[name].summary) <= 100 and WIDTH == 80


@pytest.mark.parametrize("name", [name for name in EXPERIMENTS if name.startswith("ga3c")])
def test_a_claim_without_results_is_not_testable(name: str) -> None:
    for judged in judge(EXPERIMENTS[name].claims, "desk", {}):
        assert judged.verdict == UNTESTABLE, judged.claim.sentence
