"""The convolutions of a network and the dense layers behind them, by kernels of our own.

Takes a trunk's convolutions and observations; gives features that wait for their reader, with
gradients. Knows no network by name, no loss and no optimiser.

Equal patches, and what dense layers make of them, are computed once for all pictures of a batch and
of a rollout. What the kernels do not take (another device, odd sizes, an old processor) is done by
PyTorch.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from .._native import ConvPass, ConvStack, are_finite
from ..native_arrays import Span, has_contiguous_planes, images, spans
from . import activation_cache
from .activation_cache import Activations
from .dense import can_be_native, dense_rectified, pairs_of, read_rows_of, weight_of
from .planes import PixelScale, image_planes

Sizes = tuple[tuple[int, ...], ...]
"""Per convolution: height, width, channels, filters, kernel, stride, top, bottom, left, right."""

DENSE_UNITS_STEP = 16
"""Units of a dense layer that reads features where they are come in multiples of it."""


@functools.lru_cache
def native_stack(sizes: Sizes) -> ConvStack | None:
    """The native form, shared by all networks of these sizes, or None where there is none."""
    rows = [list(each) for each in sizes]
    return None if ConvStack.refusal(rows) else ConvStack(rows)


@dataclass(eq=False)
class Chain:
    """Convolutions, then a hidden layer if there is one, then outputs that read its rows."""

    convs: Sequence[nn.Module]
    dense: Sequence[nn.Linear]
    shapes: Sequence[tuple[int, ...]]
    """Of one row: of features, or of the hidden layer and of every output."""
    _addresses: list[int] = field(default_factory=list)
    _spans: list[Span] | None = None
    _checked: tuple[list[Span], list[int] | None, bool] | None = None
    """Weights of which version were looked at, and whether all were finite."""

    def weights(self) -> list[Tensor]:
        """Weights and biases in turn."""
        return pairs_of([*self.convs, *self.dense])

    def spans_of(self, weights: Sequence[Tensor]) -> list[Span] | None:
        """As kernels take them, or None where they lie otherwise; looked at when one has moved."""
        addresses = [each.data_ptr() for each in weights]
        if addresses != self._addresses:
            # Threads share a network: what belongs to an address is there before the address is.
            self._spans = spans(weights) if self._lies_in_order(weights) else None
            self._addresses = addresses
        return self._spans

    def are_finite(self, weights: Sequence[Tensor], places: list[Span]) -> bool:
        """Whether no weight is infinite or no number; looked at when one has changed.

        Kernels may leave out what is multiplied by zero then.
        """
        checked, versions = self._checked, activation_cache.versions_of(weights)
        if checked is None or versions is None or checked[:2] != (places, versions):
            checked = self._checked = places, versions, are_finite(places)
        return checked[2]

    def new_rows(self, num: int, work: ConvPass) -> Activations:
        return Activations.of([torch.empty((num, *shape)) for shape in self.shapes], work)

    def _lies_in_order(self, weights: Sequence[Tensor]) -> bool:
        if not all(each.is_cpu and each.dtype is torch.float32 for each in weights):
            return False
        filters = weights[: 2 * len(self.convs) : 2]
        if not all(each.is_contiguous(memory_format=torch.channels_last) for each in filters):
            return False
        hidden, outputs = self.dense[:1], self.dense[1:]
        if not all(map(_lies_by_place, hidden)):
            return False
        return not outputs or read_rows_of(hidden[0].out_features, outputs)


def _lies_by_place(layer: nn.Linear) -> bool:
    """Whether all units of an input lie together, as kernels behind convolutions read them."""
    weight = weight_of(layer)
    units, _ = weight.shape
    return units % DENSE_UNITS_STEP == 0 and weight.stride() == (1, units)


@dataclass(eq=False)
class ConvKernels:
    """The convolutions of a trunk, and the layers that were seen behind them."""

    convs: nn.Sequential
    sizes: Sizes
    pixels: PixelScale
    num_features: int
    _chains: dict[tuple[nn.Linear, ...], Chain] = field(default_factory=dict)

    @classmethod
    def of(cls, convs: nn.Sequential, sizes: Sizes, pixels: PixelScale) -> ConvKernels | None:
        """None where there are no kernels for these sizes or this processor."""
        native = native_stack(sizes)
        return cls(convs, sizes, pixels, native.feature_floats) if native else None

    def chain(self, dense: tuple[nn.Linear, ...]) -> Chain:
        """The way through the convolutions and these layers; made once for each."""
        found = self._chains.get(dense)
        if found is None:
            convs = [each for each in self.convs if isinstance(each, nn.Conv2d)]
            shapes = [_shape_of(each) for each in dense] or [(self.num_features,)]
            found = self._chains[dense] = Chain(convs, dense, shapes)
        return found

    def begin(self) -> ConvPass:
        native = native_stack(self.sizes)
        assert native is not None
        return native.begin()

    def torch_rows(self, observations: Tensor) -> Tensor:
        """Features by PyTorch."""
        return torch_rows(self.convs, self.pixels, observations)


def _shape_of(layer: nn.Linear) -> tuple[int, ...]:
    """Of what it makes of a row: a single unit gives a number."""
    return (layer.out_features,) if layer.out_features > 1 else ()


def torch_rows(convs: nn.Sequential, pixels: PixelScale, observations: Tensor) -> Tensor:
    """Features [N, H * W * C] of the last rectified convolution, by PyTorch."""
    maps: Tensor = convs(image_planes(observations, pixels))
    return maps.permute(0, 2, 3, 1).flatten(1)  # a view: channels are last in memory


@dataclass(slots=True)
class ConvFeatures:
    """Features that wait for their reader: rows as they are, or the dense layers behind them.

    Dense layers that read them here are computed once for all that is the same in several
    pictures, and nobody writes the features down.
    """

    kernels: ConvKernels
    observations: Tensor

    def rows(self) -> Tensor:
        """[N, H * W * C]"""
        found = self.read()
        return found[0] if found else self.kernels.torch_rows(self.observations)

    def read(self, *dense: nn.Linear) -> Sequence[Tensor] | None:
        """What dense layers make of the features: the only one, rectified, or all behind it.

        Gives features where there are no layers, arrays [N] for layers of one unit, and None where
        kernels do not take these weights. Remembered where a rollout is kept.
        """
        chain = self.kernels.chain(dense)
        weights = chain.weights()
        places = chain.spans_of(weights)
        if places is None:
            return None
        if torch.is_grad_enabled():
            return self._learned(chain, weights, places)
        num = self.observations.shape[0]
        room = activation_cache.reserve(chain, num, chain.shapes, self.kernels.begin)
        rows = room or chain.new_rows(
            num, activation_cache.workspace(chain) or self.kernels.begin()
        )
        finite = chain.are_finite(weights, places)
        self._forward(rows, places, keeps=room is not None, finite=finite)
        return _last(rows.arrays)

    def _learned(
        self, chain: Chain, weights: Sequence[Tensor], places: list[Span]
    ) -> Sequence[Tensor]:
        num = self.observations.shape[0]
        known = activation_cache.lookup(chain, num)
        rows = known or chain.new_rows(num, self.kernels.begin())
        if known is None:
            finite = chain.are_finite(weights, places)
            self._forward(rows, places, keeps=True, finite=finite)
        found: Sequence[Tensor] = _ConvRows.apply(rows, chain, *weights)  # type: ignore[no-untyped-call]
        return found

    def _forward(self, rows: Activations, places: list[Span], *, keeps: bool, finite: bool) -> None:
        pixels = self.kernels.pixels
        frames = images(self.observations, pixels.scale, pixels.offset)
        rows.workspace.forward(frames, places, rows.spans, keeps, finite)


Features = Tensor | ConvFeatures


def are_readable(observations: Tensor) -> bool:
    """Whether kernels that walk raw memory may have these pictures."""
    return has_contiguous_planes(observations) and not observations.requires_grad


def rows_of(features: Features) -> Tensor:
    """[N, features], for whoever needs the numbers themselves."""
    return features.rows() if isinstance(features, ConvFeatures) else features


def rectified(layer: nn.Linear, features: Features) -> Tensor:
    """max(0, features @ weights + bias), by the native kernels where they can."""
    found = features.read(layer) if isinstance(features, ConvFeatures) else None
    if found:
        return found[0]
    rows = rows_of(features)
    return dense_rectified(layer, rows) if can_be_native([layer], rows) else layer(rows).relu()


class _ConvRows(torch.autograd.Function):
    """All convolutions of a trunk, and the dense layers that read them, as one step of the graph.

    The rows have been computed.
    """

    @staticmethod
    def forward(
        context: Any, rows: Activations, chain: Chain, *weights: Tensor
    ) -> tuple[Tensor, ...]:
        context.save_for_backward(*rows.arrays, *weights)
        context.rows, context.chain = rows, chain
        return tuple(each.detach() for each in _last(rows.arrays))

    @staticmethod
    def backward(context: Any, *upstream: Any) -> tuple[Any, ...]:
        rows: Activations = context.rows
        chain: Chain = context.chain
        weights = context.saved_tensors[len(rows.arrays) :]
        places = chain.spans_of(weights)
        assert places is not None  # they lie as they did on the way forward
        gradients = [torch.empty_like(each) for each in weights]
        whole = [each.contiguous() for each in upstream]
        rows.workspace.backward(places, rows.spans, spans(whole), spans(gradients))
        return None, None, *gradients


def _last(arrays: Sequence[Tensor]) -> Sequence[Tensor]:
    """What nobody reads any further here: the only array, or those behind the hidden rows."""
    return arrays[1:] or arrays
