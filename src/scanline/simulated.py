"""A simulated device: computes with the CPU's numbers, claims to be elsewhere, and counts.

Importing it makes `simulated` a device of PyTorch, one for each process. Its tensors hold a CPU
tensor and behave as those of a GPU do: two devices never mix, values come to the host by a copy
only. Gives what a program has moved, waited for and launched (`measured`).
Knows nothing of what is computed; for tests and for budgets, never for users' runs.

Numbers without dimensions may be on the host in an operation of the device, as PyTorch allows.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils import _pytree, backend_registration

NAME = "simulated"
NUM_DEVICES = 1
"""Of every process: PyTorch runs backward passes on one device of a backend in Python. Tensors may
have other numbers, and do not mix with those."""
_FAR_AWAY = 1 << 62
"""Added to addresses: equal memory has equal ones, and none can be read."""
_aten = torch.ops.aten
_ALLOCATE = {"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided"}
"""Operations that launch nothing."""
_WAITING = {"_local_scalar_dense", "nonzero", "masked_select", "equal", "is_nonzero", "unique_dim"}
"""Operations whose result or shape the host must know."""


@dataclass
class Traffic:
    """What crossed between host and devices, and what was launched."""

    waits: int = 0
    """Times that the host waited for a device, downloads included."""
    names: Counter[str] = field(default_factory=Counter)
    """Launches by their operation's name; views and allocations are none."""
    upload_sizes: Counter[int] = field(default_factory=Counter)
    """Uploads by their bytes."""
    download_sizes: Counter[int] = field(default_factory=Counter)
    """Downloads by their bytes."""

    @property
    def operations(self) -> int:
        """Launches."""
        return self.names.total()

    @property
    def uploads(self) -> int:
        return self.upload_sizes.total()

    @property
    def downloads(self) -> int:
        return self.download_sizes.total()

    @property
    def uploaded_bytes(self) -> int:
        return sum(size * count for size, count in self.upload_sizes.items())

    @property
    def downloaded_bytes(self) -> int:
        return sum(size * count for size, count in self.download_sizes.items())


_lock = threading.Lock()
_listening: list[Traffic] = []
_memory_bytes: float = float("inf")


@contextmanager
def measured(into: Traffic | None = None) -> Iterator[Traffic]:
    """Counts, or counts on, what all simulated devices do inside, whatever the thread."""
    traffic = into or Traffic()
    with _lock:
        _listening.append(traffic)
    try:
        yield traffic
    finally:
        with _lock:
            _listening.remove(traffic)


@contextmanager
def memory(free_bytes: float) -> Iterator[None]:
    """Inside, every simulated device has so many bytes free."""
    global _memory_bytes
    before, _memory_bytes = _memory_bytes, free_bytes
    try:
        yield
    finally:
        _memory_bytes = before


def free_bytes() -> float:
    """What may still be allocated on a device."""
    return _memory_bytes


def _note(*, name: str = "", up: int = -1, down: int = -1, waits: bool = False) -> None:
    """Counts an operation, an upload or a download of so many bytes, and a wait."""
    with _lock:
        for traffic in _listening:
            traffic.names.update([name] if name else ())
            traffic.upload_sizes.update([up] if up >= 0 else ())
            traffic.download_sizes.update([down] if down >= 0 else ())
            traffic.waits += waits or down >= 0


class SimulatedTensor(Tensor):
    """A tensor of a simulated device; `held` has its numbers."""

    held: Tensor
    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    @staticmethod
    def __new__(cls: type[SimulatedTensor], inner: Tensor, device: Any) -> SimulatedTensor:
        made: SimulatedTensor = Tensor._make_wrapper_subclass(
            cls,
            inner.size(),
            strides=inner.stride(),
            storage_offset=inner.storage_offset(),
            dtype=inner.dtype,
            device=torch.device(NAME, torch.device(device).index or 0),
        )
        made.held = inner
        return made

    def __repr__(self, **options: Any) -> str:  # type: ignore[override]
        return f"SimulatedTensor({self.held!r}, device='{self.device}')"

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        if id(self) not in memo:
            copied: Tensor = SimulatedTensor(self.held.detach().clone(), self.device)
            if isinstance(self, nn.Parameter):
                copied = nn.Parameter(copied, self.requires_grad)
            memo[id(self)] = copied
        found: Tensor = memo[id(self)]
        return found

    def data_ptr(self) -> int:
        return self.held.data_ptr() + _FAR_AWAY

    def numpy(self, *, force: bool = False) -> Any:
        if not force:
            raise TypeError(f"A tensor on {self.device} is no array of the host; download it.")
        return self.detach().cpu().numpy()

    def tolist(self) -> Any:
        return self.detach().cpu().tolist()

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, operation: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = dict(kwargs or {})
        if operation is _aten.copy_.default:
            return _copied(*args[:2])
        if operation is _aten._to_copy.default:
            target = torch.device(kwargs.get("device") or args[0].device)
            if target.type == "cpu":
                _note(down=_size(args[0]))
                return operation(args[0].held, **kwargs)
        parts = operation.decompose(*args, **kwargs)  # of tensors made in inference mode
        return _computed(operation, args, kwargs) if parts is NotImplemented else parts


