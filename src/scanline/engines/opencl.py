"""Engine `opencl`: whole agent steps on an OpenCL device, by kernels compiled at run time.

Takes the settings of every engine; see device.py for what it plays. Needs pyopencl, and a device
that takes C++ for OpenCL with doubles: Intel's GPUs and, by the package intel-opencl-rt, any x86
processor. Kernels are compiled once per cartridge type; pyopencl keeps them in its cache on disk.
"""

from __future__ import annotations

import importlib.metadata
import os
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..devices import HOST
from ..errors import MissingPackageError, RefusedError
from ..records import Array, Frames
from . import launcher
from .device import DeviceEngine, check_settings
from .interface import Engine, EngineSettings

_VENDORS = Path("/etc/OpenCL/vendors")
_DOUBLES = "cl_khr_fp64"


class OpenCLLauncher:
    """One OpenCL device: programs by cartridge type, a queue per stream."""

    name = "opencl"
    memory = HOST

    def __init__(self) -> None:
        self._cl = _pyopencl()
        self._device = _device(self._cl)
        self._context = self._cl.Context([self._device])
        self._kernels: dict[tuple[str, str], Any] = {}

    @property
    def device_name(self) -> str:
        return str(self._device.name).strip()

    def compile(self, cartridge: str) -> None:
        if any(cartridge == of for of, _ in self._kernels):
            return
        macros = {"SCANLINE_CARTRIDGE": f"Cartridge{cartridge}", **launcher.layout_macros()}
        # Not all includes are found by the cache, which must not serve kernels of older sources.
        options = [
            "-cl-std=CLC++2021",
            f"-I{launcher.sources() / 'gpu'}",
            f"-DSOURCES={launcher.sources_fingerprint()}",
        ]
        options += [f"-D{name}={value}" for name, value in macros.items()]
        text = (launcher.sources() / "gpu" / "kernels.cl").read_text()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "Non-empty compiler output"
            try:
                program = self._cl.Program(self._context, text).build(options)
            except self._cl.RuntimeError as error:
                raise RefusedError(
                    f"The kernels of engine 'opencl' do not compile for {self.device_name}: {error}"
                ) from error
            for kernel in program.all_kernels():
                self._kernels[cartridge, kernel.function_name] = kernel

    def allocate(self, num_bytes: int) -> Any:
        flags = self._cl.mem_flags.READ_WRITE | self._cl.mem_flags.COPY_HOST_PTR
        try:
            return self._cl.Buffer(
                self._context, flags, hostbuf=np.zeros(max(num_bytes, 1), np.uint8)
            )
        except self._cl.MemoryError as error:
            raise RefusedError(
                f"{self.device_name} has no memory for {num_bytes:,} bytes more; use fewer "
                "environments."
            ) from error

    def view(self, frames: Frames) -> None:
        """A buffer of another library's memory would be copied at every use."""
        return None

    def staging(self, num_bytes: int) -> Array:
        return np.zeros(num_bytes, np.uint8)

    def stream(self) -> Any:
        return self._cl.CommandQueue(self._context)

    def write(self, stream: Any, buffer: Any, data: Array, offset: int = 0) -> None:
        self._cl.enqueue_copy(stream, buffer, data, dst_offset=offset, is_blocking=True)

    def read(self, stream: Any, buffer: Any, data: Frames, offset: int = 0) -> None:
        self._cl.enqueue_copy(stream, data, buffer, src_offset=offset, is_blocking=False)

    def launch(
        self,
        stream: Any,
        kernel: tuple[str, str],
        num_lanes: int,
        buffers: Sequence[Any],
        scalars: Sequence[int],
    ) -> None:
        arguments = [*buffers, *map(np.uint32, scalars)]
        self._kernels[kernel](stream, (num_lanes,), None, *arguments)

    def event(self, stream: Any) -> Any:
        marker = self._cl.enqueue_marker(stream)
        stream.flush()
        return marker

    def is_done(self, event: Any) -> bool:
        complete: int = self._cl.command_execution_status.COMPLETE
        return bool(event.command_execution_status <= complete)  # below are errors

    def wait(self, event: Any) -> None:
        event.wait()


def _pyopencl() -> Any:
    """The package, with the path of Intel's runtime for processors if no other is installed."""
    runtime = _runtime_for_processors()
    if runtime is not None and not any(_VENDORS.glob("*.icd")):
        os.environ.setdefault("OCL_ICD_VENDORS", str(runtime.resolve()))
    # Its vectoriser takes minutes on a whole console, and gains nothing.
    os.environ.setdefault("CL_CONFIG_CPU_VECTORIZER_MODE", "1")
    try:
        import pyopencl
    except ImportError as error:
        raise MissingPackageError(
            "Engine 'opencl' needs pyopencl: pip install 'scanline[opencl]'."
        ) from error
    return pyopencl


def _runtime_for_processors() -> Path | None:
    """The library of the package intel-opencl-rt, wherever that is installed."""
    try:
        package = importlib.metadata.distribution("intel-opencl-rt")
    except importlib.metadata.PackageNotFoundError:
        return None
    found = [each for each in package.files or () if each.name == "libintelocl.so"]
    return Path(str(package.locate_file(found[0]))) if found else None


def _device(cl: Any) -> Any:
    """A GPU if there is one that can run the kernels, else any device that can."""
    try:
        devices = [device for each in cl.get_platforms() for device in each.get_devices()]
    except cl.Error as error:
        raise RefusedError(
            "Engine 'opencl' finds no OpenCL driver; install the device's, or "
            "'pip install intel-opencl-rt' for the processor."
        ) from error
    able = [device for device in devices if _DOUBLES in device.extensions.split()]
    if not able:
        names = ", ".join(str(device.name).strip() for device in devices) or "none"
        raise RefusedError(
            f"Engine 'opencl' needs a device that computes doubles ({_DOUBLES}); found: {names}."
        )
    return min(able, key=lambda device: device.type != cl.device_type.GPU)


class OpenCLEngine(DeviceEngine):
    """A device engine on an OpenCL device."""

    def __init__(self, settings: EngineSettings) -> None:
        check_settings(settings, OpenCLLauncher.name)
        super().__init__(settings, OpenCLLauncher())


build: Callable[[EngineSettings], Engine] = OpenCLEngine
