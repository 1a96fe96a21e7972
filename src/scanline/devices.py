"""Devices: what lives where, and the only code that moves data between them.

Takes names of devices and arrays of the host; gives a frozen `Device`, memory on it and beside it,
and copies in both directions. Knows no network, store or engine.

On the CPU every move is the identity: the same memory, nothing copied, nothing to wait for.
All work of a process goes to one stream of its device, in the order of the calls (decision 0016).
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from . import memory
from .errors import RefusedError

HostArray = npt.NDArray[Any]
_PCI = Path("/sys/bus/pci/devices")
_SIMULATED = "simulated"


def _num_simulated() -> int:
    """Makes the simulated devices known to PyTorch."""
    found: int = importlib.import_module(".simulated", __package__).NUM_DEVICES
    return found


_COUNTS: Mapping[str, Callable[[], int]] = {
    "cpu": lambda: 1,
    "cuda": torch.cuda.device_count,
    "mps": lambda: int(torch.backends.mps.is_available()),
    _SIMULATED: _num_simulated,
}
"""Kinds of devices, and how many of each there are."""
_SHOWN = ("cpu", "cuda", "mps")
"""Kinds that users choose from."""


def resolved(name: str) -> str:
    """The name of a device of this machine; `auto` is cuda where there is one, else cpu."""
    if name == "auto":
        return "cuda" if _COUNTS["cuda"]() else "cpu"
    kind, _, number = name.partition(":")
    if kind not in _COUNTS or (number and not (number.isdecimal() and kind not in ("cpu", "mps"))):
        raise RefusedError(f"device={name!r} is unknown; use auto, cpu, cuda, cuda:N or mps.")
    if not is_there(name):
        there = [each for each in _SHOWN if _COUNTS[each]()]
        raise RefusedError(
            f"device={name!r} is not there: PyTorch {torch.__version__} finds "
            f"{_COUNTS[kind]()} devices of kind {kind!r} on this machine; use {' or '.join(there)}."
        )
    return name


def is_there(name: str) -> bool:
    """Whether this machine has a device of that name."""
    kind, _, number = name.partition(":")
    return name == "auto" or int(number or 0) < _COUNTS[kind]()


def count(name: str) -> int:
    """Devices of the same kind on this machine."""
    return _COUNTS[name.partition(":")[0]]()


@dataclass(frozen=True)
class Device:
    """One device of this machine, by a name that `resolved` has given."""

    name: str = "cpu"

    @classmethod
    def of(cls, tensor: Tensor) -> Device:
        """Where a tensor is."""
        return HOST if tensor.is_cpu else cls(str(tensor.device))

    @cached_property
    def pytorch(self) -> torch.device:
        """As PyTorch names it."""
        if self.kind == _SIMULATED:
            _num_simulated()
        return torch.device(self.name)

    @property
    def kind(self) -> str:
        return self.name.partition(":")[0]

    @property
    def is_host(self) -> bool:
        return self.kind == "cpu"

    def zeros(self, shape: Sequence[int], dtype: torch.dtype = torch.float32) -> Tensor:
        return torch.zeros(tuple(shape), dtype=dtype, device=self.pytorch)

    def empty(self, shape: Sequence[int], dtype: torch.dtype = torch.float32) -> Tensor:
        return torch.empty(tuple(shape), dtype=dtype, device=self.pytorch)

    def staging(self, shape: Sequence[int], dtype: torch.dtype) -> Tensor:
        """Host memory, zeroed, for arrays that go to this device again and again."""
        return torch.zeros(tuple(shape), dtype=dtype, pin_memory=self.kind == "cuda")

    def upload(self, values: Tensor | HostArray) -> Tensor:
        """Values of the host, there; on the CPU the same memory."""
        host = torch.from_numpy(values) if isinstance(values, np.ndarray) else values
        return host if self.is_host else host.to(self.pytorch, non_blocking=self._is_asynchronous)

    def upload_into(self, target: Tensor, host: Tensor) -> None:
        """Fills a tensor of this device from host memory that stays unchanged meanwhile."""
        target.copy_(host, non_blocking=self._is_asynchronous)

    def download_into(self, target: Tensor, source: Tensor) -> None:
        """Fills memory of the host, or of this device, from a tensor of it; returns at once."""
        target.copy_(source, non_blocking=self._is_asynchronous)

    def place(self, module: torch.nn.Module) -> torch.nn.Module:
        """The module, its parameters and buffers on this device."""
        return module.to(self.pytorch)

    @property
    def _is_asynchronous(self) -> bool:
        return self.kind in ("cuda", _SIMULATED)

    def fence(self) -> Fence:
        return Fence(self)

    @property
    def free_bytes(self) -> float:
        """Memory of the device that may still be taken."""
        if self.kind == "cuda":
            return float(torch.cuda.mem_get_info(self.pytorch)[0])
        if self.kind == "mps":
            used = torch.mps.driver_allocated_memory()
            return float(torch.mps.recommended_max_memory() - used)
        if self.kind == _SIMULATED:
            return float(importlib.import_module(".simulated", __package__).free_bytes())
        return memory.available_bytes()

    @property
    def memory(self) -> str:
        """The place of its memory, as a `Share` names it."""
        return memory.HOST if self.is_host else f"the device {self.name!r}"

    def near_cores(self, folder: Path = _PCI) -> list[int]:
        """Cores on the same side of the machine as this GPU; none where the system does not say."""
        if self.kind != "cuda":
            return []
        card: Any = torch.cuda.get_device_properties(self.pytorch)
        place = f"{card.pci_domain_id:04x}:{card.pci_bus_id:02x}:{card.pci_device_id:02x}.0"
        return listed_cores(folder / place / "local_cpulist")


HOST = Device()


class Places(NamedTuple):
    """Where a rollout is kept: on a device, where an engine's memory may be, too."""

    device: Device = HOST
    frames: Device = HOST
    """Where an engine writes frames: in host memory, from where they go up, or on the device."""


