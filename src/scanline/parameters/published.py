"""Published weights: what threads may read while one of them writes.

Takes a learner's parameters; is itself `Parameters`, for any number of threads. `read` gives the
newest snapshot, a complete copy of the weights, and `apply` moves the weights by losses that were
computed on one. Knows no thread's work.

One set of weights changes, under one lock: gradients are computed beside each other and applied one
after another, each its own. After every update the weights are copied into a buffer that no thread
uses, and that is the newest snapshot. A snapshot is leased to the thread that read it until it
reads again or ends, and is not written meanwhile: no layer of one version beside a layer of
another. With torn reads, the mode of GA3C, there is a single snapshot that shares the memory of the
weights: reading takes no lock and sees whatever is there. The algorithm's own tensors (statistics
of pixels) come with the weights. They are sums: two threads that count on from one snapshot both
count.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ..interfaces import Metric
from ..records import State, Views
from .local import LocalParameters, not_finite, tensors

_LOCK_SECONDS = 60.0


@dataclass(frozen=True, eq=False)
class Snapshot:
    """One complete copy of the weights; with torn reads the weights themselves."""

    views: Views
    version: int
    """Updates in it; with torn reads those at the moment of reading."""


class _Lease(threading.local):
    """What the calling thread has read and applied last."""

    snapshot: Snapshot | None = None
    applied_at: int = 0


class Published:
    """A learner's parameters, for many reading threads and several that bring losses."""

    def __init__(self, parameters: LocalParameters, torn_reads: bool = False) -> None:
        self.parameters, self._torn_reads = parameters, torn_reads
        self._updating, self._choosing = threading.Lock(), threading.Lock()
        self._lease = _Lease()
        self._leases: dict[threading.Thread, torch.nn.Module] = {}
        self._newest = self._alias() if torn_reads else self._copy()
        self._buffers = [self._newest.views.live]

    @property
    def version(self) -> int:
        """Updates so far."""
        return self.parameters.version

    def leased(self) -> tuple[Views, int]:
        """The snapshot that the calling thread has read last, and the updates in it."""
        snapshot = self._lease.snapshot or self._newest
        return snapshot.views, snapshot.version

    @property
    def applied_at(self) -> int:
        """Updates before the last one of the calling thread."""
        return self._lease.applied_at

    def read(self) -> Views:
        """The newest snapshot; unchanged until this thread reads again, unless reads are torn."""
        with self._choosing:
            newest = self._newest
            self._leases[threading.current_thread()] = newest.views.live
        if self._torn_reads:
            newest = replace(newest, version=self.version)
        self._lease.snapshot = newest
        return newest.views

    def keep(self, state: Mapping[str, Tensor] | None) -> None:
        """Adds what was counted since the calling thread's snapshot; the next one shows it."""
        if not state:
            return
        then = (self._lease.snapshot or self._newest).views.state
        with self._locked():
            now = self.parameters.views.state
            self.parameters.keep({name: now[name] + (state[name] - then[name]) for name in state})

    def apply(
        self, views: Views, losses: Mapping[str, Tensor], agent_steps: int
    ) -> dict[str, Metric]:
        """One update by losses of a snapshot that this thread has read.

        A loss that is no finite number is refused: the weights stay as they are.
        """
        if any(loss.is_cpu and not bool(torch.isfinite(loss)) for loss in losses.values()):
            rate = self.parameters.learning_rate(agent_steps)
            raise not_finite(losses, self.version, rate)
        gradients = self.parameters.gradients(views, losses)
        with self._locked():
            self._lease.applied_at = self.version
            metrics = self.parameters.step(gradients, agent_steps)
            self._publish()
        return metrics

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
        live = self._newest.views.live
        if not self._torn_reads:
            live = self._free_buffer()
            with torch.no_grad():  # no thread can read it before it is the newest
                torch._foreach_copy_(tensors(live), tensors(self.parameters.network))
        views = Views(live, state=self.parameters.views.state)
        with self._choosing:
            self._newest = Snapshot(views, self.version)

    def _free_buffer(self) -> torch.nn.Module:
        """A network that no living thread has read last; a new one if there is none."""
        with self._choosing:
            self._leases = {t: live for t, live in self._leases.items() if t.is_alive()}
            used = [*self._leases.values(), self._newest.views.live]
            free = [each for each in self._buffers if not any(each is one for one in used)]
        if not free:
            free = [copy.deepcopy(self.parameters.network)]
            self._buffers.append(free[0])
        return free[0]

    def _copy(self) -> Snapshot:
        live = copy.deepcopy(self.parameters.network)
        return Snapshot(Views(live, state=self.parameters.views.state), self.version)

    def _alias(self) -> Snapshot:
        """A network of its own whose parameters are the same memory."""
        made, network = self._copy(), self.parameters.network
        for name, own in network.named_parameters():
            module, _, last = name.rpartition(".")
            # `data` has a version of its own: torn reads are no error of a backward pass.
            shared = torch.nn.Parameter(own.data, own.requires_grad)
            setattr(made.views.live.get_submodule(module), last, shared)
        return made

    def state(self) -> State:
        with self._locked():
            return self.parameters.state()

    def load(self, state: State) -> None:
        with self._locked():
            self.parameters.load(state)
            self._publish()
