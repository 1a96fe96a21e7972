"""Names, lists and ROM lookup of scanline.games."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from pathlib import Path

import pytest

from scanline import games

needs_roms = pytest.mark.skipif(
    importlib.util.find_spec("ale_py") is None, reason="ale-py, which brings the ROMs, is missing"
)


@pytest.mark.parametrize(
    "name",
    [
        *("ms_pacman", "MsPacman", "ALE/MsPacman-v5", "MsPacman-v5", "MsPacman-v4", "ms-pacman"),
        *("MsPacmanNoFrameskip-v4", "MsPacmanDeterministic-v0", "MsPacman-ramNoFrameskip-v4"),
    ],
)
def test_every_spelling_finds_the_same_game(name: str) -> None:
    assert games.find(name).id == "ms_pacman"


def test_every_game_is_found_by_id_title_and_gymnasium_id() -> None:
    for game in games.GAMES:
        assert games.find(game.id) is game
        assert games.find(game.title) is game
        assert games.find(game.gymnasium_id) is game
        assert games.GAMES[game.index] is game


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(ValueError, match="'pnog'; did you mean pong"):
        games.find("pnog")
    with pytest.raises(ValueError, match="scanline list games"):
        games.find("zzzzzz")


def test_lists_have_their_published_sizes_and_known_members() -> None:
    assert len(games.GAMES) == 104
    ids = {game.id for game in games.GAMES}
    for name, members in games.LISTS.items():
        assert len(set(members)) == len(members) == int(name.removeprefix("atari"))
        assert set(members) <= ids
        assert list(members) == sorted(members)


def test_a_missing_rom_is_named_with_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="the ROM of pong; put it there"):
        games.rom_path("pong", tmp_path)
    with pytest.raises(FileNotFoundError, match="does not exist"):
        games.rom_path("pong", tmp_path / "nowhere")


def test_no_ale_py_and_no_folder_is_named_with_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(games.ROM_FOLDER_VARIABLE, raising=False)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(FileNotFoundError, match="pip install ale-py"):
        games.rom_path("pong")


@needs_roms
def test_ale_py_has_every_rom_and_is_not_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(games.ROM_FOLDER_VARIABLE, raising=False)
    loaded_before = "ale_py" in sys.modules
    for game in games.GAMES:
        assert games.rom_path(game).name == f"{game.id}.bin"
    assert ("ale_py" in sys.modules) == loaded_before


@needs_roms
def test_a_rom_in_a_folder_is_known_by_its_md5_not_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(games.ROM_FOLDER_VARIABLE, raising=False)
    renamed = tmp_path / "some" / "Video Olympics.a26"
    renamed.parent.mkdir()
    shutil.copy(games.rom_path("pong"), renamed)
    (tmp_path / "pong.bin").write_bytes(b"not the ROM")
    assert games.rom_path("pong", tmp_path) == renamed
    monkeypatch.setenv(games.ROM_FOLDER_VARIABLE, str(tmp_path))
    assert games.rom_path("pong") == renamed


@needs_roms
def test_a_rom_is_recognised_by_its_bytes() -> None:
    pong = games.find("pong")
    assert games.recognise(games.rom_path(pong).read_bytes()) is pong
    assert games.recognise(b"") is None
