"""What the second of two learners does in the tests of the exchange."""

from __future__ import annotations

import torch
from torch._C._distributed_c10d import TCPStore

from scanline.parameters import Learners, join
from scanline.processes import ParentLink


def joined(rank: int, store: TCPStore) -> Learners:
    return join(rank, 2, backend="gloo", store=store, timeout_seconds=60)


def second_learner(port: int) -> Learners:
    return joined(1, TCPStore("127.0.0.1", port, 2, is_master=False))


def second(link: ParentLink, port: int) -> None:
    """Mirrors every exchange of the test, in its order."""
    learners = second_learner(port)
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


def second_with_other_weights(link: ParentLink, port: int) -> None:
    second_learner(port).check_equal(network(-0.0), 7)  # equal to 0.0, but not the same bits


def second_that_dies(link: ParentLink, port: int) -> None:
    second_learner(port)
    raise SystemExit("gone")
