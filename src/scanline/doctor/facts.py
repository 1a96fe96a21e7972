"""Facts of a machine: processor, memory, devices, drivers, versions, ROMs, compilers.

Takes nothing; gives plain records, for a table and for a report. Measures nothing, and whatever is
missing is None and no error.
"""

from __future__ import annotations

import importlib
import os
import shutil
from importlib import metadata
from typing import Any

import torch

from .. import engines, games, networks
from ..errors import UserError
from ..machine import machine_record
from ..memory import available_bytes
from ..runs import folder

_PACKAGES = ("ale-py", "pyopencl", "cuda-core", "triton")


def facts() -> dict[str, Any]:
    """Everything that a report of a problem needs to name."""
    return {
        "machine": machine_record() | {"available_bytes": int(available_bytes())},
        "versions": folder.versions(
            engine=engines.version("native"), kernels=networks.FINGERPRINT, **_packages()
        ),
        "torch": {
            "instructions": torch.backends.cpu.get_cpu_capability(),
            "cuda_build": torch.version.cuda,
            "cuda_driver": _cuda_driver(),
            "cudnn": _cudnn(),
        },
        "devices": devices_found(),
        "opencl": opencl_devices(),
        "compiler": compiler(),
        "roms": num_roms(),
    }


def devices_found() -> list[dict[str, Any]]:
    """What PyTorch can compute on, besides this processor."""
    found = []
    for number in range(torch.cuda.device_count()):
        card = torch.cuda.get_device_properties(number)
        capability = f"{card.major}.{card.minor}"
        name = {"name": f"cuda:{number}", "card": card.name, "capability": capability}
        found.append(name | {"memory_bytes": card.total_memory})
    if torch.backends.mps.is_available():
        most = torch.mps.recommended_max_memory()
        found.append({"name": "mps", "card": "Apple", "memory_bytes": most})
    return found


def opencl_devices() -> list[str]:
    """Names of OpenCL devices; none without pyopencl or a driver."""
    try:
        launcher = importlib.import_module("scanline.engines.opencl").OpenCLLauncher()
        return [launcher.device_name]
    except (ImportError, ValueError, RuntimeError):
        return []


def compiler() -> str | None:
    """What torch.compile needs on a CPU."""
    wanted = (os.environ.get("CXX"), "g++", "clang++", "cl")
    return next((path for name in wanted if name and (path := shutil.which(name))), None)


def num_roms() -> int:
    """Games whose ROM is on this machine."""
    found = 0
    for game in games.GAMES:
        try:
            games.rom_path(game.id)
            found += 1
        except UserError:
            continue
    return found


def _packages() -> dict[str, str]:
    versions = {}
    for name in _PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = "not installed"
    return versions


def _cudnn() -> int | None:
    library: Any = torch.backends.cudnn
    return library.version() if torch.cuda.is_available() else None


def _cuda_driver() -> str | None:
    """The newest CUDA that the driver can serve."""
    if not torch.cuda.is_available():
        return None
    internal: Any = torch._C
    number: int = internal._cuda_getDriverVersion()
    return f"{number // 1000}.{number % 1000 // 10}"
