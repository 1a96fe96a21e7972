"""Kernels of engine `cuda` without a GPU: their PTX, 32 lanes of a warp together, counted.

`WarpLauncher` is a launcher for `DeviceEngine`: NVRTC compiles the kernels to PTX, ptx_code.py
makes C++ of it, g++ a library. `scanline_play` runs so, a warp per block as on a GPU; the other
kernels run on the host grid. Results must equal engine `native`, and counts tell how
often each block of the kernel was issued, and for how many lanes.
"""

from __future__ import annotations

import ctypes
import hashlib
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from ptx_code import FunctionWriter
from ptx_text import Function, Memory, functions_of

from scanline.engines.gpu_host import HostLauncher
from scanline.engines.launcher import layout_macros
from scanline.records import Array

KERNEL = "scanline_play"
ARCHITECTURE = "compute_80"
NATIVE = Path(__file__).parents[1] / "native"
CACHE = NATIVE.parent / "build" / "warp"
EXACT = ("-fno-strict-aliasing", "-ffp-contract=off")
HEADER = NATIVE / "bench" / "warp.h"


class Counted(NamedTuple):
    """One block of a function: what it is made of, and how often it was issued."""

    function: str
    number: int
    instructions: int
    memory: int
    """Loads and stores among them, of any memory but a call's parameters."""
    issued: int
    lanes: int
    """Lanes that took part, summed over issues."""


def ptx_of(cartridge: str, macros: Sequence[str] = ()) -> str:
    """The kernels of a cartridge type, as NVRTC gives them to the assembler."""
    from cuda.bindings import nvrtc

    layout = [f"{name}={value}" for name, value in layout_macros().items()]
    defined = [f"SCANLINE_CARTRIDGE=Cartridge{cartridge}", *layout, *macros]
    options = [
        *(f"-arch={ARCHITECTURE}", "-std=c++17", "-fmad=false", "-default-device"),
        f"-I{NATIVE / 'gpu'}",
        *(f"-D{macro}" for macro in defined),
    ]
    text = (NATIVE / "gpu" / "kernels.cu").read_bytes()
    _, program = nvrtc.nvrtcCreateProgram(text, b"kernels.cu", 0, [], [])
    (error,) = nvrtc.nvrtcCompileProgram(
        program, len(options), [option.encode() for option in options]
    )
    if error.value:
        _, size = nvrtc.nvrtcGetProgramLogSize(program)
        log = b" " * size
        nvrtc.nvrtcGetProgramLog(program, log)
        raise ValueError(f"NVRTC refuses the kernels: {log.decode()[:2000]}")
    _, size = nvrtc.nvrtcGetPTXSize(program)
    code = b" " * size
    nvrtc.nvrtcGetPTX(program, code)
    return code.rstrip(b"\0").decode()


def _called_from(functions: dict[str, Function], name: str) -> list[Function]:
    """A function and all that it calls, callees first."""
    found: list[Function] = []

    def visit(function: Function) -> None:
        for block in function.blocks:
            for statement in block.statements:
                if statement.opcode.startswith("call"):
                    callee = next(text for text in statement.operands if text in functions)
                    if functions[callee] not in found:
                        visit(functions[callee])
        if function not in found:
            found.append(function)

    visit(functions[name])
    return found


