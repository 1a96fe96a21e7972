"""Engine `gpu-host`: the kernels of a GPU as loops in this process, for tests; not listed.

Takes the settings of every engine; see device.py for what it plays. Its memory is that of the
learner's device where that is the processor or a simulated device: what a run on a GPU with engine
`cuda` moves, a run on a simulated device with this one moves too, and there it is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch

from .. import _native
from ..devices import HOST, Device
from ..records import Array
from .device import DeviceEngine, check_settings
from .interface import Engine, EngineSettings
from .launcher import TensorMemory

Order = Callable[[int], Array]
"""Number of lanes to the order in which they run, a permutation."""


class HostLauncher(TensorMemory):
    """The host grid: every kernel is a loop over its lanes, in any order."""

    name = "gpu-host"

    def __init__(self, device: Device = HOST, order: Order = np.arange) -> None:
        super().__init__(device)
        self._order = order

    def compile(self, cartridge: str) -> None:
        """Nothing: they are part of the compiled module."""

    def stream(self) -> None:
        return None

    def launch(
        self,
        stream: None,
        kernel: tuple[str, str],
        num_lanes: int,
        buffers: Sequence[torch.Tensor],
        scalars: Sequence[int],
    ) -> None:
        cartridge, name = kernel
        arrays = [_array(buffer) for buffer in buffers]
        order = self._order(num_lanes).tolist()
        _native.run_on_host(name, cartridge, arrays, list(scalars), order)

    def event(self, stream: None) -> None:
        return None

    def is_done(self, event: None) -> bool:
        return True

    def wait(self, event: None) -> None:
        """Nothing: a launch returns when it is done."""


def _array(buffer: torch.Tensor) -> Array:
    """What a kernel sees: a tensor of a simulated device holds one of the host."""
    array: Array = getattr(buffer, "held", buffer).numpy()
    return array


def build(settings: EngineSettings) -> Engine:
    check_settings(settings, HostLauncher.name)
    device = Device(settings.device)
    return DeviceEngine(settings, HostLauncher(device if device.kind == "simulated" else HOST))
