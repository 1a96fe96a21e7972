"""Engine `cuda`: whole agent steps on an NVIDIA GPU, by kernels compiled at run time.

Takes the settings of every engine; see device.py for what it plays. Needs the extra `cuda` (NVRTC
by cuda-core), a driver, and PyTorch's CUDA build, whose allocator holds the memory and whose
streams run the kernels, so that a learner reads observations where they were written.

Kernels are compiled once per cartridge type and architecture, and kept in the user's cache folder.
`compiled` needs no GPU and no driver.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from .. import files
from ..devices import Device, resolved
from ..errors import MissingPackageError, RefusedError
from ..records import Array, Frames
from .device import DeviceEngine, check_settings
from .interface import Engine, EngineSettings
from .launcher import TensorMemory, layout_macros, sources, sources_fingerprint

THREADS_PER_BLOCK = 32
"""One warp: a block waits for its slowest console, and registers allow few warps anyway."""
_OLDEST = (7, 5)
"""Compute capability below which nothing is compiled or tested."""


class CudaLauncher(TensorMemory):
    """One NVIDIA GPU: modules by cartridge type, a stream of PyTorch's per group."""

    name = "cuda"

    def __init__(self, device: str = "cuda:0") -> None:
        self._core = _cuda_core()
        self._architecture = _architecture(device)
        super().__init__(Device(resolved(device)))
        self._kernels: dict[tuple[str, str], Any] = {}

    def compile(self, cartridge: str) -> None:
        code = cached_code(cartridge, self._architecture)
        with torch.cuda.device(self.memory.pytorch):
            torch.cuda.current_stream()  # PyTorch's context is the one that modules are loaded into
            module = self._core.ObjectCode.from_cubin(code)
            for name in ("scanline_play", "scanline_observe", "scanline_restart"):
                self._kernels[cartridge, name] = module.get_kernel(name)

    def stream(self) -> Any:
        return torch.cuda.Stream(self.memory.pytorch)  # type: ignore[no-untyped-call]

    def write(self, stream: Any, buffer: torch.Tensor, data: Array, offset: int = 0) -> None:
        stream.wait_stream(torch.cuda.current_stream(self.memory.pytorch))
        with torch.cuda.stream(stream):
            # From pageable memory the driver has read all of it when the call returns.
            super().write(stream, buffer, data, offset)

    def read(self, stream: Any, buffer: torch.Tensor, data: Frames, offset: int = 0) -> None:
        with torch.cuda.stream(stream):
            super().read(stream, buffer, data, offset)

    def launch(
        self,
        stream: Any,
        kernel: tuple[str, str],
        num_lanes: int,
        buffers: Sequence[torch.Tensor],
        scalars: Sequence[int],
    ) -> None:
        config = self._core.LaunchConfig(
            grid=-(-num_lanes // THREADS_PER_BLOCK), block=THREADS_PER_BLOCK
        )
        addresses = [buffer.data_ptr() for buffer in buffers]
        with torch.cuda.device(self.memory.pytorch):
            queue = self._core.Stream.from_handle(stream.cuda_stream)
            self._core.launch(
                queue, config, self._kernels[kernel], *addresses, *map(np.uint32, scalars)
            )

    def event(self, stream: Any) -> Any:
        return stream.record_event()

    def is_done(self, event: Any) -> bool:
        return bool(event.query())

    def wait(self, event: Any) -> None:
        event.synchronize()


def cached_code(cartridge: str, architecture: str) -> bytes:
    """Machine code of a cartridge type's kernels, from the cache folder or compiled now."""
    name = f"{sources_fingerprint()}-{architecture}-{cartridge}.cubin"
    path = cache_folder() / "kernels" / name
    if path.is_file():
        return path.read_bytes()
    code, _ = compiled(cartridge, architecture)
    path.parent.mkdir(parents=True, exist_ok=True)
    files.replace_file(path, code)
    return code


def compiled(cartridge: str, architecture: str) -> tuple[bytes, str]:
    """Machine code of a cartridge type's kernels, and the assembler's report on each of them."""
    core = _cuda_core()
    macros = {"SCANLINE_CARTRIDGE": f"Cartridge{cartridge}", **layout_macros()}
    options = core.ProgramOptions(
        name="kernels.cu",
        arch=architecture,
        std="c++17",
        fma=False,
        device_as_default_execution_space=True,
        include_path=[str(sources() / "gpu")],
        define_macro=[f"{name}={value}" for name, value in macros.items()],
        ptxas_options=["-v"],
    )
    report = io.StringIO()
    text = (sources() / "gpu" / "kernels.cu").read_text()
    try:
        program = core.Program(text, "c++", options)
    except RuntimeError as error:
        raise MissingPackageError(
            "Engine 'cuda' finds no NVRTC to compile its kernels: pip install 'scanline[cuda]'."
        ) from error
    return bytes(program.compile("cubin", logs=report).code), report.getvalue()


def cache_folder() -> Path:
    """$SCANLINE_CACHE, else `scanline` in $XDG_CACHE_HOME, else in ~/.cache."""
    if "SCANLINE_CACHE" in os.environ:
        return Path(os.environ["SCANLINE_CACHE"])
    home = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (home if home.is_absolute() else Path.home() / ".cache") / "scanline"


def _cuda_core() -> Any:
    try:
        import cuda.core
    except ImportError as error:
        raise MissingPackageError(
            "Engine 'cuda' needs cuda-core and NVRTC: pip install 'scanline[cuda]'."
        ) from error
    return cuda.core


def _architecture(device: str) -> str:
    """The GPU's architecture, such as 'sm_80'; refuses a machine that has none or an old one."""
    if torch.version.cuda is None:
        raise RefusedError(
            "Engine 'cuda' keeps its memory by PyTorch's CUDA build, but this PyTorch is built for "
            "the CPU; install the CUDA build, or use engine 'native'."
        )
    if not torch.cuda.is_available():
        raise RefusedError(
            "Engine 'cuda' finds no NVIDIA GPU with a driver that PyTorch can use; install the "
            "driver (`nvidia-smi` must list a GPU), or use engine 'native'."
        )
    major, minor = torch.cuda.get_device_capability(device)
    if (major, minor) < _OLDEST:
        oldest = ".".join(map(str, _OLDEST))
        raise RefusedError(
            f"{torch.cuda.get_device_name(device)} has compute capability {major}.{minor}; engine "
            f"'cuda' needs {oldest} (Turing, 2018) or newer: use engine 'native'."
        )
    return f"sm_{major}{minor}"


class CudaEngine(DeviceEngine):
    """A device engine on an NVIDIA GPU."""

    def __init__(self, settings: EngineSettings) -> None:
        check_settings(settings, CudaLauncher.name)
        is_cuda = settings.device.startswith("cuda")
        super().__init__(settings, CudaLauncher(settings.device if is_cuda else "cuda:0"))


build: Callable[[EngineSettings], Engine] = CudaEngine
