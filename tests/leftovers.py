"""What this process holds of the system: child processes and blocks of shared memory.

Tests compare it before and after. Threads and files may end while they are listed: what has ended
is not held.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path


def children() -> set[int]:
    """Processes that this one has started and that still run."""
    found: set[int] = set()
    for thread in Path("/proc/self/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):
            found.update(map(int, (thread / "children").read_text().split()))
    return found


def mapped_blocks() -> int:
    """Blocks of shared memory that this process maps."""
    return Path("/proc/self/maps").read_text().count("memfd:scanline")


def open_blocks() -> int:
    """Blocks of shared memory that this process holds open."""
    return sum("memfd:scanline" in target for target in _open_files())


def _open_files() -> Iterator[str]:
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):
            yield str(descriptor.readlink())
