"""Tensors as native code takes them: an address and a number of elements.

Takes tensors; gives spans, and images where they are in memory. Knows no layer and no optimiser.

Passing a tensor by the array protocol costs eight microseconds, and an update passes a hundred of
them. A span costs one; sizes are checked on the native side all the same.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from ._native import Images

Span = tuple[int, int]
"""Address and number of elements, as C++'s std::span."""
NO_ARRAY: Span = (0, 0)


def span(tensor: Tensor) -> Span:
    """A float32 tensor on the CPU without gaps, its axes in any order."""
    if not is_gapless(tensor):
        raise TypeError(
            "native layers take float32 on the CPU without gaps, not "
            f"{tensor.dtype} on {tensor.device} of shape {tuple(tensor.shape)} with strides "
            f"{tensor.stride()}; use .float().cpu().contiguous()."
        )
    return tensor.data_ptr(), tensor.numel()


def spans(tensors: Iterable[Tensor]) -> list[Span]:
    return [span(each) for each in tensors]


def unchecked_spans(*tensors: Tensor) -> list[Span]:
    """Spans of tensors of any type that the caller has checked."""
    return [(each.data_ptr(), each.numel()) for each in tensors]


def gapless_spans(tensors: Sequence[Tensor]) -> list[Span] | None:
    """Spans, or None where one of the tensors is not gapless."""
    return unchecked_spans(*tensors) if all(map(is_gapless, tensors)) else None


def is_readable(tensor: Tensor, dtype: torch.dtype = torch.float32) -> bool:
    """Whether native code can read it: contiguous, on the CPU, of this type."""
    return tensor.is_cpu and tensor.dtype is dtype and tensor.is_contiguous()


def is_gapless(tensor: Tensor) -> bool:
    """Whether a tensor is float32 on the CPU without gaps, its axes in any order."""
    if tensor.dtype is not torch.float32 or not tensor.is_cpu:
        return False
    return tensor.is_contiguous() or _fills(tensor.stride(), tuple(tensor.shape))


@functools.lru_cache(maxsize=1024)
def _fills(strides: tuple[int, ...], sizes: tuple[int, ...]) -> bool:
    """Whether every axis, from the innermost in memory on, begins where the last one ends."""
    length = 1
    for stride, size in sorted(zip(strides, sizes, strict=True)):
        if size > 1 and stride != length:
            return False
        length *= size
    return True


def has_contiguous_planes(observations: Tensor) -> bool:
    """Whether these are images [N, S, H, W] on the CPU, each plane [H, W] contiguous."""
    strides = observations.stride()
    if len(strides) != 4 or not observations.is_cpu:
        return False
    return strides[3] == 1 and strides[2] == observations.shape[3]


def images(observations: Tensor, scale: float = 1.0, offset: float = 0.0) -> Images:
    """Images with contiguous planes, not copied; bytes are read as x * scale + offset."""
    is_bytes = observations.dtype is torch.uint8
    if not is_bytes and observations.dtype is not torch.float32:
        raise TypeError(f"images are {observations.dtype}, but kernels take uint8 or float32.")
    shape, strides = tuple(observations.shape), observations.stride()
    return Images(observations.data_ptr(), is_bytes, shape, strides, scale, offset)
