"""The native console for comparisons: builds native/tests/console_abi.cpp and wraps it.

Takes ROM bytes and a row of the game table; gives RAM, screen, reward, lives and end after each
frame. Knows nothing of ALE. The library is rebuilt when a source is newer, so that a comparison
never tests an old build. `variant` names another console type, to compare a faster one.
"""

from __future__ import annotations

import ctypes
import pathlib

import native_build
import numpy as np

SOURCE = native_build.NATIVE / "tests" / "console_abi.cpp"


def build(variant: str) -> pathlib.Path:
    """Compiles the library if a source is newer; returns its path."""
    return native_build.build(SOURCE, variant, {"SCANLINE_TEST_CONSOLE": variant})


def load(variant: str = "FastConsole") -> ctypes.CDLL:
    library = ctypes.CDLL(str(build(variant)))
    library.console_create.restype = ctypes.c_void_p
    return library


class NativeConsole:
    """One console with ALE's reset and act, without sticky actions."""

    def __init__(self, library: ctypes.CDLL, rom: bytes, game_index: int):
        handle = library.console_create(rom, len(rom), game_index)
        if not handle:
            raise ValueError(f"a ROM of {len(rom)} bytes has a cartridge type without a policy")
        self._library = library
        self._handle = ctypes.c_void_p(handle)
        self._ram = np.zeros(128, np.uint8)
        self._screen = np.zeros((library.console_screen_height(self._handle), 160), np.uint8)
        self._machine = np.zeros(library.console_machine_bytes(), np.uint8)
        self.default_mode = library.console_default_mode(self._handle)

    def __del__(self) -> None:
        if hasattr(self, "_handle"):
            self._library.console_destroy(self._handle)

    def reset(self, mode: int | None = None, difficulty: int = 0) -> None:
        mode = self.default_mode if mode is None else mode
        self._library.console_reset(self._handle, mode, difficulty)

    def act(self, action: int, action_b: int = 0) -> int:
        return self._library.console_act(self._handle, action, action_b)

    def draw(self, on: bool) -> None:
        self._library.console_draw(self._handle, int(on))

    def lives(self) -> int:
        return self._library.console_lives(self._handle)

    def terminal(self) -> bool:
        return bool(self._library.console_terminal(self._handle))

    def ram(self) -> np.ndarray:
        return self._fill("ram", self._ram)

    def screen(self) -> np.ndarray:
        return self._fill("screen", self._screen)

    def machine(self) -> np.ndarray:
        return self._fill("machine", self._machine)

    def _fill(self, what: str, array: np.ndarray) -> np.ndarray:
        getattr(self._library, f"console_{what}")(
            self._handle, array.ctypes.data_as(ctypes.c_void_p)
        )
        return array
