"""AleEnvironment for comparisons: wraps native/tests/environment_abi.cpp.

Takes a ROM, a row of the game table and ALE's settings; offers ALE's verbs. Knows nothing of ALE
itself. `console` names the C++ type of the console, so that a faster one can be compared as well.
"""

from __future__ import annotations

import ctypes
import functools
from dataclasses import dataclass

import native_build
import numpy as np

SOURCE = native_build.NATIVE / "tests" / "environment_abi.cpp"
CONSOLES = {"plain": "Console", "masks": "MaskConsole", "fast": "FastConsole"}


class Results(ctypes.Structure):
    """What a frame meant, as the native side lays it out."""

    _fields_ = [
        (name, ctypes.c_int32)
        for name in (
            "lives",
            "game_over",
            "truncated",
            "frame_number",
            "episode_frame_number",
            "mode_failed",
        )
    ]


@dataclass(frozen=True, kw_only=True)
class Settings:
    """ALE's settings of these names."""

    random_seed: int = 0
    """Seed of the sticky actions."""
    repeat_action_probability: float = 0.0
    """Chance, on every frame, that the previous action is repeated."""
    max_num_frames_per_episode: int = 0
    """Frames after which an episode is truncated; 0: never."""


@functools.cache
def load(console: str = "plain") -> ctypes.CDLL:
    macros = {"SCANLINE_TEST_CONSOLE": CONSOLES[console]}
    library = ctypes.CDLL(str(native_build.build(SOURCE, f"environment_{console}", macros)))
    library.environment_create.restype = ctypes.c_void_p
    library.environment_create.argtypes = (
        [ctypes.c_char_p] + [ctypes.c_uint32] * 3 + [ctypes.c_float, ctypes.c_int32]
    )
    library.environment_act.argtypes = (
        [ctypes.c_void_p] + [ctypes.c_uint32] * 2 + [ctypes.c_float] * 2 + [ctypes.c_int32]
    )
    return library


class Environment:
    """One environment; pictures of unseen frames are drawn by show_pictures()."""

    def __init__(self, library: ctypes.CDLL, rom: bytes, game_index: int, settings: Settings):
        handle = library.environment_create(
            rom,
            len(rom),
            game_index,
            settings.random_seed,
            settings.repeat_action_probability,
            settings.max_num_frames_per_episode,
        )
        assert handle, f"{len(rom)} bytes are a cartridge that the console cannot run"
        self._library = library
        self._handle = ctypes.c_void_p(handle)
        self._results = Results()
        self._ram = np.zeros(128, np.uint8)
        self._screen = np.zeros((library.environment_screen_height(self._handle), 160), np.uint8)

    def __del__(self) -> None:
        if hasattr(self, "_handle"):
            self._library.environment_destroy(self._handle)

    def reset(self, seen: bool = True) -> None:
        self._library.environment_reset(self._handle, int(seen))

    def act(self, action: int, strength: float = 1.0, seen: bool = True) -> int:
        reward: int = self._library.environment_act(
            self._handle, action, 0, strength, 1.0, int(seen)
        )
        return reward

    def set_mode(self, mode: int) -> None:
        self._library.environment_set_mode(self._handle, mode)

    def set_difficulty(self, difficulty: int) -> None:
        self._library.environment_set_difficulty(self._handle, difficulty)

    def show_pictures(self) -> None:
        self._library.environment_show_pictures(self._handle)

    def save(self) -> None:
        self._library.environment_save(self._handle)

    def restore(self) -> None:
        self._library.environment_restore(self._handle)

    def results(self) -> Results:
        """The same object at every call."""
        self._library.environment_results(self._handle, ctypes.byref(self._results))
        return self._results

    def ram(self) -> np.ndarray:
        """The same array at every call; so are the pictures."""
        return self._fill("ram", self._ram)

    def screen(self) -> np.ndarray:
        return self._fill("screen", self._screen)

    def previous_screen(self) -> np.ndarray:
        return self._fill("previous_screen", self._screen)

    def _fill(self, what: str, array: np.ndarray) -> np.ndarray:
        getattr(self._library, f"environment_{what}")(
            self._handle, array.ctypes.data_as(ctypes.c_void_p)
        )
        return array
