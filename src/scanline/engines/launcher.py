"""Launchers: what compiles kernels for a device, holds its memory and runs them.

Takes the kernel sources installed with the package; gives buffers, streams and launches. Knows no
game and no engine: `device.py` says what is launched. Another launcher can be put in the place of
ours: it keeps `Launcher`. Those whose buffers are PyTorch's tensors share `TensorMemory`.

Launches, writes and reads of one stream happen in their order, and nothing waits for them but
`wait`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch

from .. import _native
from ..devices import Device
from ..errors import RefusedError
from ..records import Array, Frames


class Launcher(Protocol):
    """One device. Buffers, streams and events are its own objects."""

    name: str
    memory: Device
    """Kernels write a caller's frames that are there; the host where they write none."""

    def compile(self, cartridge: str) -> None:
        """Makes the kernels of a cartridge type ready; done once for each."""

    def allocate(self, num_bytes: int) -> Any:
        """A buffer of the device, of zeros."""

    def view(self, frames: Frames) -> Any | None:
        """A caller's frames as a buffer; None where kernels cannot write them."""

    def staging(self, num_bytes: int) -> Array:
        """Host memory, uint8, that `read` fills while the caller goes on."""

    def stream(self) -> Any:
        """A queue of launches and copies; several run beside each other."""

    def write(self, stream: Any, buffer: Any, data: Array, offset: int = 0) -> None:
        """Copies an array to the device; it may be changed once this returns.

        What follows on the stream also comes after all that PyTorch was given before: kernels may
        overwrite what a learner has just read.
        """

    def read(self, stream: Any, buffer: Any, data: Frames, offset: int = 0) -> None:
        """Copies into a contiguous array, or a tensor of `memory`, by the next event."""

    def launch(
        self,
        stream: Any,
        kernel: tuple[str, str],
        num_lanes: int,
        buffers: Sequence[Any],
        scalars: Sequence[int],
    ) -> None:
        """Runs a kernel, named by cartridge type and entry point; returns at once."""

    def event(self, stream: Any) -> Any:
        """All that the stream was given so far."""

    def is_done(self, event: Any) -> bool:
        """Whether it has happened."""

    def wait(self, event: Any) -> None:
        """Until it has happened."""


class TensorMemory:
    """The memory of a launcher whose buffers are flat uint8 tensors of one device of PyTorch's."""

    def __init__(self, device: Device) -> None:
        self.memory = device

    def allocate(self, num_bytes: int) -> torch.Tensor:
        try:
            return self.memory.zeros((max(num_bytes, 1),), torch.uint8)
        except torch.OutOfMemoryError as error:
            raise RefusedError(
                f"The device {self.memory.name!r} has no memory for {num_bytes:,} bytes more; "
                "use fewer environments."
            ) from error

    def view(self, frames: Frames) -> torch.Tensor | None:
        if isinstance(frames, np.ndarray):
            if not (self.memory.is_host and frames.flags.c_contiguous and frames.flags.writeable):
                return None
            frames = torch.from_numpy(frames)
        is_here = Device.of(frames) == self.memory and frames.is_contiguous()
        return frames.view(-1) if is_here and frames.dtype == torch.uint8 else None

    def staging(self, num_bytes: int) -> Array:
        array: Array = self.memory.staging((num_bytes,), torch.uint8).numpy()
        return array

    def write(self, stream: Any, buffer: torch.Tensor, data: Array, offset: int = 0) -> None:
        raw = torch.from_numpy(np.array(data).reshape(-1).view(np.uint8))  # of its own: writable
        self.memory.upload_into(buffer[offset : offset + raw.numel()], raw)

    def read(self, stream: Any, buffer: torch.Tensor, data: Frames, offset: int = 0) -> None:
        raw = torch.from_numpy(data.view(np.uint8)) if isinstance(data, np.ndarray) else data
        self.memory.download_into(raw.view(-1), buffer[offset : offset + raw.nbytes])


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
