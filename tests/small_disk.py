"""A small disk for tests: a real file system that can be filled, where the system lets us mount it.

Takes a folder; gives it as a tmpfs of a few megabytes, and functions that fill and free it.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

FILLER = "filler"


@contextmanager
def mounted(folder: Path, size: str) -> Iterator[Path]:
    """The folder as a disk of that size; the test is skipped where mounting is not allowed."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder]
    if subprocess.run(command, capture_output=True).returncode:
        pytest.skip("mounting a small disk needs root")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def fill(disk: Path) -> None:
    """Leaves no page of the disk free."""
    with suppress(OSError), open(disk / FILLER, "ab", buffering=0) as file:
        while True:
            file.write(bytes(4096))


def free(disk: Path) -> None:
    (disk / FILLER).unlink()