def listed_cores(path: Path) -> list[int]:
    """Cores of a list such as '0-3,8'; none where there is no such file."""
    try:
        ranges = [each.partition("-") for each in path.read_text().strip().split(",") if each]
        return [n for a, _, b in ranges for n in range(int(a), int(b or a) + 1)]
    except (OSError, ValueError):
        return []


class Fence:
    """What was issued so far: the host waits for it before it writes what an upload reads."""

    def __init__(self, device: Device) -> None:
        is_cuda = device.kind == "cuda"
        self._event: Any = torch.cuda.Event() if is_cuda else None  # type: ignore[no-untyped-call]
        self._is_set = False

    def set(self) -> None:
        if self._event is not None:
            self._event.record()
            self._is_set = True

    def wait(self) -> None:
        if self._event is not None and self._is_set:
            self._event.synchronize()


def download(tensor: Tensor) -> HostArray:
    """The values as an array of the host; waits for the device. On the CPU the same memory."""
    values = tensor.detach() if tensor.is_cpu else tensor.detach().to("cpu")
    array: HostArray = values.numpy()
    return array


def beside(value: Tensor, like: Tensor) -> Tensor:
    """A copy of a tensor where the other one is."""
    return value.detach().to(like.device, copy=True)


class PackedArrays:
    """Named arrays that lie one behind the other in host memory and on a device.

    All of them go up in one transfer. On the CPU both sides are the same memory.
    """

    def __init__(
        self, device: Device, shapes: Mapping[str, tuple[tuple[int, ...], torch.dtype]]
    ) -> None:
        ends, end = {}, 0
        for name, (shape, dtype) in shapes.items():
            start = -(-end // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES
            end = start + int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
            ends[name] = (start, end)
        self._device, self._fence = device, device.fence()
        self._host = device.staging((end,), torch.uint8)
        self._there = self._host if device.is_host else device.zeros((end,), torch.uint8)
        sides = [
            {
                name: side[slice(*ends[name])].view(dtype).view(shape)
                for name, (shape, dtype) in shapes.items()
            }
            for side in (self._host, self._there)
        ]
        self.host: Mapping[str, Tensor] = sides[0]
        self.there: Mapping[str, Tensor] = sides[1]

    def begin(self) -> None:
        """To be called before the host's side is written again."""
        self._fence.wait()

    def upload(self) -> None:
        if not self._device.is_host:
            self._device.upload_into(self._there, self._host)
            self._fence.set()


_ALIGNMENT_BYTES = 16
