"""Traffic of a rollout: what crosses between host and device while it is played and learned from.

Takes a plan whose parts take turns, and a device; gives copies in both directions, counted by the
simulated device where it is one, else by PyTorch's profiler. Knows no recipe.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace

from torch.profiler import ProfilerActivity, profile

from .. import settings, simulated
from ..devices import Device
from ..runners import synchronous
from ..runs.clock import TimeSplit
from ..runs.wrappers import TimedAlgorithm
from ..training import Plan
from ..training.context import open_context
from .first_updates import WatchedRun

SIMULATED = Device(f"{simulated.NAME}:0")
_UP, _DOWN = "Memcpy HtoD", "Memcpy DtoH"


@dataclass
class Budget:
    """Copies of one rollout and its updates."""

    uploads: int = 0
    downloads: int = 0

    def __str__(self) -> str:
        return f"{self.uploads} uploads, {self.downloads} downloads"

    def within(self, expected: Budget) -> bool:
        return self.uploads <= expected.uploads and self.downloads <= expected.downloads


def budget(plan: Plan, device: Device) -> Budget:
    """Of the second update: the first one of a device does more."""
    plan = settings.override(plan, {"device": device.name})
    with closing(open_context(plan, announce=lambda sentence: None)) as context:
        parts = context.parts
        parts = replace(parts, algorithm=TimedAlgorithm(parts.algorithm, TimeSplit()))
        parts.sampler.begin()
        synchronous.loop(parts, WatchedRun(1, leaves_turn=False))
        with _counted(device) as found:
            synchronous.loop(parts, WatchedRun(1, leaves_turn=False))
    return found


@contextmanager
def _counted(device: Device) -> Iterator[Budget]:
    found = Budget()
    if device.kind == simulated.NAME:
        with simulated.measured() as traffic:
            yield found
        found.uploads, found.downloads = traffic.uploads, traffic.downloads
        return
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
        yield found
    for event in profiler.events():
        found.uploads += event.name.startswith(_UP)
        found.downloads += event.name.startswith(_DOWN)
