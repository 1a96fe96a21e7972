"""The page of a run: what it says is what the run's files say, and it needs nothing else."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import scanline
from scanline import cli, reports
from scanline.reports import charts
from scanline.reports.seeds import mean_with_band

SETTINGS = {"game": "pong", "recipe": {"name": "a2c", "rate": 0.1}, "run": {"seed": 7}}


def make_run(folder: Path, num_rows: int = 3, **changes: Any) -> Path:
    """The files of a run, without the run."""
    folder.mkdir()
    record = {"settings": {**SETTINGS, **changes}, "versions": {"torch": "2"}, "machine": {}}
    (folder / "settings.json").write_text(json.dumps(record))
    rows, rates = [], []
    for n in range(1, num_rows + 1):
        score = None if n == 1 else 2.5 * n
        rows.append({"agent_steps": 100 * n, "raw_frames": 400 * n, "updates": n})
        rows[-1] |= {"charts/episodic_return": score, "losses/policy<loss": 0.5 / n}
        rates.append({"agent_steps": 100 * n, "training_seconds": 60.0 * n, "charts/SPS": 5.0})
        rates[-1] |= {"perf/time_acting": 15.0, "perf/time_learning": 45.0}
    for name, lines in (("progress", rows), ("rates", rates)):
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (folder / f"{name}.jsonl").write_text(text)
    return folder


class Balanced(HTMLParser):
    """Fails where a tag is not closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.seen.append(tag)
        if tag not in ("meta",):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        self.seen.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def page_of(*folders: Path, out: Path | None = None) -> str:
    text = reports.write(list(folders), out).read_text()
    parser = Balanced()
    parser.feed(text)
    assert parser.open == []
    assert not re.search(r'src=|href="(?!#)|url\((?!#)|@import|<script|<link', text)
    return text


def test_the_page_says_what_the_files_say(tmp_path: Path) -> None:
    text = page_of(make_run(tmp_path / "run"))
    assert (tmp_path / "run" / "report.html").exists()
    cells = re.findall(r"<td[^>]*>([^<]*)</td>", text)
    assert cells[:9] == [
        *("a2c on pong, seed 7", "300", "1,200", "3", "0:03:00"),
        *("2", "7.5", "7.5", "-"),
    ]
    assert "acting 25 %" in text and "learning 75 %" in text
    assert "policy&lt;loss" in text and "policy<loss" not in text
    assert "recipe.rate" in text


def test_several_runs_share_charts_and_show_what_differs(tmp_path: Path) -> None:
    first = make_run(tmp_path / "one")
    second = make_run(tmp_path / "two", recipe={"name": "a2c", "rate": 0.2})
    text = page_of(first, second, out=tmp_path / "both.html")
    assert "a2c on pong, seed 7 (one)" in text and "(two)" in text
    differs = text[text.index("differs") : text.index("equal in all runs")]
    assert "recipe.rate" in differs and "recipe.name" not in differs
    curves = [text.count(f"stroke: {colour}; stroke-width") for colour in charts.COLOURS]
    assert curves[0] == curves[1] > 0 == sum(curves[2:])


def seed(number: int) -> dict[str, Any]:
    return {"run": {"seed": number}}


def test_seeds_of_one_recipe_are_one_curve_with_a_band(tmp_path: Path) -> None:
    seeds = [make_run(tmp_path / f"s{n}", **seed(n)) for n in range(3)]
    other = [
        make_run(tmp_path / f"o{n}", recipe={"name": "ppo"}, **seed(n), num_rows=n + 1)
        for n in range(3)
    ]
    text = page_of(*seeds, *other, out=tmp_path / "six.html")
    legend = re.findall(r"</i>([^<]*)</span>", text)
    for recipe in ("a2c", "ppo"):
        words = f"{recipe} on pong: mean of 3 seeds, band from lowest to highest"
        assert words in legend
    curves = [text.count(f"stroke: {colour}; stroke-width") for colour in charts.COLOURS]
    assert curves[0] == curves[1] > 0 == sum(curves[2:])
    assert text.count("fill-opacity: 0.16") > 0
    for n in range(3):
        assert f"a2c on pong, seed {n}" in text


def test_equal_seeds_stay_apart(tmp_path: Path) -> None:
    text = page_of(*(make_run(tmp_path / n) for n in ("one", "two")), out=tmp_path / "p.html")
    assert "band from" not in text and "seed 7 (one)" in text


def test_a_mean_is_of_the_lines_that_reach_a_place() -> None:
    points, band = mean_with_band([[(0.0, 1.0), (2.0, 3.0)], [], [(1.0, 4.0), (2.0, 5.0)]])
    assert points == [(0.0, 1.0), (1.0, 3.0), (2.0, 4.0)]
    assert band == [(0.0, 1.0, 1.0), (1.0, 2.0, 4.0), (2.0, 3.0, 5.0)]
    assert mean_with_band([[], [(1.0, 2.0)]]) == ([(1.0, 2.0)], [])
    assert mean_with_band([]) == ([], [])


