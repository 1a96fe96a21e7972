"""Learners of one machine: numbers and means through memory that they share.

Takes `numbers`, an exchange of one number per learner over a network, to find each other; gives the
same numbers and means without it. Knows processes and memory, nothing of networks or losses.

The memory has no name: the others open it through the leading process, so nothing is left behind
by a process that is killed. Where that is not possible (no Linux, other users) there is none.
"""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Callable
from contextlib import suppress

from .._native import SharedMean
from ..native_arrays import Span
from ..processes import SharedArrays
from .pulse import AbsentLearnerError

_LOOK_SECONDS = 0.2
"""Time between two looks at the other processes while waiting for them."""

Numbers = Callable[[int], list[int]]
"""Gives every learner's number, in their order."""


class NearLearners:
    """Learners whose processes share memory; all make the same calls in the same order."""

    def __init__(self, memory: SharedArrays, rank: int, pids: list[int]) -> None:
        self._memory, self._count = memory, len(pids)
        block = memory.arrays["block"]
        self._shared = SharedMean((block.ctypes.data, block.nbytes), rank, self._count)
        self._ranks: dict[int, int] = {}
        """File descriptor that tells of a process' end, to its rank."""
        self._poller = select.poll()
        for other, pid in enumerate(pids):
            with suppress(OSError):  # an old system: the pulse tells of it, though later
                self._watch(other, pid)

    def _watch(self, rank: int, pid: int) -> None:
        if pid != os.getpid():
            fd = os.pidfd_open(pid)
            self._ranks[fd] = rank
            self._poller.register(fd, select.POLLIN)

    def numbers(self, mine: int, check: Callable[[], None]) -> list[int]:
        """`check` raises when there is no sense in waiting any longer."""
        self._shared.say(mine)
        self._wait(check)
        return [self._shared.heard(rank) for rank in range(self._count)]

    def mean(self, spans: list[Span], check: Callable[[], None]) -> None:
        """Replaces float32 arrays without gaps by their means over all learners."""
        for first in range(0, sum(num for _, num in spans), SharedMean.PIECE_FLOATS):
            self._shared.put(spans, first)
            self._wait(check)
            self._shared.reduce()
            self._wait(check)
            self._shared.take(spans, first)

    def _wait(self, check: Callable[[], None]) -> None:
        while not self._shared.wait(_LOOK_SECONDS):
            if ended := sorted(self._ranks[fd] for fd, _ in self._poller.poll(0)):
                raise AbsentLearnerError(f"learner {ended[0]} has ended.")
            check()

    def close(self) -> None:
        """Gives back descriptors; may be called twice."""
        for fd in self._ranks:
            os.close(fd)
        self._ranks = {}


def meet(rank: int, count: int, numbers: Numbers) -> NearLearners | None:
    """Memory that all learners have mapped; None, on all of them, where one of them cannot."""
    fields = {"block": ((SharedMean.block_bytes(count),), "u1")}
    memory = SharedArrays(fields) if rank == 0 and sys.platform == "linux" else None
    pids, fds = numbers(os.getpid()), numbers(memory.fd if memory else -1)
    if rank:
        with suppress(OSError):
            fd = os.open(f"/proc/{pids[0]}/fd/{fds[0]}", os.O_RDWR | os.O_CLOEXEC)
            memory = SharedArrays(fields, fd)
    can = all(numbers(int(memory is not None)))
    if memory is not None:
        memory.close_fd()
    return NearLearners(memory, rank, pids) if can and memory is not None else None
