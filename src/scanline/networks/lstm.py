"""A long short-term memory between dense layers and outputs.

Takes rows [T * B, features] and the carried state; gives rows [T * B, units] and the state after
the last step, with gradients through time. Knows no network by name, no loss and no store.

The products with the inputs are one matrix product for all steps; only those with the state go from
step to step. Their gradients are written out by hand: PyTorch's graph of the same few operations on
small rows takes five times as long.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from ..carried import Carried, Column, State
from .layers import Layers


class Lstm(nn.Module):
    """One layer, gates in PyTorch's order: input, forget, cell, output."""

    def __init__(self, layers: Layers, features: int, units: int) -> None:
        super().__init__()
        self.inputs = layers.dense(features, 4 * units, "memory")
        self.state = layers.dense(units, 4 * units, "memory")
        self.carried = {"hidden": Column((units,)), "cell": Column((units,))}

    def forward(self, rows: Tensor, carried: Carried) -> tuple[Tensor, State]:
        gates = self.inputs(rows) + self.state.bias
        gates = gates.view(-1, carried.num_envs, gates.shape[1])
        kept = None if carried.begins is None else (~carried.begins).to(rows.dtype)[..., None]
        before = carried.state["hidden"], carried.state["cell"]
        hidden, cell = _Unrolled.apply(gates, self.state.weight, before, kept)  # type: ignore[no-untyped-call]
        return hidden.flatten(0, 1), {"hidden": hidden[-1].detach(), "cell": cell}


class _Unrolled(torch.autograd.Function):
    """Gates [T, B, 4 H] before the state's part to hidden rows [T, B, H] and the last cell [B, H].

    `kept` [T, B, 1] is 0 where an episode begins, else 1; None where none begins. The states before
    the first step, and the last cell, have no gradient.
    """

    @staticmethod
    def forward(
        context: Any, gates: Tensor, weight: Tensor, before: tuple[Tensor, ...], kept: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        hidden, cell = before
        num_steps, num_envs, _ = gates.shape
        arrays = gates.new_empty((4, num_steps, num_envs, hidden.shape[-1]))
        hidden_before, cell_before, squashed, rows = arrays.unbind()
        opened, transposed = torch.empty_like(gates), weight.t()
        for t in range(num_steps):
            if kept is None:
                hidden_before[t], cell_before[t] = hidden, cell
            else:
                torch.mul(hidden, kept[t], out=hidden_before[t])
                torch.mul(cell, kept[t], out=cell_before[t])
            torch.addmm(gates[t], hidden_before[t], transposed, out=opened[t])
            enters, forgets, new, leaves = opened[t].chunk(4, dim=-1)
            enters.sigmoid_()
            forgets.sigmoid_()
            new.tanh_()
            leaves.sigmoid_()
            cell = torch.addcmul(enters * new, forgets, cell_before[t])
            torch.tanh(cell, out=squashed[t])
            hidden = torch.mul(leaves, squashed[t], out=rows[t])
        context.save_for_backward(weight, hidden_before, cell_before, opened, squashed, kept)
        context.mark_non_differentiable(cell)
        return rows, cell

    @staticmethod
    def backward(context: Any, *upstream: Any) -> tuple[Any, ...]:
        weight, hidden_before, cell_before, opened, squashed, kept = context.saved_tensors
        enters, forgets, new, leaves = opened.chunk(4, dim=-1)
        to_leaves = squashed * leaves * (1 - leaves)
        to_cell = leaves * (1 - squashed * squashed)
        to_gates = torch.stack(  # of enters, forgets and new, from the cell
            [
                new * enters * (1 - enters),
                cell_before * forgets * (1 - forgets),
                enters * (1 - new * new),
            ],
            dim=2,
        )  # [T, B, 3, H]
        through = forgets if kept is None else forgets * kept
        gradients = torch.empty_like(opened)
        split = gradients.view(*gradients.shape[:2], 4, -1)
        later_hidden = later_cell = torch.zeros_like(squashed[0])
        for t in reversed(range(len(opened))):
            hidden = upstream[0][t] + later_hidden
            cell = torch.addcmul(later_cell, hidden, to_cell[t])
            torch.mul(cell[:, None], to_gates[t], out=split[t, :, :3])
            torch.mul(hidden, to_leaves[t], out=split[t, :, 3])
            later_hidden = gradients[t] @ weight
            if kept is not None:
                later_hidden *= kept[t]
            later_cell = cell * through[t]
        of_weight = gradients.flatten(0, 1).t() @ hidden_before.flatten(0, 1)
        return gradients, of_weight, None, None