def _memory_text(memory: dict[str, Memory], used: str) -> str:
    lines, shared = [], 0
    for piece in memory.values():
        if not re.search(rf"\b{re.escape(piece.name)}\b", used):
            continue
        if piece.space == "shared":
            lines.append(f"static const u32 {piece.name}_at = {shared};")
            shared += -(-piece.num_bytes // 16) * 16
        else:
            kind = f"u{8 * piece.element_bytes}"
            values = ", ".join(f"{kind}({value})" for value in piece.value)
            count = piece.num_bytes // piece.element_bytes
            lines.append(f"alignas(16) static {kind} {piece.name}[{count}] = {{{values}}};")
    return "\n".join(lines) + "\n"


def program_of(ptx: str) -> tuple[str, list[Function]]:
    """C++ of the kernel, and the functions that it is made of."""
    all_functions, module = functions_of(ptx)
    reached = _called_from({function.name: function for function in all_functions}, KERNEL)
    memory = {piece.name: piece for piece in module}
    memory |= {m.name: m for f in reached for m in f.locals if m.space == "shared"}
    writers = [FunctionWriter(function, memory) for function in reached]
    texts = [writer.text() for writer in writers]
    declared = "".join(writer.declaration() + ";\n" for writer in writers)
    given = ", ".join(f"given + {512 * i}" for i in range(len(reached[-1].params)))
    entry = f"""
extern "C" void warp_play(u32 block, u32 num_lanes, const u64* arguments) {{
  alignas(16) static u8 given[512 * {len(reached[-1].params)}];
  for (u32 i = 0; i < {len(reached[-1].params)}; ++i)
    for (u32 l = 0; l < 32; ++l) memcpy(given + 512 * i + 16 * l, arguments + i, 8);
  g_block_index = block;
  call_{KERNEL}(num_lanes == 32 ? ~0u : (1u << num_lanes) - 1, nullptr, {given});
}}
"""
    body = "\n".join(texts)
    head = f'#include "{HEADER}"\n' + _memory_text(memory, body)
    return head + declared + body + entry, reached


class WarpProgram:
    """A kernel `scanline_play`, ready to run; `name` is of its file."""

    def __init__(self, name: str, ptx: str) -> None:
        text, self._functions = program_of(ptx)
        CACHE.mkdir(parents=True, exist_ok=True)
        digest = hashlib.sha256((text + HEADER.read_text()).encode()).hexdigest()[:16]
        library = CACHE / f"{name}-{digest}.so"
        if not library.exists():
            source = library.with_suffix(".cpp")
            source.write_text(text)
            options = ["-O1", "-w", "-std=c++17", "-shared", "-fPIC", "-fwrapv"]
            subprocess.run(["g++", *options, *EXACT, "-o", str(library), str(source)], check=True)
        self._library = ctypes.CDLL(str(library))

    def run(self, num_lanes: int, arguments: Array) -> None:
        """All blocks of a launch, one after the other; the last may have fewer lanes."""
        for block in range(-(-num_lanes // 32)):
            self._library.warp_play(block, 32, ctypes.c_void_p(arguments.ctypes.data))

    def _counts(self, function: Function) -> Array:
        read = getattr(self._library, f"read_{function.name}")
        read.restype = ctypes.POINTER(ctypes.c_uint64)
        return np.ctypeslib.as_array(read(), (len(function.blocks), 2))

    def take_counts(self) -> list[Counted]:
        """Of the blocks that ran since the last call."""
        found = []
        for function in self._functions:
            counts = self._counts(function)
            for number, (issued, lanes) in enumerate(counts.tolist()):
                statements = function.blocks[number].statements
                names = [statement.opcode.split(".")[:2] for statement in statements]
                memory = sum(name[0] in ("ld", "st") and name[1] != "param" for name in names)
                if issued:
                    place = (function.name, number, len(statements), memory)
                    found.append(Counted(*place, issued, lanes))
            counts[:] = 0
        return found


class WarpLauncher(HostLauncher):
    """The host grid, but `scanline_play` as warps of PTX."""

    def __init__(self, macros: Sequence[str] = ()) -> None:
        super().__init__()
        self._macros = macros
        self.programs: dict[str, WarpProgram] = {}

    def compile(self, cartridge: str) -> None:
        self.programs[cartridge] = WarpProgram(cartridge, ptx_of(cartridge, self._macros))

    def launch(
        self,
        stream: None,
        kernel: tuple[str, str],
        num_lanes: int,
        buffers: Sequence[Any],
        scalars: Sequence[int],
    ) -> None:
        cartridge, name = kernel
        if name != KERNEL:
            super().launch(stream, kernel, num_lanes, buffers, scalars)
            return
        addresses = [buffer.data_ptr() for buffer in buffers]
        self.programs[cartridge].run(num_lanes, np.array([*addresses, *scalars], np.uint64))
