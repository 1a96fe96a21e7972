"""The advice of a picture names the part that limits and an option to change."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from scanline.runs.picture import Load, View, advice, picture, score_chart, shares


def load(**changes: object) -> Load:
    split = {"environment": 1.0, "acting": 1.0, "learning": 1.0, "other": 1.0, "evaluation": 99.0}
    parts = {key: changes.pop(key) for key in list(changes) if key in split}
    return Load(split_seconds={**split, **parts}, **{"num_cores": 2, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ({"environment": 9.0}, "The environments limit (75% of the time); all cores are at work"),
        ({"environment": 9.0, "busy_cores": 1.1}, "1.1 of 2 cores are busy: try --num-threads 2"),
        ({"environment": 9.0, "busy_cores": 1.9}, "all cores are at work"),
        ({"acting": 9.0}, "Acting limits (75% of the time); try more --num-envs"),
        ({"learning": 9.0}, "Learning limits"),
        ({"other": 9.0}, "Bookkeeping limits"),
        ({"acting": 1.5}, "Balanced: acting 33%"),
        ({"memory_bytes": 95, "total_memory_bytes": 100}, "Memory limits: 95% is in use"),
        ({"memory_bytes": 50, "total_memory_bytes": 100}, "Balanced"),
    ],
)
def test_each_limit_has_its_line(case: dict[str, object], words: str) -> None:
    text = advice(load(**case))
    assert words in text
    assert text.endswith(".")
    assert "\n" not in text


def test_nothing_measured_is_said() -> None:
    assert advice(Load(split_seconds={}, num_cores=2)) == "Nothing measured yet."


def test_shares_leave_evaluation_out() -> None:
    assert shares(load().split_seconds) == dict.fromkeys(
        ("environment", "acting", "learning", "other"), 0.25
    )


@pytest.mark.parametrize("num", [1, 3, 40, 5_000])
@pytest.mark.parametrize("width", [15, 40, 77])
def test_a_score_chart_fills_its_width_from_the_lowest_to_the_highest(num: int, width: int) -> None:
    rows = score_chart([float(k) for k in range(num)], width, 5)
    assert [len(row) for row in rows] == [width] * 5
    assert rows[0].startswith("score ")
    is_rising = num > 1 and width > 15
    assert rows[0].endswith("█") == is_rising
    assert rows[4][14] == "▁"


@pytest.mark.parametrize("width", [80, 160])
def test_the_first_picture_fills_its_width_and_advises_nothing(width: int) -> None:
    view = View(
        title="a2c on pong", agent_steps=0, raw_frames=0, updates=0, episodes=0,
        steps_per_second=0, frames_per_second=0, updates_per_second=0, score=None, best=None,
        window=0, training_seconds=0, remaining_seconds=100, done=0.0, load=load(other=99.0),
    )  # fmt: skip
    file = io.StringIO()
    Console(file=file, width=width, color_system=None).print(picture(view, width))
    lines = file.getvalue().splitlines()
    assert {len(line) for line in lines} == {width}
    assert len(lines[1].rstrip("│ ")) >= width - 5  # numbers reach the edge
    assert "Nothing measured yet." in file.getvalue()
    assert "last 0 games" not in file.getvalue()
