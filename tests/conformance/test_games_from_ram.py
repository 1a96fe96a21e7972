"""The game table against ALE without our console: its facts, and its steps fed with ALE's RAM.

Random play seldom ends a game, so bytes that the rules read are overwritten as well: ALE's RAM
can be set, and ALE judges the frame that follows by its own rules.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

ale_py = pytest.importorskip("ale_py", reason="ale-py is the oracle and brings the ROMs")
if shutil.which(os.environ.get("CXX", "g++")) is None:
    pytest.skip("the comparison builds a library and needs a C++ compiler", allow_module_level=True)

import games_library  # noqa: E402
import native_build  # noqa: E402
import side_by_side  # noqa: E402

from scanline import games  # noqa: E402

ALL = [game.id for game in games.GAMES]
FROM_RAM = [name for name in ALL if name != "klax"]  # its score lies in the cartridge
TABLE = (native_build.NATIVE / "games" / "table.h").read_text()

# Bytes that end a game; each of these games needs more than one byte, or ends seldom.
ENDS: dict[str, list[dict[int, int]]] = {
    "adventure": [{0xE0: 2}, {0xB9: 0x12}],
    "backgammon": [
        dict.fromkeys(range(0x80, 0x9C), 0) | {0x80: 0xF1, 0x81: 15},
        dict.fromkeys(range(0x80, 0x9C), 0) | {0x8E: 15, 0x81: 0xF1},
        dict.fromkeys(range(0x80, 0x9C), 0) | {0x8E: 15, 0x81: 0xF1, 0x82: 0x80, 0x83: 0x80},
    ],
    "casino": [{0x95: 0, 0x8C: 0}, {0x9E: 1, 0xD3: 0x80}, {0xD4: 3, 0x9E: 0xAA, 0x95: 5}],
    "darkchambers": [{0xCA: 0}, {0xD5: 0}],
    "demon_attack": [{0xF2: 0, 0xF1: 0xBD}],
    "et": [{0xE5: 0xFF, 0x80: 8}],
    "keystone_kapers": [{0x96: 0, 0x88: 0}],
    "lost_luggage": [{0xCA: 0, 0xC8: 0x0A, 0xA5: 0, 0xA9: 0}],
    "othello": [{0xC0: 0}],
    "pitfall2": [{0xC9: 0, 0xC8: 0x90, 0xC7: 0x19}],
    "pooyan": [{0x96: 0, 0x98: 5}],
    "robotank": [{0xA8: 0, 0xB4: 0xFF}],
    "solaris": [{0xD9: 0}],
    "superman": [{0x80: 0xAC, 0x81: 0xF2, 0x9F: 0x40}],
    "tennis": [{0xC7: 6, 0xC8: 0}, {0xC7: 7, 0xC8: 6}, {0xC8: 6, 0xC7: 4}],
    "tic_tac_toe_3d": [{0xFE: 0x10, 0xFF: 0xF3}, dict.fromkeys(range(0x9A, 0xDA), 1)],
    "venture": [{0xC6: 0, 0xCD: 0xFF, 0xBF: 0x80}],
    "video_checkers": [
        dict.fromkeys(range(0x80, 0xA3), 0),
        dict.fromkeys(range(0x80, 0xA3), 0) | {0x81: 0xA0},
    ],
    "video_chess": [{0xE1: 0x82, 0xEE: 0}, {0xE1: 0x82, 0xEE: 1}],
    "video_cube": [{0xA0 + i: i // 9 for i in range(54)}],
    "wizard_of_wor": [{0x8D: 0, 0xF4: 0xF8}],
    "word_zapper": [{0xDE: 0, 0xCF: 1}, {0xDC: 0xFF, 0xCF: 1}],
}


def interesting_bytes(name: str) -> tuple[list[int], list[int]]:
    """Addresses and values that a game's rules name."""
    start = TABLE.index(f"G::{name})")
    text = TABLE[start : TABLE.find("(G::", start + 1)]
    special = native_build.NATIVE / "games" / "special" / f"{name}.h"
    text += special.read_text() if special.exists() else ""
    values = sorted({int(digits, 16) for digits in re.findall(r"0x([0-9A-F]{2})\b", text)})
    return [value for value in values if value >= 0x80], values


class Watched:
    """ALE and our rules, which see each frame's RAM from the end of a reset on."""

    def __init__(self, name: str, seed: int):
        ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
        self.ale = side_by_side.load_ale(side_by_side.Case(game=name, seed=seed))
        self.rules = games_library.Rules(name)
        self.rng = np.random.default_rng(seed)
        self.legal = [action.value for action in self.ale.getLegalActionSet()]
        self.watch()

    def watch(self) -> None:
        """Sees the last frame of the reset twice: what came before it is not for us to see."""
        self.rules.reset()
        self.rules.step(self.ale.getRAM())
        self.rules.step(self.ale.getRAM())

    def reset(self) -> None:
        self.ale.reset_game()
        self.watch()

    def act(self) -> None:
        reward = self.ale.act(int(self.rng.choice(self.legal)))
        self.rules.step(self.ale.getRAM())
        expected = (reward, self.ale.lives(), self.ale.game_over(with_truncation=False))
        assert self.rules.result() == expected

    def overwrite(self, values: dict[int, int]) -> None:
        for address, value in values.items():
            self.ale.setRAM(address & 0x7F, value)


@pytest.mark.parametrize("name", ALL)
def test_the_table_offers_what_ale_offers(name: str) -> None:
    ale = side_by_side.load_ale(side_by_side.Case(game=name))
    facts = games_library.facts(name)
    assert facts.name == name
    assert facts.minimal_actions == [action.value for action in ale.getMinimalActionSet()]
    assert facts.legal_actions == [action.value for action in ale.getLegalActionSet()]
    assert facts.modes == ale.getAvailableModes()
    assert facts.difficulties == ale.getAvailableDifficulties()


@pytest.mark.parametrize("name", FROM_RAM)
def test_rules_equal_ales_also_for_memory_that_play_does_not_reach(name: str) -> None:
    watched = Watched(name, seed=11)
    addresses, values = interesting_bytes(name)
    for _ in range(300):
        if watched.ale.game_over():
            watched.reset()
        if watched.rng.random() < 0.2:
            watched.overwrite({int(watched.rng.choice(addresses)): int(watched.rng.choice(values))})
        watched.act()


@pytest.mark.parametrize("name", sorted(ENDS))
def test_every_way_to_end_a_game_ends_it(name: str) -> None:
    for values in ENDS[name]:
        watched = Watched(name, seed=12)
        for _ in range(200):
            watched.overwrite(values)
            watched.act()
            if watched.ale.game_over():
                break
        assert watched.rules.state.terminal, f"{values} did not end the game"


def test_the_table_and_the_python_list_have_the_same_order() -> None:
    assert [games_library.facts(name).name for name in ALL] == ALL


def test_no_rom_is_part_of_the_repository() -> None:
    assert not list(Path(native_build.ROOT, "tests").rglob("*.bin"))
