"""The matrix work of a network on the CPU, by kernels of our own or by PyTorch.

Takes a trunk's convolutions or a dense layer, and their input; gives features, with gradients.
Knows no network by name, no loss and no optimiser.

On a machine without a GPU the network is the limit. The native kernels read the stored bytes
themselves and compute what is the same in several pictures, or in several places of one, only once;
PyTorch reaches half of the processor's multiply-adds at the batches of acting. Their sums do not
depend on the number of threads. What they do not support (another device, odd sizes, an
old processor) is done by PyTorch, and so is everything when a network is built with
`kernels="torch"`: the path to compare with.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor, nn

from ..spans import NOTHING, has_whole_planes, pictures, span, spans
from . import memory
from .planes import PixelScale, image_planes

if TYPE_CHECKING:
    from .._native import ConvPass, ConvStack

Kernels = Literal["native", "torch"]
Sizes = tuple[tuple[int, ...], ...]
"""Per convolution: height, width, channels, filters, kernel, stride, top, bottom, left, right."""


@functools.lru_cache
def native_convolutions(sizes: Sizes) -> ConvStack | None:
    """The native form, shared by all networks of these sizes, or None where there is none."""
    from .. import _native

    rows = [list(each) for each in sizes]
    return None if _native.ConvStack.refusal(rows) else _native.ConvStack(rows)


@functools.lru_cache
def has_native_dense(inputs: int) -> bool:
    from .. import _native

    return _native.dense_refusal(inputs) is None


def share_cores(num_threads: int, native: bool) -> None:
    """Gives the threads to whoever does the matrix work.

    Two sets of threads would disturb each other: PyTorch's wait by spinning.
    """
    from .. import _native

    _native.set_layer_threads(num_threads)
    torch.set_num_threads(1 if native else num_threads)
    if native:
        _prefer_large_pages()


def _prefer_large_pages() -> None:
    """Large tensors lie in pages of 2 MB, and freed memory is kept for the next update.

    A dense layer's weights are read across their rows, each in a page of its own otherwise: 7 % of
    an update of A2C. PyTorch asks for the variable when it allocates its first tensor.
    """
    from .. import _native

    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")
    _native.keep_freed_memory()


def share_cores_here() -> None:
    """Repeats PyTorch's number of threads in the calling thread.

    OpenMP keeps it per thread: oneDNN would use all cores in a new one, and its second thread would
    spin on the core that somebody else needs.
    """
    torch.set_num_threads(torch.get_num_threads())


def conv_features(
    convs: nn.Sequential, sizes: Sizes | None, pixels: PixelScale, observations: Tensor
) -> Tensor:
    """Features [N, H * W * C] of the last rectified convolution; `sizes` None asks for PyTorch."""
    weights = [each for conv in convs for each in conv._parameters.values() if each is not None]
    native = native_convolutions(sizes) if sizes and _are_ready(observations, weights) else None
    if native is None:
        maps: Tensor = convs(image_planes(observations, pixels))
        return maps.permute(0, 2, 3, 1).flatten(1)  # a view: channels are last in memory
    num, width = len(observations), native.feature_floats
    if torch.is_grad_enabled():
        known = memory.recalled(convs, num)
        (features,), work = known or ([torch.empty((num, width))], native.begin())
        if known is None:
            _forward(work, observations, pixels, weights, features)
        learned: Tensor = _ConvFeatures.apply(features, work, *weights)  # type: ignore[no-untyped-call]
        return learned
    room = memory.room(convs, num, (width,), native.begin)
    (features,), work = room or ([torch.empty((num, width))], memory.work(convs) or native.begin())
    _forward(work, observations, pixels, weights, features, keeps=room is not None)
    return features


def dense_rectified(layer: nn.Linear, rows: Tensor) -> Tensor:
    """max(0, rows @ weights + bias), remembered where a rollout is kept."""
    num = len(rows)
    if torch.is_grad_enabled():
        known = memory.recalled(layer, num)
        done = known[0][0] if known else None
        return _with_gradient(layer, rows, done, rectified=True)
    room = memory.room(layer, num, (layer.out_features,))
    return _dense_forward(
        rows, layer.weight, layer.bias, room[0][0] if room else None, rectified=True
    )


def dense(layer: nn.Linear, rows: Tensor) -> Tensor:
    """rows @ weights + bias."""
    if torch.is_grad_enabled():
        return _with_gradient(layer, rows, None, rectified=False)
    return _dense_forward(rows, layer.weight, layer.bias, None, rectified=False)


def can_be_native(layer: nn.Linear, rows: Tensor) -> bool:
    """Whether `dense` and `dense_rectified` take this layer and these rows."""
    on_cpu = rows.is_cpu and rows.dtype is torch.float32
    return on_cpu and rows.dim() == 2 and has_native_dense(layer.in_features)


def _are_ready(observations: Tensor, weights: Sequence[Tensor]) -> bool:
    """Whether kernels that walk raw memory may have these arrays."""
    in_order = all(
        each.is_contiguous(memory_format=torch.channels_last) if each.dim() == 4 else True
        for each in weights
    )
    return has_whole_planes(observations) and in_order and not observations.requires_grad


def _forward(
    work: ConvPass,
    observations: Tensor,
    pixels: PixelScale,
    weights: Sequence[Tensor],
    features: Tensor,
    *,
    keeps: bool = True,
) -> None:
    frames = pictures(observations, pixels.scale, pixels.offset)
    work.forward(frames, spans(weights), span(features), keeps)


class _ConvFeatures(torch.autograd.Function):
    """All convolutions of a trunk as one step of the graph; `work` has been forwards."""

    @staticmethod
    def forward(context: Any, features: Tensor, work: ConvPass, *weights: Tensor) -> Tensor:
        context.save_for_backward(*weights)
        context.work = work
        return features.detach()

    @staticmethod
    def backward(context: Any, *upstream: Any) -> tuple[Any, ...]:
        weights = context.saved_tensors
        gradients = [torch.empty_like(each) for each in weights]
        whole = upstream[0].contiguous()
        context.work.backward(spans(weights), span(whole), spans(gradients))
        return None, None, *gradients


def _dense_forward(
    rows: Tensor, weight: Tensor, bias: Tensor, out: Tensor | None, *, rectified: bool
) -> Tensor:
    from .. import _native

    out = torch.empty((len(rows), len(weight))) if out is None else out
    whole = rows.contiguous()
    _native.dense_forward(span(whole), span(weight), span(bias), span(out), rectified)
    return out


def _with_gradient(
    layer: nn.Linear, rows: Tensor, known: Tensor | None, *, rectified: bool
) -> Tensor:
    found: Tensor = _Dense.apply(  # type: ignore[no-untyped-call]
        rows, layer.weight, layer.bias, known, rectified
    )
    return found


class _Dense(torch.autograd.Function):
    """A dense layer, and its rectifier if it has one, as one step of the graph."""

    @staticmethod
    def forward(
        context: Any,
        rows: Tensor,
        weight: Tensor,
        bias: Tensor,
        known: Tensor | None,
        rectified: bool,
    ) -> Tensor:
        out = (
            _dense_forward(rows, weight, bias, None, rectified=rectified)
            if known is None
            else known
        )
        context.save_for_backward(rows, weight, out)
        context.rectified = rectified
        return out.detach()

    @staticmethod
    def backward(context: Any, *upstream: Any) -> tuple[Any, ...]:
        from .. import _native

        rows, weight, out = context.saved_tensors
        wanted = context.needs_input_grad[0]
        for_rows = torch.empty(rows.shape) if wanted else None
        for_weight, for_bias = torch.empty(weight.shape), torch.empty(len(weight))
        whole, upstream_whole = rows.contiguous(), upstream[0].contiguous()
        _native.dense_backward(
            span(whole),
            span(weight),
            span(out),
            span(upstream_whole),
            NOTHING if for_rows is None else span(for_rows),
            span(for_weight),
            span(for_bias),
            context.rectified,
        )
        return for_rows, for_weight, for_bias, None, None
