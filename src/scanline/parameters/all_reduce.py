"""All-reduce: what several learners agree on.

Takes tensors that every learner has in the same shapes; leaves their mean over all learners in
each. Moves small objects between learners, and checks that their parameters are the same.
Knows torch.distributed and nothing of networks, losses or loops.

A learner that dies closes its connections, so whatever waits for it fails at once; a process that
stands still or a machine that vanishes has no pulse. Either way the sentence names the learner and
says what to do. Sums are in the order of the ranks, so a mean does not depend on which learners
share a machine.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch._C._distributed_c10d import TCPStore

from ..addresses import connected_store
from ..devices import Device, download
from ..native_arrays import gapless_spans
from . import near
from .near import NearLearners
from .pulse import AbsentLearnerError, Pulse

CHECK_EVERY_UPDATES = 1_000
"""Updates between two comparisons of the learners' parameters."""
_LOOK = timedelta(seconds=1.0)
"""Time between two looks at the pulse of the others while waiting for them."""


class LearnerLostError(RuntimeError):
    """Another learner died, or does not answer."""


class LearnersDifferError(RuntimeError):
    """Parameters that must be equal on all learners are not."""


class Learners:
    """The learners of a run as one of them sees them; `join` makes it, and alone it is (0, 1)."""

    def __init__(self, rank: int = 0, count: int = 1, pulse: Pulse | None = None) -> None:
        self.rank, self.count, self._pulse = rank, count, pulse
        self.is_whole = True
        """Whether every learner has answered so far."""
        self.reason: Callable[[], str] = lambda: ""
        """Says more about a learner that was lost, where its process is known."""
        self.start_again = False
        """Whether what has started the learners starts all of them again when one is lost."""
        self._near: NearLearners | None = None
        self._checked_at = -1

    @property
    def leads(self) -> bool:
        """Whether this learner logs, saves and decides."""
        return self.rank == 0

    def meet(self) -> None:
        """From now on through shared memory, where all learners are on this machine."""
        with self._answered():
            self._near = near.meet(self.rank, self.count, self._numbers)

    def mean(self, tensors: Sequence[Tensor]) -> None:
        """Replaces each tensor by its mean over all learners, in one exchange per type."""
        spans = gapless_spans(tensors) if self._near is not None else None
        if self._near is not None and spans is not None:
            with self._answered():
                self._near.mean(spans, self._look)
            return
        for dtype in dict.fromkeys(tensor.dtype for tensor in tensors):
            group = [in_memory_order(tensor) for tensor in tensors if tensor.dtype == dtype]
            flat = torch.cat([tensor.reshape(-1) for tensor in group])
            flat = self._summed(flat)
            flat /= self.count
            parts = torch.split(flat, [tensor.numel() for tensor in group])
            for tensor, part in zip(group, parts, strict=True):
                tensor.copy_(part.view_as(tensor))

    def _summed(self, flat: Tensor) -> Tensor:
        """The sum over all learners; through the host where the exchange reaches no device."""
        is_direct = flat.is_cpu or flat.is_cuda
        exchanged = flat if is_direct else torch.from_numpy(download(flat))
        with self._answered():
            self._sum(exchanged)
        return flat if is_direct else Device.of(flat).upload(exchanged)

    def numbers(self, mine: int) -> list[int]:
        """Every learner's number, in their order."""
        with self._answered():
            return self._numbers(mine)

    def total(self, number: int) -> int:
        """The sum of every learner's number."""
        return sum(self.numbers(number))

    def ordered(self, order: int = 0) -> int:
        """A number that the leading learner tells to all: the cheap form of `broadcast`."""
        return self.numbers(order)[0]

    def gathered(self, item: Any) -> list[Any]:
        """On the leading learner every learner's item, in their order; elsewhere nothing."""
        data = pickle.dumps(item)
        num_bytes = max(self.numbers(len(data)))
        into = [torch.empty(num_bytes, dtype=torch.uint8) for _ in range(self.count)]
        with self._answered():
            self._wait(
                dist.gather(_padded(data, num_bytes), into if self.leads else None, **_LATER)
            )
        return [pickle.loads(each.numpy().tobytes()) for each in into] if self.leads else []

    def scattered(self, items: Sequence[Any] | None) -> Any:
        """The item that the leading learner has for this one."""
        data = [pickle.dumps(item) for item in items or ()]
        num_bytes = self.ordered(max(map(len, data), default=0))
        mine = torch.empty(num_bytes, dtype=torch.uint8)
        sent = [_padded(each, num_bytes) for each in data] if self.leads else None
        with self._answered():
            self._wait(dist.scatter(mine, sent, **_LATER))
        return pickle.loads(mine.numpy().tobytes())

    def broadcast(self, item: Any = None) -> Any:
        """What the leading learner tells to all; the others' items do not count."""
        data = pickle.dumps(item) if self.leads else b""
        message = _padded(data, self.ordered(len(data)))
        with self._answered():
            self._wait(dist.broadcast(message, src=0, **_LATER))
        return pickle.loads(message.numpy().tobytes())

    def check(self, network: nn.Module, update: int, *, now: bool) -> None:
        """`check_equal` now, for the first time, or because enough updates have passed."""
        if now or self._checked_at < 0 or update // CHECK_EVERY_UPDATES > self._checked_at:
            self._checked_at = update // CHECK_EVERY_UPDATES
            self.check_equal(network, update)

    def check_equal(self, network: nn.Module, update: int) -> None:
        """Refuses to go on with learners whose parameters differ."""
        digests = self.numbers(digest(network))
        different = [rank for rank, theirs in enumerate(digests) if theirs != digests[0]]
        if different:
            raise LearnersDifferError(
                f"After {update:,} updates the parameters of the learners {different} differ from "
                "those of learner 0. This is a fault of the program or of a machine, not of the "
                "settings; continue from an earlier checkpoint with --resume."
            )

    def leave(self, failure: BaseException) -> None:
        """Says to the others why this learner ends before the run does."""
        if self._pulse is not None:
            self._pulse.leave(next(iter(str(failure).splitlines()), type(failure).__name__))

    def close(self) -> None:
        """Ends the exchange; may be called twice. Waits for what a silent learner still owes."""
        if self._pulse is not None:
            self._pulse.close()
        if self._near is not None:
            self._near.close()
        if dist.is_initialized():
            dist.destroy_process_group()

    def _numbers(self, mine: int) -> list[int]:
        if self._near is not None:
            return self._near.numbers(mine, self._look)
        numbers = [torch.zeros(1, dtype=torch.int64) for _ in range(self.count)]
        self._wait(dist.all_gather(numbers, torch.tensor([mine]), **_LATER))
        return [int(number) for number in numbers]

    def _sum(self, flat: Tensor) -> None:
        """In the order of the ranks, as shared memory does it; of two numbers it is any order."""
        if self.count == 2 or not flat.is_cpu:
            self._wait(dist.all_reduce(flat, **_LATER))
            return
        size = -(-len(flat) // self.count)
        mine = torch.zeros(size * self.count, dtype=flat.dtype)
        mine[: len(flat)] = flat
        parts = torch.empty_like(mine)
        self._wait(dist.all_to_all_single(parts, mine, **_LATER))
        rows = parts.view(self.count, size)
        summed = rows[0].clone()
        for row in rows[1:]:
            summed += row
        self._wait(dist.all_gather(list(mine.view(self.count, size)), summed, **_LATER))
        flat.copy_(mine[: len(flat)])

    def _wait(self, work: dist.Work) -> None:
        """Until an exchange is done; a wait that ends before that looks around and goes on."""
        while True:
            try:
                work.wait(_LOOK)
                return
            except RuntimeError:
                if work.is_completed():
                    raise
            self._look()

    def _look(self) -> None:
        if self._pulse is not None:
            self._pulse.check()

    @contextmanager
    def _answered(self) -> Iterator[None]:
        try:
            yield
        except RuntimeError as error:
            self.is_whole = False
            end = "The run ends; continue it with --resume."
            if self.start_again:
                end = "All learners end, and start again from the last checkpoint."
            raise LearnerLostError(
                f"Learner {self.rank} of {self.count} lost another learner: {self._cause(error)} "
                f"{end}"
            ) from error

    def _cause(self, error: RuntimeError) -> str:
        if self._pulse is not None:
            self._pulse.leave()
        known = str(error) if isinstance(error, AbsentLearnerError) else ""
        missing = self._pulse.missing if self._pulse is not None else str
        return self.reason() or known or missing() or str(error).splitlines()[0]


_LATER: dict[str, Any] = {"async_op": True}
"""An exchange is begun, and waited for by `Learners._wait`."""


def join(  # noqa: PLR0913 (each is a choice of its own)
    rank: int,
    count: int,
    *,
    backend: str,
    store: TCPStore,
    timeout_seconds: float,
    silent_seconds: float,
    is_near: bool = False,
) -> Learners:
    """Waits until all learners are there; `is_near`: whether all are on this machine.

    `timeout_seconds` is the longest wait for one exchange with learners that have a pulse,
    `silent_seconds` that for one without.
    """
    pulse = Pulse(connected_store(store.host, store.port), rank, count, silent_seconds)
    limit = timedelta(seconds=timeout_seconds)
    dist.init_process_group(backend, store=store, rank=rank, world_size=count, timeout=limit)
    pulse.begin()
    learners = Learners(rank, count, pulse)
    if is_near:
        learners.meet()
    return learners


def _padded(data: bytes, num_bytes: int) -> Tensor:
    """Bytes as a tensor; pickle does not read what is behind its end."""
    return torch.frombuffer(bytearray(data.ljust(num_bytes, b"\0")), dtype=torch.uint8)


def in_memory_order(tensor: Tensor) -> Tensor:
    """The same numbers, axes in the order of memory: flattening a dense tensor copies nothing."""
    return tensor.permute(sorted(range(tensor.dim()), key=tensor.stride, reverse=True))


def digest(network: nn.Module) -> int:
    """63 bits that depend on every bit of the parameters and buffers."""
    found = hashlib.blake2b(digest_size=8)
    for tensor in network.state_dict().values():
        found.update(download(tensor.detach().contiguous().view(torch.uint8)).tobytes())
    return int.from_bytes(found.digest(), "little") >> 1
