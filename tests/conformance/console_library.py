"""The native console for comparisons: builds native/tests/console_abi.cpp and wraps it.

Takes ROM bytes; gives RAM and screens after each emulated frame. Knows nothing of ALE. The library is
rebuilt when a header is newer than it, so a comparison never tests an old build.
"""

import ctypes
import os
import pathlib
import subprocess
import tempfile

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCE = ROOT / "native" / "tests" / "console_abi.cpp"
RESET_ACTION = 40


def build() -> pathlib.Path:
    """Compiles the library if a source is newer; returns its path."""
    folder = pathlib.Path(os.environ.get("SCANLINE_TEST_BUILD", ROOT / "build" / "conformance"))
    library = folder / "libconsole_abi.so"
    newest = max(path.stat().st_mtime for path in [SOURCE, *(ROOT / "native" / "core").glob("*.h")])
    if library.exists() and library.stat().st_mtime >= newest:
        return library
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        fresh = pathlib.Path(scratch) / library.name
        flags = ["-std=c++17", "-O2", "-ffp-contract=off", "-Wall", "-Wextra", "-shared", "-fPIC"]
        subprocess.run([os.environ.get("CXX", "g++"), *flags, str(SOURCE), "-o", fresh], check=True)
        fresh.replace(library)
    return library


def load() -> ctypes.CDLL:
    library = ctypes.CDLL(str(build()))
    library.console_create.restype = ctypes.c_void_p
    for name in ("destroy", "system_reset", "emulate", "press_select", "ram", "screen_height", "screen", "machine"):
        getattr(library, f"console_{name}").argtypes = None
    return library


class NativeConsole:
    """One console driven frame by frame, with ALE's input rules."""

    def __init__(self, library: ctypes.CDLL, rom: bytes):
        handle = library.console_create(rom, len(rom))
        if not handle:
            raise ValueError(f"a ROM of {len(rom)} bytes has a cartridge type without an implementation")
        self._library = library
        self._handle = ctypes.c_void_p(handle)
        self._ram = np.zeros(128, np.uint8)
        self._screen = np.zeros((library.console_screen_height(self._handle), 160), np.uint8)

    def __del__(self) -> None:
        if hasattr(self, "_handle"):
            self._library.console_destroy(self._handle)

    def system_reset(self) -> None:
        self._library.console_system_reset(self._handle)

    def emulate(self, action: int, num_frames: int = 1, *, action_b: int = 0, difficulty: int = 0) -> None:
        self._library.console_emulate(self._handle, action, action_b, num_frames, difficulty)

    def press_select(self, num_frames: int, *, difficulty: int = 0) -> None:
        self._library.console_press_select(self._handle, num_frames, difficulty)

    def ram(self) -> np.ndarray:
        self._library.console_ram(self._handle, self._ram.ctypes.data_as(ctypes.c_void_p))
        return self._ram

    def screen(self) -> np.ndarray:
        self._library.console_screen(self._handle, self._screen.ctypes.data_as(ctypes.c_void_p))
        return self._screen

    def machine(self) -> bytes:
        buffer = ctypes.create_string_buffer(self._library.console_machine_bytes())
        self._library.console_machine(self._handle, buffer)
        return buffer.raw