def _size(tensor: Tensor) -> int:
    return tensor.numel() * tensor.element_size()


def _copied(target: Tensor, source: Tensor) -> Tensor:
    """`target.copy_(source)`: on one device, or between one and the host."""
    if isinstance(target, SimulatedTensor) and isinstance(source, SimulatedTensor):
        _refuse_mixture("copy_", {target.device, source.device})
        _note(name="copy_")
        target.held.copy_(source.held)
    elif isinstance(target, SimulatedTensor):
        _note(up=_size(source))
        target.held.copy_(source)
    else:
        assert isinstance(source, SimulatedTensor)
        _note(down=_size(source))
        target.copy_(source.held)
    return target


def _computed(operation: Any, args: Any, kwargs: Any) -> Any:
    """The operation on the tensors inside, its results on the same device."""
    tensors = [each for each in _pytree.tree_leaves((args, kwargs)) if isinstance(each, Tensor)]
    own = [each for each in tensors if isinstance(each, SimulatedTensor)]
    places = {each.device for each in tensors if each.dim() or isinstance(each, SimulatedTensor)}
    name = operation.overloadpacket.__name__
    wanted = kwargs.get("device")
    if wanted is not None:
        places.add(torch.device(NAME, torch.device(wanted).index or 0))
        kwargs["device"] = torch.device("cpu")
    _refuse_mixture(name, places)
    if not operation.is_view and name not in _ALLOCATE:
        _note(name=name, waits=name in _WAITING or _picks_by_mask(name, args))
    inner_args, inner_kwargs = _pytree.tree_map_only(
        SimulatedTensor, lambda each: each.held, (args, kwargs)
    )
    result = operation(*inner_args, **inner_kwargs)
    changed = {id(each.held): each for each in own}

    def outside(each: Tensor) -> Tensor:
        return changed[id(each)] if id(each) in changed else _made(each, own[0].device)

    return _pytree.tree_map_only(Tensor, outside, result)


def _picks_by_mask(name: str, args: Any) -> bool:
    """Whether rows are picked by a mask, whose number of true entries the host must know."""
    if name not in ("index", "index_put", "index_put_"):
        return False
    return any(each is not None and each.dtype in (torch.bool, torch.uint8) for each in args[1])


def _made(inner: Tensor, device: Any) -> SimulatedTensor:
    if _size(inner) > _memory_bytes:
        raise torch.OutOfMemoryError(
            f"{device} has {_memory_bytes:.0f} bytes left, {_size(inner)} were wanted."
        )
    with torch.inference_mode(inner.is_inference()):  # a view is what its whole is
        return SimulatedTensor(inner, device)


def _refuse_mixture(name: str, places: set[torch.device]) -> None:
    if len(places) > 1:
        found = ", ".join(sorted(map(str, places)))
        raise RuntimeError(f"{name} was called with tensors on several devices: {found}.")


class _Module(backend_registration._DummyBackendModule):
    def device_count(self) -> int:
        """None that has a generator of its own, whose state PyTorch would keep."""
        return 0


def _register() -> None:
    """Makes the device known to PyTorch; operations of its tensors are found by their type."""
    backend_registration._setup_privateuseone_for_python_backend(NAME, backend_module=_Module())

    @torch.library.impl("aten::empty.memory_format", "PrivateUse1")
    def empty(size: Any, *, memory_format: Any = None, **options: Any) -> Tensor:
        kind = memory_format or torch.contiguous_format
        made = torch.empty(size, dtype=options.get("dtype"), memory_format=kind)
        return _made(made, options.get("device", NAME))

    @torch.library.impl("aten::empty_strided", "PrivateUse1")
    def empty_strided(size: Any, stride: Any, **options: Any) -> Tensor:
        return _made(
            torch.empty_strided(size, stride, dtype=options.get("dtype")),
            options.get("device", NAME),
        )

    @torch.library.impl("aten::_copy_from", "PrivateUse1")
    def copy_from(source: Tensor, target: Tensor, non_blocking: bool = False) -> Tensor:
        return _copied(target, source)


_register()
