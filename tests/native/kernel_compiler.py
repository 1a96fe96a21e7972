"""Compiles kernels of native/cuda with NVRTC and tells what each needs of a GPU; no GPU is needed.

    python tests/native/kernel_compiler.py            # every cartridge type, every architecture

Takes a source, an architecture and macros; gives the kernels' registers, spills and local memory
per thread as ptxas reports them. NVRTC is loaded from the package nvidia-cuda-nvrtc by its C
interface; it knows no standard header, so what compiles here is free of them.
"""

from __future__ import annotations

import ctypes
import importlib.util
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

CUDA = Path(__file__).resolve().parents[2] / "native" / "cuda"
ARCHITECTURES = ("sm_75", "sm_80", "sm_90")
CARTRIDGES = ("2K", "4K", "F8", "F8SC", "F6", "F6SC", "E0", "FE", "DPC")
OPTIONS = ("--std=c++17", "--fmad=false", "--ptxas-options=-v", f"--include-path={CUDA}")
REPORT = re.compile(
    r"Compiling entry function '(?P<name>\w+)'.*?"
    r"(?P<stack>\d+) bytes stack frame, (?P<stores>\d+) bytes spill stores, "
    r"(?P<loads>\d+) bytes spill loads.*?Used (?P<registers>\d+) registers",
    re.DOTALL,
)


@dataclass(frozen=True, kw_only=True)
class KernelCost:
    """What one thread of a kernel needs."""

    name: str
    registers: int
    """32-bit registers; the hardware has at most 255 per thread."""
    spill_store_bytes: int
    """Bytes of registers written to local memory because there were too few."""
    spill_load_bytes: int
    local_memory_bytes: int
    """Stack frame: the thread's own copy of a console, and the spills."""


def nvrtc_path() -> Path | None:
    """The library of the installed package, or None."""
    package = importlib.util.find_spec("nvidia")
    folders = package.submodule_search_locations if package else None
    found = [path for folder in folders or [] for path in Path(folder).rglob("libnvrtc.so.*")]
    return max(found, default=None)


class Compiler:
    def __init__(self, library: Path):
        self._nvrtc = ctypes.CDLL(str(library))

    def compile(self, source: Path, architecture: str, macros: Mapping[str, str]) -> str:
        """Compiles to machine code and gives the log; raises ValueError if that fails."""
        program = ctypes.c_void_p()
        text = source.read_bytes()
        self._nvrtc.nvrtcCreateProgram(
            ctypes.byref(program), text, source.name.encode(), 0, None, None
        )
        defines = [f"--define-macro={key}={value}" for key, value in macros.items()]
        options = [f"--gpu-architecture={architecture}", *OPTIONS, *defines]
        values = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
        failed = self._nvrtc.nvrtcCompileProgram(program, len(options), values)
        log = self._log(program)
        self._nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
        if failed:
            raise ValueError(f"{source.name} does not compile for {architecture}:\n{log}")
        return log

    def _log(self, program: ctypes.c_void_p) -> str:
        size = ctypes.c_size_t()
        self._nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        self._nvrtc.nvrtcGetProgramLog(program, log)
        return log.value.decode()


def kernel_costs(log: str) -> list[KernelCost]:
    """The kernels that ptxas names in a log, in the order of their names."""
    costs = [
        KernelCost(
            name=found["name"],
            registers=int(found["registers"]),
            spill_store_bytes=int(found["stores"]),
            spill_load_bytes=int(found["loads"]),
            local_memory_bytes=int(found["stack"]),
        )
        for found in REPORT.finditer(log)
    ]
    return sorted(costs, key=lambda cost: cost.name)


def step_consoles(compiler: Compiler, architecture: str, cartridge: str) -> list[KernelCost]:
    """Costs of the kernels that step consoles with this cartridge type."""
    macros = {"SCANLINE_CARTRIDGE": f"Cartridge{cartridge}"}
    return kernel_costs(compiler.compile(CUDA / "step_consoles.cu", architecture, macros))


def row(architecture: str, cartridge: str, cost: KernelCost) -> str:
    return (
        f"| {architecture} | {cartridge} | `{cost.name}` | {cost.registers} | "
        f"{cost.spill_store_bytes} / {cost.spill_load_bytes} | {cost.local_memory_bytes} |"
    )


HEADER = (
    "| architecture | cartridge | kernel | registers | spill bytes, stored / loaded | "
    "local memory bytes |\n|---|---|---|---|---|---|"
)


def main() -> None:
    library = nvrtc_path()
    if library is None:
        raise SystemExit("NVRTC is missing: pip install nvidia-cuda-nvrtc")
    compiler = Compiler(library)
    print(HEADER)
    for architecture in ARCHITECTURES:
        for cartridge in CARTRIDGES:
            for cost in step_consoles(compiler, architecture, cartridge):
                print(row(architecture, cartridge, cost), flush=True)


if __name__ == "__main__":
    main()
