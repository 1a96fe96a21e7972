"""What the second of two learners does in the tests of the exchange."""

from __future__ import annotations

import os
import signal
from typing import Any

import torch
from torch._C._distributed_c10d import TCPStore

from scanline.parameters import Learners, join
from scanline.processes import ParentLink


def joined(
    rank: int, store: TCPStore, *, count: int = 2, is_near: bool = False, silent: float = 60.0
) -> Learners:
    return join(
        rank,
        count,
        backend="gloo",
        store=store,
        timeout_seconds=60.0,
        silent_seconds=silent,
        is_near=is_near,
    )


def second_learner(port: int, **choices: Any) -> Learners:
    return joined(1, TCPStore("127.0.0.1", port, 2, is_master=False), **choices)


def second(link: ParentLink, port: int, is_near: bool) -> None:
    """Mirrors every exchange of the test, in its order."""
    learners = second_learner(port, is_near=is_near)
    gradient = torch.full((2, 3, 4, 4), 4.0).to(memory_format=torch.channels_last)
    learners.mean([gradient, torch.tensor([5.0], dtype=torch.float64)])
    total = learners.total(3)
    learners.gathered("second")
    mine = learners.scattered(None)
    heard = learners.broadcast("not this"), learners.ordered(9)
    learners.check_equal(network(0.5), 0)
    link.answer(0, (total, mine, heard, float(gradient.mean())))


def network(bias: float) -> torch.nn.Module:
    made = torch.nn.Linear(1, 1)
    made.weight.data.fill_(1.0)
    made.bias.data.fill_(bias)
    return made


def one_of_three(link: ParentLink, port: int, is_near: bool, rank: int) -> None:
    """Gives its mean of numbers whose sum depends on the order."""
    learners = joined(rank, TCPStore("127.0.0.1", port, 3, is_master=False), **three(is_near))
    numbers = third_of_three(rank)
    learners.mean([numbers])
    link.answer(0, numbers.tolist())
    learners.close()


def three(is_near: bool) -> dict[str, Any]:
    return {"count": 3, "is_near": is_near}


def third_of_three(rank: int) -> torch.Tensor:
    """More than one piece of shared memory, and no multiple of three."""
    return torch.randn(300_001, generator=torch.Generator().manual_seed(rank))


def second_with_other_weights(link: ParentLink, port: int) -> None:
    second_learner(port).check_equal(network(-0.0), 7)  # equal to 0.0, but not the same bits


def second_that_dies(link: ParentLink, port: int, is_near: bool) -> None:
    second_learner(port, is_near=is_near)
    raise SystemExit("gone")


def second_that_stops(link: ParentLink, port: int) -> None:
    second_learner(port)
    os.kill(os.getpid(), signal.SIGSTOP)


def second_that_fails(link: ParentLink, port: int) -> None:
    learners = second_learner(port)
    learners.leave(OSError("No space left on device"))
    os._exit(1)
