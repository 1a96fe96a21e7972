"""Tensors as the native layers take them: an address and a number of floats.

Takes tensors; gives spans, and pictures where they lie. Knows no layer and no optimiser.

Handing a tensor over by the array protocol costs eight microseconds, and an update hands over a
hundred of them. A span costs one; sizes are checked on the native side all the same.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from ._native import Pictures

Span = tuple[int, int]
NOTHING: Span = (0, 0)
"""An array that is not there."""


def span(tensor: Tensor) -> Span:
    """A tensor of floats on the CPU without gaps, in whatever order its axes lie."""
    if not is_gapless(tensor):
        raise TypeError(
            "native layers take float32 on the CPU without gaps, not "
            f"{tensor.dtype} on {tensor.device} of shape {tuple(tensor.shape)} with strides "
            f"{tensor.stride()}; use .float().cpu().contiguous()."
        )
    return tensor.data_ptr(), tensor.numel()


def spans(tensors: Iterable[Tensor]) -> list[Span]:
    return [span(each) for each in tensors]


def is_plain(tensor: Tensor, kind: torch.dtype = torch.float32) -> bool:
    """Whether a tensor of this type lies on the CPU, without gaps and in its own order."""
    return tensor.is_cpu and tensor.dtype is kind and tensor.is_contiguous()


def places(*tensors: Tensor) -> list[Span]:
    """Addresses and sizes of tensors that are known to be plain, of any type."""
    return [(each.data_ptr(), each.numel()) for each in tensors]


def is_gapless(tensor: Tensor) -> bool:
    """Whether a tensor is floats on the CPU without gaps, in any order of its axes."""
    if tensor.dtype is not torch.float32 or not tensor.is_cpu:
        return False
    return tensor.is_contiguous() or _fills(tensor.stride(), tuple(tensor.shape))


def gapless_spans(tensors: Sequence[Tensor]) -> list[Span] | None:
    """The spans of tensors that are all floats on the CPU without gaps; None for others."""
    if not all(map(is_gapless, tensors)):
        return None
    return places(*tensors)


@functools.lru_cache(maxsize=1024)
def _fills(strides: tuple[int, ...], sizes: tuple[int, ...]) -> bool:
    """Whether every axis, from the innermost in memory on, begins where the last one ends."""
    length = 1
    for stride, size in sorted(zip(strides, sizes, strict=True)):
        if size > 1 and stride != length:
            return False
        length *= size
    return True


def has_whole_planes(observations: Tensor) -> bool:
    """Whether these are pictures [N, S, H, W] on the CPU, each plane without gaps."""
    strides = observations.stride()
    if len(strides) != 4 or not observations.is_cpu:
        return False
    return strides[3] == 1 and strides[2] == observations.shape[3]


def pictures(observations: Tensor, scale: float = 1.0, offset: float = 0.0) -> Pictures:
    """Pictures with whole planes where they lie; bytes are read as x * scale + offset."""
    is_bytes = observations.dtype is torch.uint8
    if not is_bytes and observations.dtype is not torch.float32:
        raise TypeError(f"pictures are {observations.dtype}, but kernels take uint8 or float32.")
    shape, strides = tuple(observations.shape), observations.stride()
    return Pictures(observations.data_ptr(), is_bytes, shape, strides, scale, offset)
