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
from dataclasses import dataclass
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

DENSE_UNITS_STEP = 16
"""Units of a dense layer that reads features where they are come in multiples of it."""


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
) -> Features:
    """Features [N, H * W * C] of the last rectified convolution; `sizes` None asks for PyTorch."""
    layers = convs._modules.values()
    weights = [each for layer in layers for each in layer._parameters.values() if each is not None]
    native = native_convolutions(sizes) if sizes and _are_ready(observations, weights) else None
    if native is not None:
        return ConvFeatures(native, convs, weights, pixels, observations)
    maps: Tensor = convs(image_planes(observations, pixels))
    return maps.permute(0, 2, 3, 1).flatten(1)  # a view: channels are last in memory


@dataclass(slots=True)
class ConvFeatures:
    """Features that wait for their reader: rows as they are, or the dense layer behind them.

    A dense layer that reads them here is computed once for all that is the same in several
    pictures, and nobody writes the features down.
    """

    native: ConvStack
    convs: nn.Sequential
    weights: Sequence[Tensor]
    pixels: PixelScale
    observations: Tensor

    def rows(self) -> Tensor:
        """[N, H * W * C]"""
        (rows,) = self._read(self.convs, [], [self.native.feature_floats])
        return rows

    def feeds(self, layer: nn.Linear, outputs: Sequence[nn.Linear] = ()) -> bool:
        """Whether these layers are taken here: weights of the first must lie place by place."""
        weight = weight_of(layer)
        units, _ = weight.shape
        if units % DENSE_UNITS_STEP or weight.stride() != (1, units):
            return False
        return not outputs or _read_rows_of(units, outputs)

    def dense_rectified(self, layer: nn.Linear) -> Tensor:
        """max(0, rows @ weights + bias), remembered where a rollout is kept."""
        (rows,) = self._read(layer, _pairs([layer]), [layer.out_features])
        return rows

    def outputs(self, layer: nn.Linear, outputs: Sequence[nn.Linear]) -> Sequence[Tensor]:
        """What output layers make of the rows of `dense_rectified`."""
        widths = [each.out_features for each in (layer, *outputs)]
        return self._read(layer, _pairs((layer, *outputs)), widths)

    def _read(
        self, reader: nn.Module, dense: Sequence[Tensor], widths: Sequence[int]
    ) -> Sequence[Tensor]:
        """Arrays [N, width] of all layers behind the convolutions, without the hidden one where
        outputs follow it."""
        num, begin, weights = self.observations.shape[0], self.native.begin, [*self.weights, *dense]
        if torch.is_grad_enabled():
            known = memory.recalled(reader, num)
            arrays, work = known or (_empty(num, widths), begin())
            if known is None:
                self._forward(work, weights, arrays, keeps=True)
            learned: Sequence[Tensor] = _ConvRows.apply(work, arrays, *weights)  # type: ignore[no-untyped-call]
            return learned
        room = memory.room(reader, num, widths, begin)
        arrays, work = room or (_empty(num, widths), memory.work(reader) or begin())
        self._forward(work, weights, arrays, keeps=room is not None)
        return _last(arrays)

    def _forward(
        self, work: ConvPass, weights: Sequence[Tensor], arrays: Sequence[Tensor], *, keeps: bool
    ) -> None:
        frames = pictures(self.observations, self.pixels.scale, self.pixels.offset)
        work.forward(frames, spans(weights), spans(arrays), keeps)


Features = Tensor | ConvFeatures


def rows_of(features: Features) -> Tensor:
    """[N, features], for whoever needs the numbers themselves."""
    return features.rows() if isinstance(features, ConvFeatures) else features


def rectified(layer: nn.Linear, features: Features) -> Tensor:
    """max(0, features @ weights + bias), by the native kernels where they can."""
    if isinstance(features, ConvFeatures) and features.feeds(layer):
        return features.dense_rectified(layer)
    rows = rows_of(features)
    return _dense_rectified(layer, rows) if can_be_native([layer], rows) else layer(rows).relu()


def _dense_rectified(layer: nn.Linear, rows: Tensor) -> Tensor:
    """Remembered where a rollout is kept."""
    if torch.is_grad_enabled():
        known = memory.recalled(layer, len(rows))
        (learned,) = _with_gradient([layer], rows, known[0] if known else None, rectified=True)
        return learned
    room = memory.room(layer, len(rows), (layer.out_features,))
    (out,) = _dense_forward(rows, _pairs([layer]), room[0] if room else None, rectified=True)
    return out


def dense(layers: Sequence[nn.Linear], rows: Tensor) -> Sequence[Tensor]:
    """rows @ weights + bias of every layer."""
    if torch.is_grad_enabled():
        return _with_gradient(layers, rows, None, rectified=False)
    return _dense_forward(rows, _pairs(layers), None, rectified=False)


