"""What worker processes of `test_processes.py` run.

A module of its own: it imports no PyTorch, which would take a worker two seconds.
"""

from __future__ import annotations

import os
import time

from scanline.errors import RefusedError
from scanline.processes import ParentLink, SharedArrays

FIELDS = {"number": ((3,), "int64"), "flag": ((5,), "bool")}


def echo(link: ParentLink, offset: int) -> None:
    """Answers every code with the code plus its offset."""
    for code, _ in link.orders():
        link.answer(code + offset)


def adding(link: ParentLink, fd: int) -> None:
    shared = SharedArrays(FIELDS, fd).arrays
    for code, _ in link.orders():
        shared["number"][code] += 1
        link.answer(code)


def objects(link: ParentLink) -> None:
    for _, item in link.orders():
        link.answer(0, item * 2)


def failing(link: ParentLink) -> None:
    for _ in link.orders():
        raise KeyError("a reason of its own")


def sleeping(link: ParentLink) -> None:
    link.answer(os.getpid() % 1000)
    time.sleep(3600)


def mistaken(link: ParentLink) -> None:
    raise RefusedError("it must be 3; use 3.")
