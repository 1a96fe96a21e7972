"""Published weights: what threads may read while one of them writes.

Takes a learner's parameters; gives snapshots, each a complete copy with the number of updates in
it, and applies gradients that were computed on one. Knows no thread's work.

One set of weights changes, under one lock: gradients are computed beside each other and applied one
after another, each its own. After every update the weights are copied into a buffer without users,
and that buffer is the newest snapshot. A snapshot in use is never written: no layer of one version
beside a layer of another. With torn reads, the mode of GA3C, there is a single snapshot that shares
the memory of the weights: reading takes no lock and sees whatever is there. The algorithm's own
tensors (statistics of pixels) come with the weights. They are sums: two threads that count on from
one snapshot both count.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from ..records import State, Views
from .chunked import NotFiniteGradientError
from .local import LocalParameters, Norm, tensors, trainable_groups

_LOCK_SECONDS = 60.0


@dataclass(eq=False)
class Snapshot:
    """One complete copy of the weights."""

    views: Views
    version: int
    """Updates in it; with torn reads those at the moment of acquiring."""
    num_users: int = 0


class Published:
    """A learner's parameters, for many reading threads and several that bring gradients."""

    def __init__(self, parameters: LocalParameters, torn_reads: bool = False) -> None:
        self.parameters, self._torn_reads = parameters, torn_reads
        self._updating, self._choosing = threading.Lock(), threading.Lock()
        self._snapshots = [self._alias() if torn_reads else self._fresh()]
        self._newest = self._snapshots[0]

    @property
    def version(self) -> int:
        """Updates so far."""
        return self.parameters.version

    @contextmanager
    def reading(self) -> Iterator[Snapshot]:
        """The newest snapshot, unchanged inside the block unless reads may be torn."""
        with self._choosing:
            found = self._newest
            found.num_users += 1
            if self._torn_reads:
                found = replace(found, version=self.version)
        try:
            yield found
        finally:
            with self._choosing:
                self._snapshots[self._place(found)].num_users -= 1

    def source(self) -> Callable[[], tuple[Views, int]]:
        """Gives the newest weights whenever it is asked, in a copy of their own."""
        own = copy.deepcopy(self.parameters.network).requires_grad_(False)

        def newest() -> tuple[Views, int]:
            with self.reading() as snapshot, torch.no_grad():
                torch._foreach_copy_(tensors(own), tensors(snapshot.views.live))
                return Views(own, state=snapshot.views.state), snapshot.version

        return newest

    def apply(
        self,
        losses: Mapping[str, Tensor],
        snapshot: Snapshot,
        learning_rate: float,
        state: Mapping[str, Tensor] | None = None,
    ) -> tuple[dict[str, Norm], int]:
        """One update with gradients of a snapshot; gives their norms and the updates before it.

        `state` is the algorithm's, counted on from the snapshot's; what it adds to that is added.
        A loss that is no finite number is refused: the weights stay as they are.
        """
        refuse_not_finite(losses, learning_rate, self.version)
        gradients = gradients_of(snapshot.views.live, losses)
        with self._locked():
            before = self.version
            norms = self.parameters.apply_gradients(gradients, learning_rate)
            if state:
                self._count(state, snapshot)
            self._publish()
        return norms, before

    def _count(self, state: Mapping[str, Tensor], snapshot: Snapshot) -> None:
        now, then = self.parameters.views.state, snapshot.views.state
        self.parameters.keep({name: now[name] + (state[name] - then[name]) for name in state})

    @contextmanager
    def _locked(self) -> Iterator[None]:
        if not self._updating.acquire(timeout=_LOCK_SECONDS):
            raise RuntimeError(f"Another update has not ended within {_LOCK_SECONDS:g} seconds.")
        try:
            yield
        finally:
            self._updating.release()

    def _publish(self) -> None:
        """Makes the weights the newest snapshot; with torn reads they are it already."""
        if self._torn_reads:
            self._newest.views = self._with_state(self._newest.views)
            return
        with self._choosing:
            free = [s for s in self._snapshots if not s.num_users and s is not self._newest]
            chosen = free[0] if free else self._fresh()
            if not free:
                self._snapshots.append(chosen)
        with torch.no_grad():  # nobody can hold it: only the newest one is handed out
            torch._foreach_copy_(tensors(chosen.views.live), tensors(self.parameters.network))
        chosen.version, chosen.views = self.version, self._with_state(chosen.views)
        with self._choosing:
            self._newest = chosen

    def _fresh(self) -> Snapshot:
        views = self.parameters.views
        return Snapshot(Views(copy.deepcopy(views.live), state=views.state), self.version)

    def _with_state(self, views: Views) -> Views:
        return replace(views, state=self.parameters.views.state)

    def _alias(self) -> Snapshot:
        """A network of its own whose parameters are the same memory."""
        made = self._fresh()
        for mine, own in zip(
            made.views.live.parameters(), self.parameters.network.parameters(), strict=True
        ):
            mine.data = own.data
        return made

    def _place(self, found: Snapshot) -> int:
        lives = [snapshot.views.live for snapshot in self._snapshots]
        return next(place for place, live in enumerate(lives) if live is found.views.live)

    def state(self) -> State:
        with self._locked():
            return self.parameters.state()

    def load(self, state: State) -> None:
        with self._locked():
            self.parameters.load(state)
            self._publish()


def gradients_of(
    network: nn.Module, losses: Mapping[str, Tensor]
) -> dict[str, list[Tensor | None]]:
    """Gradients of every group's loss, in the order of its parameters; writes nothing."""
    groups = {n: members for n, members in trainable_groups(network).items() if n in losses}
    last = len(groups) - 1
    return {
        name: list(
            torch.autograd.grad(
                losses[name], members, retain_graph=number < last, allow_unused=True
            )
        )
        for number, (name, members) in enumerate(groups.items())
    }


def refuse_not_finite(losses: Mapping[str, Tensor], rate: float, version: int) -> None:
    if not all(bool(torch.isfinite(loss)) for loss in losses.values()):
        shown = ", ".join(f"{name}={loss.item():g}" for name, loss in losses.items())
        raise NotFiniteGradientError(
            f"after {version:,} updates the losses were {shown}, the learning rate {rate}. The "
            "weights are as they were; a smaller learning rate, or a log_epsilon above 0, usually "
            "helps."
        )
