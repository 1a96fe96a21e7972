"""What the system says of this machine and of its processes.

Takes nothing, or the number of a process; gives plain numbers and strings, None where the system
does not tell. Knows nothing of runs.
"""

from __future__ import annotations

import os
import platform
import time
from pathlib import Path
from typing import Any

PROC = Path("/proc")


def machine_record() -> dict[str, Any]:
    """What results may depend on, for a run's settings."""
    return {
        "host": platform.node(),
        "system": platform.platform(),
        "processor": _processor(),
        "num_cores": num_cores(),
        "memory_bytes": total_memory_bytes(),
    }


def num_cores() -> int:
    """Cores that the system grants to this process."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def total_memory_bytes() -> int | None:
    """Memory of the machine."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return None


def used_memory_bytes() -> int | None:
    """Resident memory of this process and of its direct children."""
    pages = [_resident_pages(pid) for pid in (os.getpid(), *_children(os.getpid()))]
    known = [p for p in pages if p is not None]
    return sum(known) * os.sysconf("SC_PAGE_SIZE") if known else None


def cpu_seconds() -> float:
    """Seconds of all cores that this process and its direct children have used."""
    ticks = sum(_used_ticks(pid) for pid in _children(os.getpid()))
    return time.process_time() + ticks / os.sysconf("SC_CLK_TCK")


def process_start(pid: int) -> str | None:
    """When a process began, comparable on this machine only; None if it does not run."""
    fields = _stat(pid)
    if not fields or fields[0] in "ZX":  # a zombie or dead
        return None
    boot = (PROC / "sys/kernel/random/boot_id").read_text().strip()
    return f"{boot}/{fields[19]}"


def is_running(pid: int, started: str | None) -> bool:
    """Whether the process that began then still runs; by its number alone without /proc."""
    if PROC.exists():
        return started is not None and process_start(pid) == started
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _children(pid: int) -> list[int]:
    try:
        return [int(p) for p in (PROC / f"{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def _stat(pid: int) -> list[str]:
    """Fields 3 and on of a process' stat file; the name before them may hold spaces."""
    try:
        return (PROC / f"{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _used_ticks(pid: int) -> int:
    fields = _stat(pid)
    return int(fields[11]) + int(fields[12]) if fields else 0


def _resident_pages(pid: int) -> int | None:
    try:
        return int((PROC / f"{pid}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return None


def _processor() -> str:
    try:
        for line in (PROC / "cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
