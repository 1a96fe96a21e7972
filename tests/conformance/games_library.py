"""native/games/ for comparisons: the table's facts, and its steps fed with memory from ALE.

Wraps games_probe.cpp. Knows nothing of ALE. The cartridge's own memory is not offered, so klax,
which keeps its score there, needs the whole environment to be compared.
"""

from __future__ import annotations

import ctypes
import functools
from dataclasses import dataclass
from pathlib import Path

import native_build
import numpy as np

from scanline import games

SOURCE = Path(__file__).parent / "games_probe.cpp"
NUM_ACTIONS = 18


class GameState(ctypes.Structure):
    """native/games/game_state.h."""

    _fields_ = [
        *((name, ctypes.c_int32) for name in ("reward", "score", "lives", "held_lives")),
        ("extra", ctypes.c_int32 * 5),
        *((name, ctypes.c_uint8) for name in ("terminal", "latched", "previous", "end_masked")),
    ]


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What the table says of a game besides its score."""

    name: str
    minimal_actions: list[int]
    legal_actions: list[int]
    modes: list[int]
    difficulties: list[int]


@functools.cache
def load() -> ctypes.CDLL:
    library = ctypes.CDLL(str(native_build.build(SOURCE, "games")))
    library.name.restype = ctypes.c_char_p
    assert library.state_bytes() == ctypes.sizeof(GameState)
    return library


def members(mask: int) -> list[int]:
    return [i for i in range(NUM_ACTIONS) if mask >> i & 1]


def facts(name: str) -> Facts:
    library, index = load(), games.find(name).index
    return Facts(
        name=library.name(index).decode(),
        minimal_actions=members(library.minimal_actions(index)),
        legal_actions=members(library.legal_actions(index)),
        modes=[library.game_mode(index, i) for i in range(library.num_game_modes(index))],
        difficulties=members(library.difficulties(index)),
    )


class Rules:
    """One game's rules and what they remember."""

    def __init__(self, name: str):
        self._library, self._index = load(), games.find(name).index
        self.state = GameState()
        self.reset()

    def reset(self) -> None:
        self._library.reset_state(self._index, ctypes.byref(self.state))

    def step(self, ram: np.ndarray) -> None:
        pointer = ram.ctypes.data_as(ctypes.c_void_p)
        self._library.step_state(self._index, ctypes.byref(self.state), pointer)

    def result(self) -> tuple[int, int, bool]:
        """Reward, lives and end of the last step."""
        return self.state.reward, self.state.lives, bool(self.state.terminal)