@pytest.mark.parametrize("num_rows", [(3, 0), (0, 3), (1, 3), (3, 1), (0, 0), (1, 1)])
@pytest.mark.parametrize("seeds", [(7, 7), (7, 8)])
def test_runs_that_lack_metrics_are_laid_over_each_other(
    tmp_path: Path, num_rows: tuple[int, int], seeds: tuple[int, int]
) -> None:
    runs = [
        make_run(tmp_path / str(n), num_rows=rows, **seed(number))
        for n, (rows, number) in enumerate(zip(num_rows, seeds, strict=True))
    ]
    for run in runs:
        for file in ("progress.jsonl", "rates.jsonl"):
            assert (run / file).exists()
    assert cli.main(["report", *map(str, runs), "--out", str(tmp_path / "both.html")]) == 0
    (runs[0] / "rates.jsonl").unlink()  # neither speed nor time
    (runs[1] / "progress.jsonl").unlink()
    page_of(*runs, out=tmp_path / "both.html")


def test_a_run_that_has_steps_has_not_zero(tmp_path: Path) -> None:
    new = make_run(tmp_path / "new", num_rows=0)
    cells = re.findall(r"<td[^>]*>([^<]*)</td>", page_of(new))
    assert cells[1:9] == ["-"] * 8
    (new / "checkpoints" / "000000-agent-steps-4200").mkdir(parents=True)
    cells = re.findall(r"<td[^>]*>([^<]*)</td>", page_of(new))
    assert cells[1:3] == ["4,200", "-"]


@pytest.mark.usefixtures("pages")
def test_a_run_of_few_steps_has_curves(tmp_path: Path) -> None:
    small = {"network": "mlp", "num_workers": 0, "torch_threads": 1, "tensorboard": False}
    quiet = {"live": False, "say": lambda sentence: None}
    run = scanline.train(
        "a2c", "scanline/Catch-v0", agent_steps=1_600, out=tmp_path / "run", **small, **quiet
    )
    rows = (run.folder / "progress.jsonl").read_text().splitlines()
    assert [json.loads(row)["agent_steps"] for row in rows] == [1_040, 1_600]
    text = (run.folder / "report.html").read_text()
    assert re.findall(r"<td[^>]*>([^<]*)</td>", text)[1] == "1,600"
    assert "Nothing was logged yet" not in text


def test_a_run_without_rows_and_one_with_a_cut_line_can_be_reported(tmp_path: Path) -> None:
    empty = page_of(make_run(tmp_path / "new", num_rows=0))
    assert "Nothing was logged yet" in empty
    assert "No game has ended yet" in empty
    cut = make_run(tmp_path / "cut")
    with open(cut / "progress.jsonl", "a") as file:
        file.write('{"agent_steps": 4')
    assert '<td class="number">300</td>' in page_of(cut)


def test_evaluations_are_drawn_and_the_best_is_named(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    rows = [{"agent_steps": 100, "mean": 1.5}, {"agent_steps": 200, "mean": None}]
    (run / "evaluations.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    text = page_of(run)
    assert "1.5 at 100" in text and "Score of evaluations" in text


def test_a_folder_without_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(reports.ReportError, match="no run in"):
        reports.write([tmp_path])
    (tmp_path / "settings.json").write_text("{}")
    with pytest.raises(reports.ReportError, match="cannot be read"):
        reports.write([tmp_path])
    with pytest.raises(reports.ReportError, match="at least one"):
        reports.write([])


@pytest.mark.usefixtures("pages")
def test_a_run_ends_with_its_report_and_the_command_makes_it_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small = {"network": "mlp", "num_workers": 0, "torch_threads": 1, "tensorboard": False}
    run = scanline.train(
        *("a2c", "scanline/Catch-v0"),
        agent_steps=800,
        log_every_agent_steps=200,
        live=False,
        out=tmp_path / "run",
        say=lambda sentence: None,
        **small,
    )
    page = run.folder / "report.html"
    assert "a2c on scanline/Catch-v0" in page.read_text()
    page.unlink()
    assert cli.main(["report", str(run.folder)]) == 0
    assert page.exists() and str(page) in capsys.readouterr().out
    assert cli.main(["report", str(tmp_path)]) == 2


def test_a_chart_is_equal_for_equal_input_and_takes_its_colours_from_the_page() -> None:
    curves = {"a": [(1.0, 2.0), (2_000_000.0, 0.5)], "b": [], "c<": [(5.0, 1.0)]}
    drawn = [
        charts.line_chart("Loss $x$ <y>", curves, "agent steps", {"a": [(1.0, 0.0, 3.0)]})
        for _ in range(2)
    ]
    assert drawn[0] == drawn[1]
    assert ">Loss $x$ &lt;y&gt;<" in drawn[0] and ">2M<" in drawn[0]
    assert charts.COLOURS[2] in drawn[0] and charts.COLOURS[1] not in drawn[0]
    for variable in ("--ink", "--soft", "--line"):
        assert f"var({variable})" in drawn[0]
    assert charts.line_chart("None", {"a": []}, "x") == ""


@pytest.mark.parametrize("ys", [(1e308, -1e308), (1e308, 1.0), (1e299, -1e299), (5e-324, 0.0)])
def test_any_finite_numbers_can_be_drawn(ys: tuple[float, float]) -> None:
    charts.line_chart("Any", {"a": list(enumerate(ys))}, "x")


def test_thinning_keeps_both_ends() -> None:
    points = [(float(n), 0.0) for n in range(1000)]
    thin = charts.thinned(points, most=10)
    assert len(thin) == 10 and thin[0] == points[0] and thin[-1] == points[-1]
    assert charts.thinned(points[:3], most=10) == points[:3]
