"""Score experiments: the papers' numbers, human-normalised; claims as they say; runs of a queue."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from scanline import training
from scanline.queue import result
from scanline.queue.human_scores import SCORES
from scanline_lab.experiments import (
    EXPERIMENTS,
    accelerated_scores,
    published_scores,
    reproduce,
    score_studies,
)
from scanline_lab.experiments.claims import judge
from scanline_lab.experiments.over_queue import run_of
from scanline_lab.experiments.scores import hours, percent

STUDIES = [e.name for e in (*score_studies.EXPERIMENTS, *accelerated_scores.EXPERIMENTS)]


def finished(name: str, score: float = 10.0, scale: Any = "desk") -> dict[str, Any]:
    """Results of all runs of a study with one score; gradients shrink as batches grow."""
    return {
        cell.name: {
            **{"score": score, "best_pause": None, "agent_steps": 1_000_000, "minutes": 5.0},
            "evaluation_sampled": {"mean": score},
            "curve": [[100, 60.0, -20.0], [1_000, 120.0, score]],
            "metrics": {
                "norms/gradient/head.stream.0": [[1, 1 / cell.settings.get("batch_size", 1)]],
                "norms/step/head.stream.0": [[1, float(cell.settings.get("batch_size", 1))]],
            },
        }
        for cell in EXPERIMENTS[name].cells(scale)
    }


def test_two_papers_print_the_same_scores_of_ga3c() -> None:
    cited, own = published_scores.PAAC["ga3c"], published_scores.GA3C["ga3c"]
    assert cited == own
    assert len(published_scores.PAAC["nips"]) == 12 and len(published_scores.FAST_DQN["dqn"]) == 49
    for table in (published_scores.PAAC, published_scores.GA3C, published_scores.FAST_DQN):
        assert all(game in SCORES for column in table.values() for game in column)


def test_a_human_has_100_percent_and_random_play_0() -> None:
    assert percent("pong", 14.6) == pytest.approx(100) and percent("pong", -20.7) == pytest.approx(
        0
    )
    assert percent("pong", None) is None and percent("scanline.Catch-v0", 1.0) is None


@pytest.mark.parametrize("name", STUDIES)
def test_every_run_can_be_a_cell_of_a_queue_and_desk_fits_a_night(name: str) -> None:
    experiment = EXPERIMENTS[name]
    for scale in ("smoke", "desk", "paper"):
        kinds = {cell.name.partition("-")[2]: cell for cell in experiment.cells(scale)}
        for cell in kinds.values():
            assert run_of(cell.settings).plan().recipe.name == cell.settings["recipe"]
    assert hours(experiment.cells("desk")) < 10.0 < hours(experiment.cells("paper"))
    assert "paper about" in experiment.notes[-1]


@pytest.mark.parametrize("name", STUDIES)
def test_tables_and_picture_are_functions_of_results(name: str, tmp_path: Path) -> None:
    experiment, results = EXPERIMENTS[name], finished(name)
    scores, games, *_ = experiment.tables("desk", results)
    assert {row[4] for row in scores.rows} == {10.0} and len(games.rows) >= 1
    assert all(row[6] is None for row in experiment.tables("smoke", results)[0].rows)
    assert experiment.plot is not None
    experiment.plot("desk", {key: results[key] for key in list(results)[:2]}, tmp_path / "p.png")
    assert (tmp_path / "p.png").stat().st_size > 1_000


def verdicts(name: str, results: dict[str, Any], scale: str = "paper") -> list[str]:
    return [judged.verdict for judged in judge(EXPERIMENTS[name].claims, scale, results)]


@pytest.mark.parametrize("name", STUDIES)
def test_claims_need_results_and_scores_of_papers_the_papers_scale(name: str) -> None:
    assert set(verdicts(name, {})) == {"not testable at this scale"}
    if name in ("paac-scores", "ga3c-scores", "fast-dqn-scores", "accelerated-batches"):
        assert set(verdicts(name, finished(name), "desk")) == {"not testable at this scale"}


def test_claims_on_other_scores_count_games() -> None:
    high, low = (finished("paac-scores", score, "paper") for score in (1e6, 0.0))
    assert verdicts("paac-scores", high) == ["confirmed"] * 3
    assert verdicts("paac-scores", low) == ["contradicted"] * 3
    assert (
        verdicts("fast-dqn-scores", finished("fast-dqn-scores", 1e6, "paper")) == ["confirmed"] * 3
    )


def test_claims_on_minutes_rates_and_norms_are_decided_at_the_desk() -> None:
    minutes = finished("accelerated-minutes")
    assert verdicts("accelerated-minutes", minutes, "desk") == ["confirmed"]
    for each in minutes.values():
        each["curve"][1][1] = 700.0
    assert verdicts("accelerated-minutes", minutes, "desk") == ["contradicted"]
    assert verdicts("ga3c-rates", finished("ga3c-rates", -20.0), "desk") == ["contradicted"]
    assert verdicts("accelerated-norms", finished("accelerated-norms"), "desk") == ["confirmed"] * 3


def test_a_smoke_run_of_a_study_is_trained_evaluated_and_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a process of a queue does it, but in this one."""

    def carry_out(cells: Any, path: Path) -> dict[str, Path]:
        for cell in cells:
            run = run_of(cell.settings)
            plan = run.plan(live=False)
            done = training.carry_out(plan, out=path / cell.name, resume=False)
            result.write(run, plan, done)
        return {cell.name: path / cell.name for cell in cells}

    monkeypatch.setattr("scanline_lab.experiments.over_queue.carry_out", carry_out)
    outcome = reproduce(EXPERIMENTS["paac-scores"], "smoke", tmp_path, say=lambda sentence: None)
    assert set(outcome.results) == {"pong-nips.0", "pong-nature.0"}
    [first, *_] = outcome.tables
    assert [row[1] for row in first.rows] == ["nature", "nips"]
    assert all(-21 <= row[4] <= 21 and row[5] < 50 for row in first.rows)
