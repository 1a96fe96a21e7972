"""Dense layers on the CPU, by kernels of our own.

Takes layers and the rows that they read; gives their outputs, with gradients. Knows no convolution,
no network by name, no loss and no optimiser.

What the kernels do not take (another device, odd sizes) is left to PyTorch by the caller, who asks
`can_be_native` first.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from .._native import dense_backward, dense_forward, dense_refusal
from ..native_arrays import NO_ARRAY, span, spans
from . import activation_cache


@functools.lru_cache
def has_native_dense(inputs: int) -> bool:
    return dense_refusal(inputs) is None


def dense_rectified(layer: nn.Linear, rows: Tensor) -> Tensor:
    """Remembered where a rollout is kept."""
    if torch.is_grad_enabled():
        known = activation_cache.lookup(layer, len(rows))
        (learned,) = _with_gradient([layer], rows, known.arrays if known else None, rectified=True)
        return learned
    room = activation_cache.reserve(layer, len(rows), [(layer.out_features,)])
    (out,) = _dense_forward(rows, pairs_of([layer]), room.arrays if room else None, rectified=True)
    return out


def dense(layers: Sequence[nn.Linear], rows: Tensor) -> Sequence[Tensor]:
    """rows @ weights + bias of every layer."""
    if torch.is_grad_enabled():
        return _with_gradient(layers, rows, None, rectified=False)
    return _dense_forward(rows, pairs_of(layers), None, rectified=False)


def can_be_native(layers: Sequence[nn.Linear], rows: Tensor) -> bool:
    """Whether kernels take these layers and these rows."""
    if not rows.is_cpu or rows.dtype is not torch.float32 or rows.dim() != 2:
        return False
    return read_rows_of(rows.shape[1], layers)


def read_rows_of(width: int, layers: Sequence[nn.Linear]) -> bool:
    return has_native_dense(width) and all(weight_of(each).is_contiguous() for each in layers)


def weight_of(layer: nn.Linear) -> Tensor:
    """`layer.weight` without the detour that a module takes to its parameters."""
    weight = layer._parameters["weight"]
    assert weight is not None
    return weight


def pairs_of(layers: Sequence[nn.Module]) -> list[Tensor]:
    """Weights and biases in turn."""
    return [each for layer in layers for each in layer._parameters.values() if each is not None]


def _dense_forward(
    rows: Tensor, pairs: Sequence[Tensor], outs: Sequence[Tensor] | None, *, rectified: bool
) -> Sequence[Tensor]:
    if outs is None:
        outs = [torch.empty((rows.shape[0], bias.shape[0])) for bias in pairs[1::2]]
    whole = rows.contiguous()
    dense_forward(span(whole), spans(pairs), spans(outs), rectified)
    return outs


def _with_gradient(
    layers: Sequence[nn.Linear], rows: Tensor, known: Sequence[Tensor] | None, *, rectified: bool
) -> Sequence[Tensor]:
    found: Sequence[Tensor] = _Dense.apply(  # type: ignore[no-untyped-call]
        rows, known, rectified, *pairs_of(layers)
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
        rows, *others = context.saved_tensors
        outs, pairs = others[: len(upstream)], others[len(upstream) :]
        wanted = context.needs_input_grad[0]
        for_rows = torch.empty(rows.shape) if wanted else None
        gradients = [torch.empty(each.shape) for each in pairs]
        whole, upstream_whole = rows.contiguous(), [each.contiguous() for each in upstream]
        dense_backward(
            span(whole),
            spans(pairs),
            spans(outs),
            spans(upstream_whole),
            NO_ARRAY if for_rows is None else span(for_rows),
            spans(gradients),
            context.rectified,
        )
        return for_rows, None, None, *gradients
