"""What the system tells has the right size."""

from __future__ import annotations

import json
import mmap
import os
import subprocess
import sys

import numpy as np

from scanline.machine import (
    machine_record,
    process_start,
    total_memory_bytes,
    used_memory_bytes,
)
from scanline.processes import granted_cores


def test_memory_grows_with_what_is_held() -> None:
    before = used_memory_bytes()
    pages = mmap.mmap(-1, 64 * 2**20)  # fresh ones: the heap may have some left over
    block = np.frombuffer(pages, np.uint8)
    block[:] = 1
    after = used_memory_bytes()
    assert 50 * 2**20 < after - before < 90 * 2**20
    assert after < total_memory_bytes()
    assert block.any()


def test_children_count() -> None:
    before = used_memory_bytes()
    script = "block = bytearray(64 * 2**20); print(flush=True); input()"
    child = subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert child.stdout is not None
    child.stdout.readline()
    assert used_memory_bytes() - before > 50 * 2**20
    child.communicate(b"\n")


def test_a_process_is_known_by_number_and_start() -> None:
    started = process_start(os.getpid())
    assert started is not None
    assert process_start(os.getpid()) == started
    assert process_start(os.getppid()) != started
    assert process_start(2**22 + 1) is None


def test_the_record_is_json() -> None:
    record = json.loads(json.dumps(machine_record()))
    assert record["num_cores"] == granted_cores() >= 1
