"""`scanline compare`: what is read, how it is grouped, what is written and what is refused."""

from __future__ import annotations

import csv
import json
import math
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from scanline import cli
from scanline.queue import compare_command, comparison_page
from scanline.queue.compare import compare
from scanline.queue.statistics import Estimate


def make_run(folder: Path, recipe: str = "a2c", game: str = "pong", seed: int = 0, **changes: Any):
    """The files of a finished run of 1,000 agent steps, without the run."""
    folder.mkdir(parents=True)
    rate, score = changes.pop("learning_rate", 0.1), changes.pop("score", float(seed))
    limits = {"agent_steps": 1000} | {k: v for k, v in changes.items() if k == "agent_steps"}
    plan = {
        "game": game,
        "recipe": {"name": recipe, "optimiser": {"learning_rate": rate}, **limits},
        "run": {"seed": seed, "seconds": changes.get("seconds"), "target_score": None},
    }
    (folder / "settings.json").write_text(json.dumps({"settings": plan}))
    rows = [{"agent_steps": n, "charts/episodic_return": score * n / 1000} for n in (500, 1000)]
    rates = [{"agent_steps": n, "training_seconds": 3.6 * n} for n in (500, 1000)]
    write_lines(folder / "progress.jsonl", rows)
    write_lines(folder / "rates.jsonl", rates)
    return folder


