"""What the system says of this machine and of its processes.

Takes nothing, or the number of a process; gives plain numbers and strings, None where the system
does not tell. Knows nothing of runs.
"""

from __future__ import annotations

import os
import platform
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


def process_start(pid: int) -> str | None:
    """When a process began, comparable on this machine only; None if it does not run."""
    try:
        stat = (PROC / str(pid) / "stat").read_text()
        boot = (PROC / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return None
    # The name in parentheses may hold spaces; state is field 3 and the start field 22.
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else f"{boot}/{fields[19]}"


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
