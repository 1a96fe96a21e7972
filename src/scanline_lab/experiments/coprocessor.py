"""A simulated coprocessor: waits where a device would compute.

Takes a latency per call and a time per item; makes an algorithm's acting and learning wait on the
clock as if a device did its work. Knows no device; whatever is measured with it is simulated and
must be labelled so.

Two costs, because devices have two. A call spends `seconds_per_call` on launch and transfer, in
which other calls may be under way; then its items occupy the device for `seconds_per_item` each,
one call after the other, in the order of arrival. The waiting thread holds neither a core nor the
interpreter, as one that waits for a real device does not.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from torch import Tensor, nn

from scanline.interfaces import Algorithm
from scanline.random import Choice
from scanline.records import (
    ActContext,
    Acted,
    Batch,
    Column,
    Experience,
    LossResult,
    Outputs,
    PolicyValue,
    QValues,
    Slot,
    Spaces,
    Views,
)

LEARNING_ITEMS = 4
"""What learning from one step costs in items: a forward of the target, one of the live network, and
a backward of twice that."""


class SimulatedCoprocessor:
    """One device, shared by any number of threads."""

    def __init__(
        self,
        seconds_per_call: float,
        seconds_per_item: float,
        clock_seconds: Callable[[], float] = time.perf_counter,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        if seconds_per_call < 0 or seconds_per_item < 0:
            raise ValueError(
                f"seconds_per_call={seconds_per_call} and seconds_per_item={seconds_per_item} "
                "must not be negative."
            )
        self.seconds_per_call, self.seconds_per_item = seconds_per_call, seconds_per_item
        self._clock_seconds, self._sleep = clock_seconds, sleep
        self._lock = threading.Lock()
        self._free_at = float("-inf")
        self.num_calls = 0
        self.busy_seconds = 0.0
        """Time for which items have occupied the device."""

    def compute(self, num_items: int) -> None:
        """Waits until the device would have done a call with so many items."""
        done_at = self._reserve(num_items)
        while (left := done_at - self._clock_seconds()) > 0:
            self._sleep(left)

    def _reserve(self, num_items: int) -> float:
        """The end of a call that arrives now."""
        work = num_items * self.seconds_per_item
        with self._lock:
            begins = max(self._clock_seconds() + self.seconds_per_call, self._free_at)
            self._free_at = begins + work
            self.num_calls += 1
            self.busy_seconds += work
            return self._free_at


@dataclass(frozen=True)
class AlgorithmWrapper:
    """An algorithm that does what the one inside does; subclasses change some of it."""

    inner: Algorithm

    @property
    def head(self) -> str | Callable[..., nn.Module]:
        return self.inner.head

    @property
    def needs(self) -> frozenset[str]:
        return self.inner.needs

    @property
    def gives(self) -> frozenset[str]:
        return self.inner.gives

    @property
    def losses(self) -> tuple[str, ...]:
        return self.inner.losses

    def columns(self, spaces: Spaces) -> Mapping[str, Column]:
        return self.inner.columns(spaces)

    @property
    def draws_per_step(self) -> int:
        return self.inner.draws_per_step

    def init(self, spaces: Spaces, num_envs: int) -> Mapping[str, Tensor]:
        return self.inner.init(spaces, num_envs)

    def spanning(self, agent_steps: int) -> Algorithm:
        return replace(self, inner=self.inner.spanning(agent_steps))

    @property
    def evaluation_choice(self) -> Choice:
        return self.inner.evaluation_choice

    def inputs(self, views: Views, observations: Tensor) -> Tensor:
        return self.inner.inputs(views, observations)

    def act(self, outputs: Outputs, context: ActContext) -> Acted:
        return self.inner.act(outputs, context)

    def prepare(self, views: Views, slot: Slot) -> Experience:
        return self.inner.prepare(views, slot)

    def loss(self, views: Views, batch: Batch) -> LossResult:
        return self.inner.loss(views, batch)


@dataclass(frozen=True)
class OnCoprocessor(AlgorithmWrapper):
    """An algorithm whose acting and learning wait for a simulated device.

    Give it a network that costs next to nothing: the waiting stands for the real one.
    """

    device: SimulatedCoprocessor

    def act(self, outputs: Outputs, context: ActContext) -> Acted:
        acted = self.inner.act(outputs, context)
        self.device.compute(len(acted.actions))
        return acted

    def loss(self, views: Views, batch: Batch) -> LossResult:
        result = self.inner.loss(views, batch)
        self.device.compute(LEARNING_ITEMS * len(batch.actions))
        return result


class NextToNothing(nn.Module):
    """Sixteen pixels and one small layer: stands where a simulated device computes."""

    def __init__(self, spaces: Spaces, num_outputs: int) -> None:
        super().__init__()
        self._step = max(1, math.prod(spaces.frame_shape) // 16)
        self.layer = nn.Linear(16, num_outputs)

    def forward(self, observations: Tensor) -> Tensor:
        pixels = observations[:, -1].flatten(1)[:, :: self._step][:, :16]
        outputs: Tensor = self.layer(pixels / 255.0)
        return outputs


class TinyQ(NextToNothing):
    """Values of all actions."""

    def __init__(self, spaces: Spaces) -> None:
        super().__init__(spaces, spaces.num_actions)

    def forward(self, observations: Tensor) -> QValues:  # type: ignore[override]
        return QValues(super().forward(observations))


class TinyPolicy(NextToNothing):
    """A policy and a value."""

    def __init__(self, spaces: Spaces) -> None:
        super().__init__(spaces, spaces.num_actions + 1)

    def forward(self, observations: Tensor) -> PolicyValue:  # type: ignore[override]
        outputs = super().forward(observations)
        return PolicyValue(outputs[:, 1:], outputs[:, 0])
