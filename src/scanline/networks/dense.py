"""Dense layers on the CPU, by kernels of our own or by PyTorch.

Takes layers and the rows or features that they read; gives their outputs, with gradients.
Knows no network by name, no loss and no optimiser.

What the kernels do not take (another device, odd sizes) is computed by PyTorch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from .._native import dense_backward, dense_forward
from ..native_arrays import NO_ARRAY, span, spans
from .activation_cache import active
from .convolutions import ConvFeatures, Features, has_dense_kernel, rows_of, weights_of


class DenseStream(nn.Sequential):
    """Hidden layers, each followed by ReLU, by the native kernels where they can."""

    def forward(self, features: Features) -> Tensor:
        for layer in self:
            if isinstance(layer, nn.Linear):
                features = _hidden(layer, features)
        return rows_of(features)

    def outputs(self, layers: Sequence[nn.Linear], features: Features) -> Sequence[Tensor]:
        """Of layers behind the stream, in one native call where convolutions are before it."""
        if isinstance(features, ConvFeatures):
            hidden = [each for each in self._modules.values() if isinstance(each, nn.Linear)]
            outputs = features.read(*hidden, *layers) if len(hidden) == 1 else None
            if outputs:
                return outputs
        return [each.squeeze(-1) for each in dense(layers, self(features))]


class DenseOutputs(nn.Linear):
    """A dense layer without ReLU, by the native kernels where they can."""

    def forward(self, rows: Tensor) -> Tensor:
        return dense([self], rows)[0]


def outputs_of(
    stream: nn.Sequential, layers: Sequence[nn.Linear], features: Features
) -> Sequence[Tensor]:
    """Of every layer behind the stream: [N, units], or [N] of a single unit."""
    if isinstance(stream, DenseStream):
        return stream.outputs(layers, features)
    rows = stream(features)
    return [layer(rows).squeeze(-1) for layer in layers]


def _hidden(layer: nn.Linear, features: Features) -> Tensor:
    outputs = features.read(layer) if isinstance(features, ConvFeatures) else None
    return (outputs or dense([layer], rows_of(features), relu=True))[0]


def dense(layers: Sequence[nn.Linear], rows: Tensor, *, relu: bool = False) -> Sequence[Tensor]:
    """[N, units] of every layer; `relu` marks one hidden layer, which uses the activation cache."""
    pairs = weights_of(layers)
    is_readable = rows.is_cpu and rows.dtype is torch.float32 and rows.dim() == 2
    if not is_readable or not has_dense_kernel(pairs, rows.shape[1]):
        outputs = [nn.Linear.forward(layer, rows) for layer in layers]
        return [each.relu() for each in outputs] if relu else outputs
    if torch.is_grad_enabled():
        source = active.source if relu else None
        hit = source.lookup(layers[0], len(rows)) if source else None
        learned: Sequence[Tensor] = _DenseNode.apply(  # type: ignore[no-untyped-call]
            rows, hit.arrays if hit else None, relu, *pairs
        )
        return learned
    target, shapes = active.target if relu else None, [(layers[0].out_features,)]
    reserved = target.reserve(layers[0], len(rows), shapes) if target else None
    return _forward(rows, pairs, reserved.arrays if reserved else None, relu)


def _forward(
    rows: Tensor, pairs: Sequence[Tensor], outputs: Sequence[Tensor] | None, relu: bool
) -> Sequence[Tensor]:
    if outputs is None:
        outputs = [torch.empty((rows.shape[0], bias.shape[0])) for bias in pairs[1::2]]
    contiguous = rows.contiguous()
    dense_forward(span(contiguous), spans(pairs), spans(outputs), relu)
    return outputs


class _DenseNode(torch.autograd.Function):
    """Dense layers of the same rows, with or without ReLU, as one node of the graph."""

    @staticmethod
    def forward(
        context: Any, rows: Tensor, known: Sequence[Tensor] | None, relu: bool, *pairs: Tensor
    ) -> tuple[Tensor, ...]:
        outputs = known or _forward(rows, pairs, None, relu)
        context.save_for_backward(rows, *outputs, *pairs)
        context.relu = relu
        return tuple(each.detach() for each in outputs)

    @staticmethod
    def backward(context: Any, *upstream: Any) -> tuple[Any, ...]:
        rows, *others = context.saved_tensors
        outputs, pairs = others[: len(upstream)], others[len(upstream) :]
        for_rows = torch.empty(rows.shape) if context.needs_input_grad[0] else None
        gradients = [torch.empty(each.shape) for each in pairs]
        contiguous, of_outputs = rows.contiguous(), [each.contiguous() for each in upstream]
        dense_backward(
            span(contiguous),
            spans(pairs),
            spans(outputs),
            spans(of_outputs),
            NO_ARRAY if for_rows is None else span(for_rows),
            spans(gradients),
            context.relu,
        )
        return for_rows, None, None, *gradients
