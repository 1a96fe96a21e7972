"""What the kernels of engine `cuda` need of a GPU: registers, spills and stack of every thread.

    python benchmarks/cuda_kernels.py [--architectures sm_80,sm_90] [--cartridges 4K,DPC]

Compiles by the engine's own call (NVRTC, as on a machine with a GPU); no GPU is needed. The numbers
are those of the assembler's report. A pair of architecture and cartridge takes about 20 seconds.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from scanline.engines.cuda import compiled

ARCHITECTURES = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120")
CARTRIDGES = ("2K", "4K", "F8", "F8SC", "F6", "F6SC", "E0", "FE", "DPC")
REPORT = re.compile(
    r"Compiling entry function '(?P<name>\w+)'.*?"
    r"(?P<stack>\d+) bytes stack frame, (?P<stores>\d+) bytes spill stores, "
    r"(?P<loads>\d+) bytes spill loads.*?Used (?P<registers>\d+) registers",
    re.DOTALL,
)


class KernelCost(NamedTuple):
    """What one thread of a kernel needs."""

    kernel: str
    registers: int
    """32-bit registers; the hardware has at most 255 per thread."""
    spill_store_bytes: int
    """Bytes of registers written to local memory because there were too few."""
    spill_load_bytes: int
    stack_bytes: int
    """Local memory: the thread's own copy of a console, and the spills."""


def kernel_costs(report: str) -> list[KernelCost]:
    """The kernels that the assembler names in its report, in the order of their names."""
    return sorted(
        KernelCost(
            found["name"],
            *(int(found[group]) for group in ("registers", "stores", "loads", "stack")),
        )
        for found in REPORT.finditer(report)
    )


def rows(architectures: list[str], cartridges: list[str]) -> Iterator[dict[str, str | int | float]]:
    for architecture in architectures:
        for cartridge in cartridges:
            begun = time.monotonic()
            code, report = compiled(cartridge, architecture)
            seconds = round(time.monotonic() - begun, 1)
            of_code = {"code_bytes": len(code), "compile_seconds": seconds}
            for cost in kernel_costs(report):
                place = {"architecture": architecture, "cartridge": cartridge}
                yield {**place, **cost._asdict(), **of_code}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--architectures", default=",".join(ARCHITECTURES))
    parser.add_argument("--cartridges", default=",".join(CARTRIDGES))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found = []
    for row in rows(options.architectures.split(","), options.cartridges.split(",")):
        found.append(row)
        print(
            f"{row['architecture']:7} {row['cartridge']:5} {row['kernel']:17} "
            f"{row['registers']:4} registers, spills {row['spill_store_bytes']} / "
            f"{row['spill_load_bytes']} bytes, stack {row['stack_bytes']} bytes",
            flush=True,
        )
        if options.json is not None:
            options.json.write_text(json.dumps({"rows": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
