"""All-reduce: what several learners agree on.

Takes tensors that every learner has in the same shapes; leaves their mean over all learners in
each. Moves small objects between learners, and checks that their parameters are the same.
Knows torch.distributed and nothing of networks, losses or loops.

A learner that dies closes its connections, so whoever waits for it fails at once; a machine that
vanishes is noticed by the time limit. Either way the sentence says what happened and what to do.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch._C._distributed_c10d import Store

CHECK_EVERY_UPDATES = 1_000
"""Updates between two comparisons of the learners' parameters."""


class LearnerLostError(RuntimeError):
    """Another learner died, or does not answer."""


class LearnersDifferError(RuntimeError):
    """Parameters that must be equal on all learners are not."""


class Learners:
    """The learners of a run as one of them sees them; `join` makes it, and alone it is (0, 1)."""

    def __init__(self, rank: int = 0, count: int = 1) -> None:
        self.rank, self.count = rank, count
        self.is_whole = True
        """Whether every learner has answered so far."""
        self.reason: Callable[[], str] = lambda: ""
        """Says more about a learner that was lost, where its process is known."""
        self._checked_at = -1

    @property
    def leads(self) -> bool:
        """Whether this learner logs, saves and decides."""
        return self.rank == 0

    def mean(self, tensors: Sequence[Tensor]) -> None:
        """Replaces each tensor by its mean over all learners, in one exchange per type."""
        for dtype in dict.fromkeys(tensor.dtype for tensor in tensors):
            group = [in_memory_order(tensor) for tensor in tensors if tensor.dtype == dtype]
            flat = torch.cat([tensor.reshape(-1) for tensor in group])
            with self._answered():
                dist.all_reduce(flat)
            flat /= self.count
            parts = torch.split(flat, [tensor.numel() for tensor in group])
            for tensor, part in zip(group, parts, strict=True):
                tensor.copy_(part.view_as(tensor))

    def total(self, number: int) -> int:
        """The sum of every learner's number."""
        summed = torch.tensor([number])
        with self._answered():
            dist.all_reduce(summed)
        return int(summed)

    def gathered(self, item: Any) -> list[Any]:
        """On the leading learner every learner's item, in their order; elsewhere nothing."""
        items: list[Any] | None = [None] * self.count if self.leads else None
        with self._answered():
            dist.gather_object(item, items)
        return items or []

    def scattered(self, items: Sequence[Any] | None) -> Any:
        """The item that the leading learner has for this one."""
        mine: list[Any] = [None]
        with self._answered():
            dist.scatter_object_list(mine, list(items) if items is not None else None)
        return mine[0]

    def broadcast(self, item: Any = None) -> Any:
        """What the leading learner tells to all; the others' items do not count."""
        items = [item if self.leads else None]
        with self._answered():
            dist.broadcast_object_list(items, src=0)
        return items[0]

    def ordered(self, order: int = 0) -> int:
        """A number that the leading learner tells to all: the cheap form of `broadcast`."""
        message = torch.tensor([order])
        with self._answered():
            dist.broadcast(message, src=0)
        return int(message)

    def check(self, network: nn.Module, update: int, *, now: bool) -> None:
        """`check_equal` now, for the first time, or because enough updates have passed."""
        if now or self._checked_at < 0 or update // CHECK_EVERY_UPDATES > self._checked_at:
            self._checked_at = update // CHECK_EVERY_UPDATES
            self.check_equal(network, update)

    def check_equal(self, network: nn.Module, update: int) -> None:
        """Refuses to go on with learners whose parameters differ."""
        mine = torch.tensor([digest(network)])
        all_of_them = [torch.zeros_like(mine) for _ in range(self.count)]
        with self._answered():
            dist.all_gather(all_of_them, mine)
        different = [rank for rank, theirs in enumerate(all_of_them) if theirs != all_of_them[0]]
        if different:
            raise LearnersDifferError(
                f"After {update:,} updates the parameters of the learners {different} differ from "
                "those of learner 0. This is a fault of the program or of a machine, not of the "
                "settings; continue from an earlier checkpoint with --resume."
            )

    def close(self) -> None:
        """Ends the exchange; may be called twice."""
        if dist.is_initialized():
            dist.destroy_process_group()

    @contextmanager
    def _answered(self) -> Iterator[None]:
        try:
            yield
        except RuntimeError as error:
            self.is_whole = False
            reason = self.reason() or str(error).splitlines()[0]
            raise LearnerLostError(
                f"Learner {self.rank} of {self.count} lost another learner: {reason} "
                "The run ends; continue it with --resume."
            ) from error


def join(
    rank: int, count: int, *, backend: str, store: Store | None, timeout_seconds: float
) -> Learners:
    """Waits until all learners are there; without a store torchrun's variables say where."""
    dist.init_process_group(
        backend,
        store=store,
        rank=rank,
        world_size=count,
        timeout=timedelta(seconds=timeout_seconds),
    )
    return Learners(rank, count)


def in_memory_order(tensor: Tensor) -> Tensor:
    """The same numbers, axes in the order of memory: flattening a dense tensor copies nothing."""
    return tensor.permute(sorted(range(tensor.dim()), key=tensor.stride, reverse=True))


def digest(network: nn.Module) -> int:
    """63 bits that depend on every bit of the parameters and buffers."""
    found = hashlib.blake2b(digest_size=8)
    for tensor in network.state_dict().values():
        found.update(tensor.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes())
    return int.from_bytes(found.digest(), "little") >> 1