def can_be_native(layers: Sequence[nn.Linear], rows: Tensor) -> bool:
    """Whether kernels take these layers and these rows."""
    if not rows.is_cpu or rows.dtype is not torch.float32 or rows.dim() != 2:
        return False
    return _read_rows_of(rows.shape[1], layers)


def _read_rows_of(width: int, layers: Sequence[nn.Linear]) -> bool:
    return has_native_dense(width) and all(weight_of(each).is_contiguous() for each in layers)


def weight_of(layer: nn.Linear) -> Tensor:
    """`layer.weight` without the detour that a module takes to its parameters."""
    weight = layer._parameters["weight"]
    assert weight is not None
    return weight


def _are_ready(observations: Tensor, weights: Sequence[Tensor]) -> bool:
    """Whether kernels that walk raw memory may have these arrays."""
    in_order = all(each.is_contiguous(memory_format=torch.channels_last) for each in weights[::2])
    return has_whole_planes(observations) and in_order and not observations.requires_grad


class _ConvRows(torch.autograd.Function):
    """All convolutions of a trunk, and the dense layers that read them, as one step of the graph.

    `work` has been forwards and gave the arrays; weights are those of the convolutions, then those
    of a hidden layer and of the outputs behind it, if there are any.
    """

    @staticmethod
    def forward(
        context: Any, work: ConvPass, arrays: Sequence[Tensor], *weights: Tensor
    ) -> tuple[Tensor, ...]:
        context.save_for_backward(*arrays, *weights)
        context.work, context.num_arrays = work, len(arrays)
        return tuple(each.detach() for each in _last(arrays))

    @staticmethod
    def backward(context: Any, *upstream: Any) -> tuple[Any, ...]:
        saved, num = context.saved_tensors, context.num_arrays
        arrays, weights = saved[:num], saved[num:]
        work: ConvPass = context.work
        gradients = [torch.empty_like(each) for each in weights]
        whole = [each.contiguous() for each in upstream]
        work.backward(spans(weights), spans(arrays), spans(whole), spans(gradients))
        return None, None, *gradients


def _empty(num: int, widths: Sequence[int]) -> list[Tensor]:
    return [torch.empty((num, width)) for width in widths]


def _last(arrays: Sequence[Tensor]) -> Sequence[Tensor]:
    """What nobody reads any further here: the only array, or those behind the hidden rows."""
    return arrays[1:] or arrays


def _pairs(layers: Sequence[nn.Linear]) -> list[Tensor]:
    """Weights and biases in turn."""
    return [each for layer in layers for each in layer._parameters.values() if each is not None]


def _dense_forward(
    rows: Tensor, pairs: Sequence[Tensor], outs: Sequence[Tensor] | None, *, rectified: bool
) -> Sequence[Tensor]:
    from .. import _native

    if outs is None:
        outs = [torch.empty((rows.shape[0], bias.shape[0])) for bias in pairs[1::2]]
    whole = rows.contiguous()
    _native.dense_forward(span(whole), spans(pairs), spans(outs), rectified)
    return outs


def _with_gradient(
    layers: Sequence[nn.Linear], rows: Tensor, known: Sequence[Tensor] | None, *, rectified: bool
) -> Sequence[Tensor]:
    found: Sequence[Tensor] = _Dense.apply(  # type: ignore[no-untyped-call]
        rows, known, rectified, *_pairs(layers)
    )
    return found


class _Dense(torch.autograd.Function):
    """Dense layers of the same rows, and their rectifier if they have one, as one step."""

    @staticmethod
    def forward(
        context: Any, rows: Tensor, known: Sequence[Tensor] | None, rectified: bool, *pairs: Tensor
    ) -> tuple[Tensor, ...]:
        outs = known or _dense_forward(rows, pairs, None, rectified=rectified)
        context.save_for_backward(rows, *outs, *pairs)
        context.rectified = rectified
        return tuple(out.detach() for out in outs)

    @staticmethod
    def backward(context: Any, *upstream: Any) -> tuple[Any, ...]:
        from .. import _native

        rows, *others = context.saved_tensors
        outs, pairs = others[: len(upstream)], others[len(upstream) :]
        wanted = context.needs_input_grad[0]
        for_rows = torch.empty(rows.shape) if wanted else None
        gradients = [torch.empty(each.shape) for each in pairs]
        whole, upstream_whole = rows.contiguous(), [each.contiguous() for each in upstream]
        _native.dense_backward(
            span(whole),
            spans(pairs),
            spans(outs),
            spans(upstream_whole),
            NOTHING if for_rows is None else span(for_rows),
            spans(gradients),
            context.rectified,
        )
        return for_rows, None, None, *gradients
