"""What the system says of this machine and of its processes.

Takes nothing, or the number of a process; gives plain numbers and strings.
Knows nothing of runs.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from .processes import granted_cores

PROC = Path("/proc")


def machine_record() -> dict[str, Any]:
    """What results may depend on, for a run's settings."""
    return {
        "host": platform.node(),
        "system": platform.platform(),
        "processor": _processor(),
        "num_cores": granted_cores(),
        "memory_bytes": total_memory_bytes(),
    }


def total_memory_bytes() -> int:
    """Memory of the machine."""
    return int(psutil.virtual_memory().total)


def used_memory_bytes() -> int:
    """Resident memory of this process and of its direct children."""
    return int(_total(lambda process: process.memory_info().rss))


def cpu_seconds() -> float:
    """Seconds of all cores that this process and its direct children have used."""
    return _total(lambda process: sum(process.cpu_times()[:2]))


def process_start(pid: int) -> str | None:
    """When a process began, comparable on this machine only; None if it does not run.

    Seconds after the system's start, which do not move when the clock is set or a virtual machine
    goes on after a pause, unlike psutil's time of creation.
    """
    with suppress(psutil.Error):
        process = psutil.Process(pid)
        if process.status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD):
            boot = PROC / "sys/kernel/random/boot_id"
            boot_id = boot.read_text().strip() if boot.exists() else ""
            return f"{boot_id}/{process.create_time() - psutil.boot_time():.2f}"
    return None


def _total(value: Callable[[psutil.Process], float]) -> float:
    """The sum over this process and its direct children; one that ends meanwhile counts nothing."""
    total = value(psutil.Process())
    for pid in _children():
        with suppress(psutil.Error):
            total += value(psutil.Process(pid))
    return total


def _children() -> list[int]:
    """Linux lists them; elsewhere psutil walks through all processes."""
    try:
        return [int(p) for p in (PROC / f"self/task/{os.getpid()}/children").read_text().split()]
    except OSError:
        return [child.pid for child in psutil.Process().children()]


def _processor() -> str:
    with suppress(OSError):
        for line in (PROC / "cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
