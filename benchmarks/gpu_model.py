"""A model of frames/s of engine `cuda` by GPU. Nothing here was measured on a GPU.

    python benchmarks/gpu_model.py --counts benchmarks/results/divergence.json

Takes the instructions that a warp of 32 consoles executes per frame (divergence.py: PTX, counted),
machine instructions per PTX instruction and registers per thread (NVRTC's machine code), and four
facts of each GPU. A scheduler issues one instruction of a warp per clock at most, and a warp one
per LATENCY_CLOCKS, because instructions wait for each other:

    frames/s = warps that run * 32 / (instructions per frame * clocks per instruction / clock rate)

The check: CuLE's own kernel is of the shape of the plain loop (a switch per opcode, one thread per
console), and its paper tells 41 to 155 thousand frames/s on a Titan V with up to 4096 consoles.
"""

from __future__ import annotations

import argparse
import json
import struct
from pathlib import Path
from typing import NamedTuple

import numpy as np
from cuda_kernels import kernel_costs
from ptx_text import functions_of
from ptx_warp import ptx_of

from scanline.engines.cuda import compiled

LATENCY_CLOCKS = 11.0
"""Five of six instructions wait 6 clocks, memory (one of six) about 35: L1 hits of local memory."""
INSTRUCTION_BYTES = 16
SCHEDULERS_PER_SM = 4
REGISTERS_PER_SM = 65536


class Gpu(NamedTuple):
    """What its data sheet says."""

    name: str
    num_sms: int
    clock_hz: float
    """Boost clock."""
    max_warps_per_sm: int


GPUS = (
    Gpu("T4", 40, 1.59e9, 32),
    Gpu("A100", 108, 1.41e9, 64),
    Gpu("RTX 4090", 128, 2.52e9, 48),
    Gpu("H100 SXM", 132, 1.98e9, 64),
    Gpu("Titan V", 80, 1.455e9, 64),
)


def code_bytes(cubin: bytes) -> int:
    """Size of all machine code in an ELF file of 64 bits."""
    table, entry_bytes, count = (
        *struct.unpack_from("<Q", cubin, 40),
        *struct.unpack_from("<HH", cubin, 58),
    )
    executable = 4
    total = 0
    for number in range(count):
        flags, _, _, size = struct.unpack_from("<QQQQ", cubin, table + number * entry_bytes + 8)
        total += size if flags & executable else 0
    return int(total)


def frames_per_second(gpu: Gpu, num_consoles: int, per_frame: float, registers: int) -> float:
    """Of `num_consoles` that start together, 32 to a warp."""
    resident = min(gpu.max_warps_per_sm, REGISTERS_PER_SM // (32 * registers)) * gpu.num_sms
    warps = num_consoles / 32
    at_once = min(warps, resident)
    per_scheduler = at_once / (gpu.num_sms * SCHEDULERS_PER_SM)
    clocks = max(LATENCY_CLOCKS, per_scheduler)
    return at_once * 32 * gpu.clock_hz / (per_frame * clocks)


def code_facts(cartridge: str, architecture: str) -> tuple[float, int]:
    """Machine instructions per instruction of PTX, and registers of `scanline_play`."""
    code, report = compiled(cartridge, architecture)
    functions, _ = functions_of(ptx_of(cartridge))
    ptx = sum(len(block.statements) for function in functions for block in function.blocks)
    registers = {cost.kernel: cost.registers for cost in kernel_costs(report)}["scanline_play"]
    return code_bytes(code) / INSTRUCTION_BYTES / ptx, registers


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--counts", type=Path, required=True)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows = json.loads(options.counts.read_text())["rows"]
    ratio, registers = code_facts("4K", "sm_80")
    print(f"machine instructions per PTX instruction {ratio:.2f}, registers {registers}")
    found = []
    for loop in ("plain", "lanes"):
        for game in dict.fromkeys(row["game"] for row in rows):
            counts = [
                row["warp_instructions_per_frame"]
                for row in rows
                if (row["game"], row["loop"]) == (game, loop)
            ]
            if not counts:
                continue
            per_frame = float(np.mean(counts)) * ratio
            for gpu in GPUS:
                rates = {
                    str(num): round(frames_per_second(gpu, num, per_frame, registers))
                    for num in (1024, 4096, 16384)
                }
                found.append({"loop": loop, "game": game, "gpu": gpu.name, "frames_per_s": rates})
                print(f"{loop:6} {game:16} {gpu.name:9} {rates}")
    if options.json is not None:
        facts = {"machine_per_ptx": ratio, "registers": registers, "latency": LATENCY_CLOCKS}
        options.json.write_text(json.dumps({**facts, "rows": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
