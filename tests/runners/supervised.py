"""Learner processes of the tests of supervision: one that reports, one that dies, one is silent."""

from __future__ import annotations

import os
import time

from scanline.processes import ParentLink
from scanline.runners.supervise import show_stack_when_asked


def reporting(link: ParentLink, num: int) -> None:
    link.answer(0)
    orders = link.orders()
    next(orders)
    for step in range(num):
        link.answer(0, step)
    next(orders, None)  # until the parent closes the pipe


def dying(link: ParentLink) -> None:
    link.answer(0)
    next(link.orders())
    os._exit(7)


def silent(link: ParentLink) -> None:
    show_stack_when_asked()
    link.answer(0)
    next(link.orders())
    time.sleep(60.0)
