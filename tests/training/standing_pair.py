"""Two learners that stay: the second is one process for many runs.

Takes a plan and a folder; leaves the run that `--learners 2` would. Used where the start of
processes is not the point: that costs seconds, a small run of two learners a fraction of one.
"""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

from torch._C._distributed_c10d import TCPStore

from scanline import processes
from scanline.parameters import Learners, join
from scanline.processes import ParentLink
from scanline.runs.signals import Signals
from scanline.training import Plan
from scanline.training.train import follow, lead

_HOST, _SECONDS = "127.0.0.1", 60.0


class StandingPair:
    """This process leads; another one follows in every run until `close`."""

    def __init__(self) -> None:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
        self._pool = processes.start_workers(follows, [()])

    def train(self, plan: Plan, out: Path, resume: bool = False) -> None:
        store = TCPStore(_HOST, 0, 2, is_master=True, wait_for_workers=False)
        self._pool.workers[0].order(0, (plan, store.port))
        with closing(_joined(0, store)) as learners, Signals() as signals:
            quiet = {"say": lambda sentence: None, "signals": signals}
            lead(plan, learners, out=out, resume=resume, **quiet)
        assert self._pool.answers(_SECONDS), "the second learner did not end its run"

    def close(self) -> None:
        self._pool.close()


def follows(link: ParentLink) -> None:
    """The life of the second learner."""
    for _, (plan, port) in link.orders():
        with closing(_joined(1, TCPStore(_HOST, port, 2, is_master=False))) as learners:
            follow(plan, learners)
        link.answer(0)


def _joined(rank: int, store: TCPStore) -> Learners:
    limits = {"timeout_seconds": _SECONDS, "silent_seconds": _SECONDS}
    return join(rank, 2, backend="gloo", store=store, **limits)
