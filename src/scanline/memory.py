"""Memory: how much is left, and a refusal before more is taken.

Takes numbers of bytes; gives what this process may still take, words for a number of bytes, and a
sentence where something does not fit. Knows nothing of what the bytes are for.
"""

from __future__ import annotations

import math
from pathlib import Path

import psutil

from .errors import RefusedError


def available_bytes() -> float:
    """Memory that this process may still take: the machine's, or its control group's if less."""
    return min(float(psutil.virtual_memory().available), _group_bytes())


def _group_bytes() -> float:
    folder = Path("/sys/fs/cgroup")
    try:
        limit = (folder / "memory.max").read_text().strip()
        used = int((folder / "memory.current").read_text())
        return math.inf if limit == "max" else int(limit) - used
    except (OSError, ValueError):  # no control groups, or the first version of them
        return math.inf


def refuse_if_too_large(
    num_bytes: float,
    what: str,
    remedy: str,
    *,
    free: float | None = None,
    place: str = "this machine",
) -> None:
    """To be called before the memory is taken; `free` bytes are the machine's by default."""
    free = available_bytes() if free is None else free
    if num_bytes > free:
        raise RefusedError(
            f"{what} take {in_words(num_bytes)}, but {place} has {in_words(free)} left; {remedy}."
        )


def in_words(num_bytes: float) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if num_bytes >= size:
            return f"{num_bytes / size:.2f} {unit}"
    return f"{int(num_bytes)} bytes"
