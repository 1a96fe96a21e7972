"""Every game a little, next to ALE; run.py does the same at length."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

pytest.importorskip("ale_py", reason="ale-py is the oracle and brings the ROMs")
if shutil.which(os.environ.get("CXX", "g++")) is None:
    pytest.skip("the comparison builds a library and needs a C++ compiler", allow_module_level=True)

import record
import side_by_side
import suites
from side_by_side import Case

from scanline import games


@pytest.mark.parametrize("game", [game.id for game in games.GAMES])
def test_play_with_sticky_actions_and_a_reset_equals_ale(game: str) -> None:
    case = Case(game=game, frames=120, seed=7, sticky=0.25, reset_every_frames=90)
    assert side_by_side.run(case, "product").difference == ""


@pytest.mark.parametrize("rom", suites.TWO_PLAYER_ROMS)
def test_a_rom_for_two_players_equals_ale(rom: str) -> None:
    case = Case(game=suites.LENDER_OF_RULES, rom=rom, frames=200, seed=7, reset_every_frames=120)
    assert side_by_side.run(case, "fast").difference == ""


def test_an_interrupted_run_goes_on_and_another_build_begins_anew(tmp_path: Path) -> None:
    case, path = Case(game="pong", frames=5), tmp_path / "outcomes.jsonl"
    outcome = side_by_side.run(case, "product")
    record.Record(path, "one build").add("play", outcome)
    with path.open("a") as file:
        file.write('{"key": "cut o')
    again = record.Record(path, "one build")
    assert again.find("play", case) == outcome
    assert again.find("sticky", case) is None
    assert again.find("play", case.with_frames(6)) is None
    assert record.Record(path, "another build").find("play", case) is None


def test_a_paddle_follows_its_strength() -> None:
    case = Case(game="breakout", frames=400, seed=3, strengths=True)
    assert side_by_side.run(case, "fast").difference == ""


def test_a_mode_and_a_difficulty_are_chosen_as_ale_does() -> None:
    pairs = ((2, 3), (1, 0))
    case = Case(game="adventure", frames=200, seed=3, variations=pairs, reset_every_frames=100)
    assert side_by_side.run(case, "fast").difference == ""


def test_frames_without_a_picture_change_nothing_but_the_picture() -> None:
    case = Case(game="pong", frames=400, seed=3, unseen=True)
    assert side_by_side.run(case, "fast").difference == ""


def test_a_snapshot_brings_back_the_future() -> None:
    ours = side_by_side.load_ours(Case(game="yars_revenge", seed=5, sticky=0.5), "fast")

    def play() -> list[bytes]:
        pictures = []
        for frame in range(120):
            ours.act(frame // 7 % 18)
            pictures.append(ours.ram().tobytes() + ours.screen().tobytes())
        return pictures

    ours.save()
    first = play()
    ours.reset()
    ours.restore()
    assert play() == first


def test_a_difference_is_found_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(side_by_side.environment_library.Environment, "act", lambda *_: 5)
    outcome = side_by_side.run(Case(game="pong", frames=10), "fast")
    assert outcome.difference.startswith("frame 0, as loaded, action")
    assert "reward 5, ALE 0" in outcome.difference
