"""Engine `opencl`: whole agent steps on an OpenCL device, by kernels compiled at run time.

Takes the settings of every engine; see device.py for what it plays. Needs pyopencl, and a device
that takes C++ for OpenCL with doubles: Intel's GPUs and, by the package intel-opencl-rt, any x86
processor. Kernels are compiled once per cartridge type; pyopencl keeps them in its cache on disk.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import MissingPackageError, RefusedError
from ..records import Array
from .device import DeviceEngine, check_settings
from .interface import Engine, EngineSettings
from .launcher import layout_macros, sources, sources_fingerprint

_VENDORS = Path("/etc/OpenCL/vendors")
_DOUBLES = "cl_khr_fp64"


class OpenCLLauncher:
    """One OpenCL device: programs by cartridge type, a queue per stream."""

    name = "opencl"

    def __init__(self) -> None:
        self._cl = _pyopencl()
        self._device = _device(self._cl)
        self._context = self._cl.Context([self._device])
        self._kernels: dict[tuple[str, str], Any] = {}

    @property
    def device_name(self) -> str:
        return str(self._device.name).strip()

    def compile(self, cartridge: str) -> None:
        macros = {"SCANLINE_CARTRIDGE": f"Cartridge{cartridge}", **layout_macros()}
        # Not all includes are found by the cache, which must not serve kernels of older sources.
        options = [
            "-cl-std=CLC++2021",
            f"-I{sources() / 'gpu'}",
            f"-DSOURCES={sources_fingerprint()}",
        ]
        options += [f"-D{name}={value}" for name, value in macros.items()]
        text = (sources() / "gpu" / "kernels.cl").read_text()
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

    def stream(self) -> Any:
        return self._cl.CommandQueue(self._context)

    def write(self, stream: Any, buffer: Any, data: Array, offset: int = 0) -> None:
        self._cl.enqueue_copy(stream, buffer, data, dst_offset=offset, is_blocking=True)

    def read(self, stream: Any, buffer: Any, data: Array, offset: int = 0) -> None:
        self._cl.enqueue_copy(stream, data, buffer, src_offset=offset, is_blocking=True)

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
        stream.flush()

    def is_idle(self, stream: Any) -> bool:
        marker = self._cl.enqueue_marker(stream)
        stream.flush()
        complete: int = self._cl.command_execution_status.COMPLETE
        return bool(marker.command_execution_status == complete)


def _pyopencl() -> Any:
    """The package, with the path of Intel's runtime for processors if no other is installed."""
    runtime = Path(sys.prefix) / "lib" / "libintelocl.so"
    if runtime.exists() and not any(_VENDORS.glob("*.icd")):
        os.environ.setdefault("OCL_ICD_VENDORS", str(runtime))
    # Its vectoriser takes minutes on a whole console, and gains nothing.
    os.environ.setdefault("CL_CONFIG_CPU_VECTORIZER_MODE", "1")
    try:
        import pyopencl
    except ImportError as error:
        raise MissingPackageError(
            "Engine 'opencl' needs pyopencl: pip install 'scanline[opencl]'."
        ) from error
    return pyopencl


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
