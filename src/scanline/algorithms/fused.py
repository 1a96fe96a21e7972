"""Losses of small batches in one native call, with the gradient that belongs to them.

Takes a network's outputs and a batch's numbers; gives a loss that autograd can start from.
Knows no algorithm's settings but the numbers handed in.

Between kernels that fill the caches an operation of PyTorch takes 20 microseconds, and a loss with
its way back has thirty. What the kernels do not take (another device, other types) is written in
operations by the algorithm itself: the path to compare with.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from .._native import actor_critic as native_actor_critic
from ..native_arrays import is_readable, unchecked_spans
from ..records import PolicyValue


class Terms(NamedTuple):
    """Losses by name, and means over the batch; numbers where they are known at once."""

    losses: Mapping[str, Tensor]
    policy: Tensor | float
    value: Tensor | float
    entropy: Tensor | float


def actor_critic(
    outputs: PolicyValue,
    actions: Tensor,
    returns: Tensor,
    *,
    entropy_coef: float,
    value_coef: float,
    scale: float,
) -> Terms | None:
    """`scale` times the sum of the actor-critic loss over the batch, or None where it must be
    written in operations."""
    logits, values = outputs
    numbers = (logits, values, returns)
    if not all(map(is_readable, numbers)) or not is_readable(actions, torch.int64):
        return None
    gradients = torch.empty_like(logits), torch.empty_like(values)
    arrays = unchecked_spans(*numbers, actions, *gradients)
    sums = native_actor_critic(*arrays, entropy_coef, value_coef, scale)
    policy, entropy, value = sums
    loss = scale * (policy - entropy_coef * entropy + value_coef * value)
    num = max(len(values), 1)
    known = _KnownGradient.apply(loss, gradients, logits, values)  # type: ignore[no-untyped-call]
    return Terms({"all": known}, policy / num, value / num, entropy / num)


class _KnownGradient(torch.autograd.Function):
    """A loss whose gradient was computed with it."""

    @staticmethod
    def forward(
        context: Any, loss: float, gradients: tuple[Tensor, ...], *inputs: Tensor
    ) -> Tensor:
        context.gradients = gradients
        return torch.scalar_tensor(loss)

    @staticmethod
    def backward(context: Any, *upstream: Any) -> tuple[Any, ...]:
        factor = float(upstream[0])
        if factor == 1.0:
            return None, None, *context.gradients
        return None, None, *(each * factor for each in context.gradients)