def write_lines(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def finish(run: Path, greedy: float, sampled: float, training: float | None = 0.0) -> Path:
    """`result.json`, as a worker writes it."""
    evaluation = {
        "greedy": {"mean": greedy, "scores": [greedy] * 3, "actions": "greedy"},
        "sampled": {"mean": sampled, "scores": [sampled], "actions": "sampled as in training"},
    }
    record = {"format_version": 1, "agent_steps": 1000, "training_minutes": 120}
    record |= {"training_score": training, "evaluation": evaluation}
    (run / "result.json").write_text(json.dumps(record))
    return run


@pytest.fixture
def queue(tmp_path: Path) -> Path:
    """Two recipes, three games of which one has no human score, two seeds."""
    folder = tmp_path / "q"
    for recipe, better in (("a2c", 0.0), ("ppo", 3.0)):
        for game in ("pong", "breakout", "carnival"):
            for seed in (0, 1):
                run = make_run(folder / "runs" / f"{recipe}-{game}-{seed}", recipe, game, seed)
                finish(run, greedy=better + seed, sampled=better - seed, training=better)
    (folder / "queue.json").write_text("{}")
    return folder


def refusal(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert cli.main(["compare", *words]) == 2
    error = capsys.readouterr().err
    assert error.startswith("scanline: ") and error.count("\n") == 1
    return error


def test_each_kind_of_score_has_figures_of_its_own(queue: Path) -> None:
    found = {figures.kind: figures for figures in compare([queue]).figures}
    assert list(found) == ["greedy", "sampled", "training"]
    means = {
        kind: {(row.game, row.group): row.raw["mean"].value for row in figures.per_game}
        for kind, figures in found.items()
    }
    assert means["greedy"]["pong", "ppo"] == 3.5 and means["sampled"]["pong", "ppo"] == 2.5
    assert means["training"]["carnival", "ppo"] == 3.0
    assert found["greedy"].choices == ["greedy"]
    assert found["sampled"].choices == ["sampled as in training"]


def test_figures_over_games_are_human_normalised_on_games_with_a_human_score(queue: Path) -> None:
    comparison = compare([queue])
    greedy = comparison.figures[0]
    assert greedy.games == ["breakout", "pong"]
    assert comparison.without_human_score == ["carnival"]
    pong, breakout = (0.5 + 20.7) / (14.6 + 20.7), (0.5 - 1.7) / (30.5 - 1.7)
    assert greedy.over_games["a2c"]["mean"].value == pytest.approx((pong + breakout) / 2)
    row = next(r for r in greedy.per_game if (r.game, r.group) == ("pong", "a2c"))
    low, high = (20.7 / 35.3, 21.7 / 35.3)
    assert row.human_normalised["mean"].value == pytest.approx(pong)
    assert (row.human_normalised["mean"].low, row.human_normalised["mean"].high) == (
        pytest.approx(low),
        pytest.approx(high),
    )
    carnival = [row for row in greedy.per_game if row.game == "carnival"]
    assert all(row.human_normalised == {} and row.raw["mean"].low is not None for row in carnival)


def test_improvement_and_profile_of_a_clear_case(queue: Path) -> None:
    greedy = compare([queue]).figures[0]
    (pair,) = greedy.improvements
    assert (pair.x, pair.y, len(pair.games)) == ("a2c", "ppo", 3)
    assert pair.chance == Estimate(0.0, 0.0, 0.0)
    for group in ("a2c", "ppo"):
        shares = greedy.profiles[group].values
        assert shares == sorted(shares, reverse=True) and shares[-1] == 0.0


def test_groups_follow_any_setting_or_several(tmp_path: Path) -> None:
    for number, rate in enumerate((0.01, 0.2, 0.01, 0.03)):
        make_run(tmp_path / str(number), seed=number, learning_rate=rate)
    paths = [tmp_path / str(number) for number in range(4)]
    rates = compare(paths, "learning-rate")
    assert {name: len(runs) for name, runs in rates.groups.items()} == {
        "learning_rate 0.01": 2,
        "learning_rate 0.03": 1,
        "learning_rate 0.2": 1,
    }
    assert rates.mixed == {name: [] for name in rates.groups}
    assert next(iter(compare(paths, "recipe,learning_rate").groups)) == "a2c, learning_rate 0.01"
    assert compare(paths).mixed == {"a2c": ["learning_rate"]}


def test_a_run_alone_has_its_training_score_and_its_newest_pause(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", seed=4)
    pauses = [(100, 1.0, "greedy with epsilon 0.05"), (900, 2.0, "greedy with epsilon 0.05")]
    rows = [{"agent_steps": n, "mean": mean, "actions": how} for n, mean, how in pauses]
    write_lines(run / "evaluations.jsonl", rows)
    comparison = compare([run])
    (outcome,) = comparison.groups["a2c"]
    assert outcome.scores == {"greedy": 2.0, "training": 4.0}
    assert [figures.kind for figures in comparison.figures] == ["greedy", "training"]
    assert comparison.figures[0].choices == ["greedy with epsilon 0.05"]
    assert comparison.figures[1].per_game[0].raw["mean"] == Estimate(4.0)  # one run, no interval


def test_runs_without_a_kind_of_score_are_counted(queue: Path, tmp_path: Path) -> None:
    alone = make_run(tmp_path / "alone", "dqn", seed=9)
    greedy, _, training = compare([queue, alone]).figures
    assert greedy.without == [str(alone)] and training.without == []
    assert "Without a greedy score, and so not in these tables: 1 run." in comparison_page.html(
        compare([queue, alone])
    )


def test_what_cannot_be_compared_is_listed_with_the_reason(queue: Path) -> None:
    runs = queue / "runs"
    (runs / "a2c-pong-0" / "result.json").write_text('{"format_version": 1, "evaluation": 3}')
    (runs / "a2c-pong-1" / "result.json").write_text("{")
    (runs / "ppo-pong-0" / "result.json").unlink()
    (runs / "ppo-pong-1" / "settings.json").unlink()
    (runs / "ppo-breakout-0" / "result.json").write_text('{"format_version": 9}')
    (queue / "failed").mkdir()
    (queue / "failed" / "ppo-qbert-0@003-ab12.json").write_text("{}")
    comparison = compare([queue])
    reasons = {Path(each.path).name: each.reason for each in comparison.left_out}
    assert "damaged" in reasons["a2c-pong-0"] and "cannot be read" in reasons["a2c-pong-1"]
    assert "not finished" in reasons["ppo-pong-0"] and "settings.json" in reasons["ppo-pong-1"]
    assert "format 9" in reasons["ppo-breakout-0"] and "failed" in reasons["ppo-qbert-0"]
    page = comparison_page.html(comparison)
    assert all(name in page for name in reasons)
    assert sum(map(len, comparison.groups.values())) + len(reasons) == 13


def test_an_unfinished_run_is_left_out_but_not_one_with_a_limit_in_seconds(tmp_path: Path) -> None:
    done, short = make_run(tmp_path / "done"), make_run(tmp_path / "short", agent_steps=5000)
    timed = make_run(tmp_path / "timed", agent_steps=5000, seconds=60, seed=2)
    comparison = compare([done, short, timed])
    assert [each.reason for each in comparison.left_out] == [
        "it has done 1,000 of 5,000 agent steps"
    ]
    assert [run.path for run in comparison.groups["a2c"]] == [str(done), str(timed)]
    warning = "not all trained for the same number of agent steps"
    assert warning not in comparison_page.html(comparison)
    (timed / "checkpoints" / "000001-agent-steps-1500").mkdir(parents=True)
    assert warning in comparison_page.html(compare([done, timed]))


def test_a_run_without_a_finished_game_is_left_out(tmp_path: Path) -> None:
    silent = make_run(tmp_path / "silent")
    write_lines(silent / "progress.jsonl", [{"agent_steps": 1000, "charts/episodic_return": None}])
    comparison = compare([silent, make_run(tmp_path / "other")])
    assert [each.reason for each in comparison.left_out] == [
        "no game was finished, so it has no score"
    ]


def test_a_run_that_is_named_twice_counts_once(queue: Path) -> None:
    comparison = compare([queue, queue / "runs" / "a2c-pong-0", queue])
    assert sum(map(len, comparison.groups.values())) == 12


def test_curves_are_means_of_the_runs_where_all_have_come(tmp_path: Path) -> None:
    runs = [make_run(tmp_path / str(seed), seed=seed, score=10.0 * seed) for seed in (1, 2)]
    rows = [{"agent_steps": n, "charts/episodic_return": 4.0} for n in (750, 1000)]
    write_lines(runs[0] / "progress.jsonl", rows)
    pictures = {picture.over: picture for picture in compare(runs).pictures}
    curve = pictures["agent steps"].curves["a2c"]
    assert (curve.points[0], curve.points[-1]) == (750.0, 1000.0)
    assert curve.band.values[0] == pytest.approx((4 + 15) / 2)
    assert curve.band.values[-1] == pytest.approx((4 + 20) / 2)
    assert curve.band.low is not None and curve.band.low[-1] == pytest.approx(4)
    assert pictures["hours of training"].curves["a2c"].points[-1] == pytest.approx(1.0)


def test_the_command_writes_page_csv_and_json(
    queue: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {kind: tmp_path / "new" / f"x.{kind}" for kind in ("html", "csv", "json")}
    words = [str(queue), "--out", str(files["html"])]
    words += ["--csv", str(files["csv"]), "--json", str(files["json"])]
    assert cli.main(["compare", *words]) == 0
    shown = capsys.readouterr().out
    assert "greedy score" in shown and "sampled score" in shown and str(files["html"]) in shown
    rows = list(csv.DictReader(files["csv"].read_text().splitlines()))
    assert len(rows) == 12
    assert {row["group"] for row in rows} == {"a2c", "ppo"}
    pong = next(row for row in rows if row["run"].endswith("ppo-pong-1"))
    assert (pong["greedy"], pong["sampled"], pong["training"]) == ("4.0", "2.0", "3.0")
    assert float(pong["greedy_human_normalised"]) == pytest.approx(24.7 / 35.3)
    record = json.loads(files["json"].read_text())
    assert record["figures"][0]["over_games"]["a2c"]["IQM"]["low"] is not None
    assert math.isclose(record["figures"][0]["thresholds"][-1], 1.0)


def test_equal_runs_give_equal_files(queue: Path) -> None:
    first, second = (compare_command.as_json(compare([queue])) for _ in range(2))
    assert first == second


class Balanced(HTMLParser):
    """Fails where a tag is not closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_needs_nothing_else_and_names_the_kind_of_score_everywhere(queue: Path) -> None:
    make_run(queue / "runs" / "odd", "<b>&x", "pong", 5)
    finish(queue / "runs" / "odd", 1.0, 1.0)
    page = comparison_page.html(compare([queue]))
    parser = Balanced()
    parser.feed(page)
    assert parser.open == []
    assert not re.search(r'src=|href="(?!#)|url\((?!#)|@import|<script|<link', page)
    assert "<b>&x" not in page and "&lt;b&gt;&amp;x" in page
    headings = re.findall(r"<h3>(.*?)</h3>", page)
    assert len(headings) == 12
    assert all(re.search("greedy|sampled|training", heading) for heading in headings)
    assert "figures per game only: carnival" in page


def test_recipe_files_that_a_folder_names_are_not_run(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    mark, code = tmp_path / "mark", tmp_path / "recipe.py"
    code.write_text(f"open({str(mark)!r}, 'w')")
    record = json.loads((run / "settings.json").read_text())
    record["settings"]["recipe"]["source"] = str(code)
    (run / "settings.json").write_text(json.dumps(record))
    compare([run])
    assert not mark.exists()


def test_a_folder_that_is_no_run_and_no_queue_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "neither a queue nor a run" in refusal(capsys, str(tmp_path))
    assert "neither a queue nor a run" in refusal(capsys, str(tmp_path / "absent"))
    assert "needs a queue or runs" in refusal(capsys)


def test_a_queue_without_a_finished_run_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "queue.json").write_text("{}")
    assert "no finished run" in refusal(capsys, str(tmp_path))


def test_an_unknown_setting_is_refused_with_its_neighbours(
    queue: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    error = refusal(capsys, str(queue), "--by", "learning_rat")
    assert "learning_rat" in error and "learning_rate" in error


def test_groups_without_a_common_game_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [make_run(tmp_path / "1", "a2c", "pong"), make_run(tmp_path / "2", "ppo", "qbert")]
    error = refusal(capsys, *map(str, runs))
    assert "no game in common" in error and "a2c: pong; ppo: qbert" in error


def test_a_page_that_cannot_be_written_is_one_sentence(
    queue: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "Could not write" in refusal(capsys, str(queue), "--out", "/dev/null/x.html")
