"""The convolutions of a network, by kernels of our own or by PyTorch.

Takes a trunk's convolutions and observations; gives features that are computed when a layer reads
them, with gradients. Knows no network by name, no loss and no optimiser.

Equal patches, and a dense layer's products with them, are computed once for all images of a batch
and of a rollout. What the kernels do not take (another device, odd sizes, an old processor) is
computed by PyTorch.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from .._native import ConvPass, ConvStack, are_finite, dense_refusal
from ..native_arrays import Span, has_contiguous_planes, images, spans
from .activation_cache import Activations, active, versions_of

DENSE_UNITS_STEP = 16
"""Units of a dense layer that reads features inside the kernels come in multiples of it."""

ConvSizes = tuple[tuple[int, ...], ...]
"""Per convolution: height, width, channels, filters, kernel, stride, top, bottom, left, right."""


@dataclass(frozen=True)
class PixelScale:
    """`x * scale + offset` for a byte x; float input is already scaled."""

    scale: float
    offset: float = 0.0

    def apply_(self, pixels: Tensor) -> Tensor:
        """Scales in place."""
        if self.scale != 1.0:
            pixels.mul_(self.scale)
        return pixels.add_(self.offset) if self.offset else pixels


def image_planes(observations: Tensor, pixels: PixelScale) -> Tensor:
    """[N, S, H, W] or [N, S, H, W, C] to float32 [N, S * C, H, W], channels last in memory.

    On a CPU frames are copied one stack position at a time, which was twice as fast as
    `Tensor.to(float32, channels_last)` on a 2-core AVX2 machine; elsewhere in one launch.
    """
    if not observations.is_cpu:
        planes = observations.movedim(1, 3).to(torch.float32, memory_format=torch.contiguous_format)
        return _scaled(planes, observations, pixels)
    num, stack, height, width, *colours = observations.shape
    planes = torch.empty(
        (num, height, width, stack, *colours), dtype=torch.float32, device=observations.device
    )
    for position, frame in enumerate(observations.unbind(1)):
        planes[:, :, :, position] = frame
    return _scaled(planes, observations, pixels)


def _scaled(planes: Tensor, observations: Tensor, pixels: PixelScale) -> Tensor:
    if not observations.is_floating_point():
        pixels.apply_(planes)
    return planes.flatten(3).permute(0, 3, 1, 2)


class ConvTrunk(nn.Module):
    """Images to the features of the last convolution, flattened as [H, W, C]."""

    def __init__(self, convs: nn.Sequential, pixels: PixelScale, sizes: ConvSizes | None) -> None:
        super().__init__()
        self.convs = convs
        self.pixels = pixels
        self.sizes = sizes if sizes and native_stack(sizes) else None
        """None leaves the work to PyTorch."""
        self._chains: dict[tuple[nn.Linear, ...], LayerChain] = {}

    def forward(self, observations: Tensor) -> Features:
        if self.sizes and has_contiguous_planes(observations) and not observations.requires_grad:
            return ConvFeatures(self, observations)
        return self.torch_features(observations)

    def torch_features(self, observations: Tensor) -> Tensor:
        """[N, H * W * C] by PyTorch."""
        maps: Tensor = self.convs(image_planes(observations, self.pixels))
        return maps.permute(0, 2, 3, 1).flatten(1)  # a view: channels are last in memory

    def chain(self, dense: tuple[nn.Linear, ...]) -> LayerChain:
        """The convolutions and these layers behind them; made once for each."""
        chain = self._chains.get(dense)
        if chain is None:
            convs = [each for each in self.convs if isinstance(each, nn.Conv2d)]
            shapes = [_row_shape(each) for each in dense] or [(self._native().feature_floats,)]
            chain = self._chains[dense] = LayerChain(convs, dense, shapes)
        return chain

    def new_workspace(self) -> ConvPass:
        return self._native().begin()

    def _native(self) -> ConvStack:
        stack = native_stack(self.sizes) if self.sizes else None
        assert stack is not None
        return stack


@functools.lru_cache
def native_stack(sizes: ConvSizes) -> ConvStack | None:
    """The kernels, shared by all networks of these sizes; None where there are none."""
    rows = [list(each) for each in sizes]
    return None if ConvStack.refusal(rows) else ConvStack(rows)


def _row_shape(layer: nn.Linear) -> tuple[int, ...]:
    """Of one row of outputs: a single unit gives a number."""
    return (layer.out_features,) if layer.out_features > 1 else ()


@dataclass(slots=True)
class ConvFeatures:
    """Features that are computed when they are read, alone or with the dense layers behind them.

    Dense layers that are read here are computed once for patches that are equal in several images,
    and the features are never written to memory.
    """

    trunk: ConvTrunk
    observations: Tensor

    def rows(self) -> Tensor:
        """[N, H * W * C]"""
        outputs = self.read()
        return outputs[0] if outputs else self.trunk.torch_features(self.observations)

    def read(self, *dense: nn.Linear) -> Sequence[Tensor] | None:
        """Outputs of dense layers: of a hidden one with ReLU, or of all layers behind it.

        Gives features where there are no layers, arrays [N] for layers of one unit, and None where
        kernels do not take these weights. Uses the activation cache.
        """
        chain = self.trunk.chain(dense)
        weights = chain.weights()
        places = chain.spans_of(weights)
        if places is None:
            return None
        num, new_workspace = self.observations.shape[0], self.trunk.new_workspace
        if not torch.is_grad_enabled():
            cache = active.target
            reserved = cache.reserve(chain, num, chain.shapes, new_workspace) if cache else None
            workspace = cache.workspace(chain) if cache and not reserved else None
            rows = reserved or chain.new_rows(num, workspace or new_workspace())
            self._forward(rows, places, reserved is not None, chain.are_finite(weights, places))
            return _outputs(rows)
        hit = active.source.lookup(chain, num) if active.source else None
        rows = hit or chain.new_rows(num, new_workspace())
        if hit is None:
            self._forward(rows, places, True, chain.are_finite(weights, places))
        outputs: Sequence[Tensor] = _ChainNode.apply(rows, chain, *weights)  # type: ignore[no-untyped-call]
        return outputs

    def _forward(self, rows: Activations, places: list[Span], keeps: bool, finite: bool) -> None:
        """Fills the rows; `keeps` what the backward pass needs in their workspace."""
        pixels = self.trunk.pixels
        inputs = images(self.observations, pixels.scale, pixels.offset)
        rows.workspace.forward(inputs, places, rows.spans, keeps, finite)


Features = Tensor | ConvFeatures


def rows_of(features: Features) -> Tensor:
    """The numbers themselves, [N, features]."""
    return features.rows() if isinstance(features, ConvFeatures) else features


@dataclass(eq=False)
class LayerChain:
    """Convolutions, then a hidden layer if there is one, then outputs that read its rows."""

    convs: Sequence[nn.Module]
    dense: Sequence[nn.Linear]
    shapes: Sequence[tuple[int, ...]]
    """Of one row: of features, or of the hidden layer and of every output."""
    _addresses: list[int] = field(default_factory=list)
    _spans: list[Span] | None = None
    _checked: tuple[list[Span], list[int] | None, bool] | None = None
    """Which weights, their versions, and whether all were finite."""

    def weights(self) -> list[Tensor]:
        """Weights and biases in turn."""
        return weights_of([*self.convs, *self.dense])

    def spans_of(self, weights: Sequence[Tensor]) -> list[Span] | None:
        """As kernels take them, or None for another layout; checked when an address changes."""
        addresses = [each.data_ptr() for each in weights]
        if addresses != self._addresses:
            # Threads share a network: the spans of an address are written before the address is.
            self._spans = spans(weights) if self._has_native_layout(weights) else None
            self._addresses = addresses
        return self._spans

    def are_finite(self, weights: Sequence[Tensor], places: list[Span]) -> bool:
        """Whether no weight is infinite or NaN; checked when one has changed.

        Kernels may then leave out products with zero.
        """
        checked, versions = self._checked, versions_of(weights)
        if checked is None or versions is None or checked[:2] != (places, versions):
            checked = self._checked = places, versions, are_finite(places)
        return checked[2]

    def new_rows(self, num: int, workspace: ConvPass) -> Activations:
        return Activations.of([torch.empty((num, *shape)) for shape in self.shapes], workspace)

    def _has_native_layout(self, weights: Sequence[Tensor]) -> bool:
        if not all(each.is_cpu and each.dtype is torch.float32 for each in weights):
            return False
        first_dense = 2 * len(self.convs)
        filters = weights[:first_dense:2]
        if not all(each.is_contiguous(memory_format=torch.channels_last) for each in filters):
            return False
        if not self.dense:
            return True
        hidden, _, *outputs = weights[first_dense:]
        return _is_input_major(hidden) and (
            not outputs or has_dense_kernel(outputs, num_inputs=len(hidden))
        )


def weights_of(layers: Sequence[nn.Module]) -> list[Tensor]:
    """Weights and biases in turn, without the detour that a module takes to its parameters."""
    return [each for layer in layers for each in layer._parameters.values() if each is not None]


def _is_input_major(weight: Tensor) -> bool:
    """Whether all units of an input are adjacent, as kernels behind convolutions read them."""
    units, _ = weight.shape
    return units % DENSE_UNITS_STEP == 0 and weight.stride() == (1, units)


def has_dense_kernel(pairs: Sequence[Tensor], num_inputs: int) -> bool:
    """Whether the dense kernel takes these weights and biases, and rows of so many inputs."""
    return _takes_rows_of(num_inputs) and all(each.is_contiguous() for each in pairs[::2])


@functools.lru_cache
def _takes_rows_of(num_inputs: int) -> bool:
    return dense_refusal(num_inputs) is None


class _ChainNode(torch.autograd.Function):
    """A chain as one node of the graph; its rows have been computed."""

    @staticmethod
    def forward(
        context: Any, rows: Activations, chain: LayerChain, *weights: Tensor
    ) -> tuple[Tensor, ...]:
        context.save_for_backward(*rows.arrays, *weights)
        context.rows, context.chain = rows, chain
        return tuple(each.detach() for each in _outputs(rows))

    @staticmethod
    def backward(context: Any, *upstream: Any) -> tuple[Any, ...]:
        rows: Activations = context.rows
        weights = context.saved_tensors[len(rows.arrays) :]
        places = context.chain.spans_of(weights)
        gradients = [torch.empty_like(each) for each in weights]
        contiguous = [each.contiguous() for each in upstream]
        rows.workspace.backward(places, rows.spans, spans(contiguous), spans(gradients))
        return None, None, *gradients


def _outputs(rows: Activations) -> Sequence[Tensor]:
    """The only array, or those behind the hidden rows."""
    return rows.arrays[1:] or rows.arrays
