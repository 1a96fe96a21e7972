"""Tensors as the native layers take them: an address and a number of floats.

Takes tensors; gives spans, and pictures where they lie. Knows no layer and no optimiser.

Handing a tensor over by the array protocol costs eight microseconds, and an update hands over a
hundred of them. A span costs one; sizes are checked on the native side all the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from ._native import Pictures

Span = tuple[int, int]
NOTHING: Span = (0, 0)
"""An array that is not there."""


def span(tensor: Tensor) -> Span:
    """A tensor of floats on the CPU without gaps, in whatever order its axes lie."""
    if tensor.dtype is not torch.float32 or not tensor.is_cpu:
        raise TypeError(f"native layers take float32 on the CPU, not {tensor.dtype}.")
    return tensor.data_ptr(), tensor.numel()


def spans(tensors: Iterable[Tensor]) -> list[Span]:
    return [span(each) for each in tensors]


def is_gapless(tensor: Tensor) -> bool:
    """Whether a tensor is floats on the CPU without gaps, in any order of its axes."""
    if tensor.dtype is not torch.float32 or not tensor.is_cpu:
        return False
    if tensor.is_contiguous():
        return True
    order = sorted(range(tensor.dim()), key=tensor.stride, reverse=True)
    return tensor.detach().permute(order).is_contiguous()


def has_whole_planes(observations: Tensor) -> bool:
    """Whether these are pictures [N, S, H, W] on the CPU, each plane without gaps."""
    if not observations.is_cpu or observations.dim() != 4:
        return False
    return observations.stride(3) == 1 and observations.stride(2) == observations.shape[3]


def pictures(observations: Tensor, scale: float = 1.0, offset: float = 0.0) -> Pictures:
    """Pictures with whole planes where they lie; bytes are read as x * scale + offset."""
    from . import _native

    is_bytes = observations.dtype is torch.uint8
    if not is_bytes and observations.dtype is not torch.float32:
        raise TypeError(f"pictures are {observations.dtype}, but kernels take uint8 or float32.")
    shape, strides = tuple(observations.shape), observations.stride()
    return _native.Pictures(observations.data_ptr(), is_bytes, shape, strides, scale, offset)
