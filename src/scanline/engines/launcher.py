"""Launchers: what compiles kernels for a device, holds its memory and runs them.

Takes the kernel sources installed with the package; gives buffers, streams and launches. Knows no
game and no engine: `device.py` says what is launched. Another launcher can be put in the place of
these: it keeps `Launcher`.

Launches, writes and reads of one stream happen in their order. `HostLauncher` runs the same kernel
bodies as loops in this process: for tests, without a device.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from .. import _native
from ..records import Array

Order = Callable[[int], Array]
"""Number of lanes to the order in which they run, a permutation."""


class Launcher(Protocol):
    """One device. Buffers and streams are its own objects."""

    name: str

    def compile(self, cartridge: str) -> None:
        """Makes the kernels of a cartridge type ready; done once for each."""

    def allocate(self, num_bytes: int) -> Any:
        """A buffer of the device, of zeros."""

    def stream(self) -> Any:
        """A queue of launches and copies; several run beside each other."""

    def write(self, stream: Any, buffer: Any, data: Array, offset: int = 0) -> None:
        """Copies an array to the device; it may be changed once this returns."""

    def read(self, stream: Any, buffer: Any, data: Array, offset: int = 0) -> None:
        """Waits for the stream, and copies into an array."""

    def launch(
        self,
        stream: Any,
        kernel: tuple[str, str],
        num_lanes: int,
        buffers: Sequence[Any],
        scalars: Sequence[int],
    ) -> None:
        """Runs a kernel, named by cartridge type and entry point; returns at once."""

    def is_idle(self, stream: Any) -> bool:
        """Whether all that was launched has ended."""


def sources() -> Path:
    """Folder of the kernels' sources, installed beside the compiled module."""
    return Path(_native.__file__).parent / "kernels"


def sources_fingerprint() -> str:
    """Hash of all kernel sources: a compiled kernel belongs to one."""
    digest = hashlib.sha256()
    folder = sources()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        digest.update(str(path.relative_to(folder)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def layout_macros() -> dict[str, int]:
    """Sizes of the structs as this process lays them out; kernels refuse others."""
    game = _native.DeviceGame
    return {
        "SCANLINE_LANE_BYTES": game.LANE_BYTES,
        "SCANLINE_GAME_BYTES": game.GAME_BYTES,
        "SCANLINE_START_BYTES": game.START_BYTES,
    }


class HostLauncher:
    """The host grid: every kernel is a loop over its lanes, in any order."""

    name = "gpu-host"

    def __init__(self, order: Order = np.arange) -> None:
        self._order = order

    def compile(self, cartridge: str) -> None:
        """Nothing: they are part of the compiled module."""

    def allocate(self, num_bytes: int) -> Array:
        # In words, so that buffers are aligned as a device aligns them.
        return np.zeros(-(-num_bytes // 8), np.uint64).view(np.uint8)[:num_bytes]

    def stream(self) -> None:
        return None

    def write(self, stream: None, buffer: Array, data: Array, offset: int = 0) -> None:
        raw = data.reshape(-1).view(np.uint8)
        buffer[offset : offset + raw.size] = raw

    def read(self, stream: None, buffer: Array, data: Array, offset: int = 0) -> None:
        data[...] = buffer[offset : offset + data.nbytes].view(data.dtype).reshape(data.shape)

    def launch(
        self,
        stream: None,
        kernel: tuple[str, str],
        num_lanes: int,
        buffers: Sequence[Array],
        scalars: Sequence[int],
    ) -> None:
        cartridge, name = kernel
        order = self._order(num_lanes).tolist()
        _native.run_on_host(name, cartridge, list(buffers), list(scalars), order)

    def is_idle(self, stream: None) -> bool:
        return True
