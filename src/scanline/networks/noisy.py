"""A noisy dense layer (Fortunato 2018): weights with learned deviations in place of exploration.

Takes rows and normal numbers; gives outputs. Knows no head, loss or random stream: noise is an
argument, in acting from `random.normals` of the draws of a step (declare `draws_per_step`), in
learning from `batch.random`.

Every row has noise of its own, at the price of one more product: with factorised noise,
(deviation * outer(b, a)) x = b * (deviation (a * x)).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional


class NoisyLinear(nn.Module):
    """A dense layer whose weights vary by factorised noise, of another draw in every row."""

    def __init__(self, features: int, units: int, first_deviation: float = 0.5) -> None:
        super().__init__()
        bound = 1 / math.sqrt(features)
        self.mean = nn.Linear(features, units)
        nn.init.uniform_(self.mean.weight, -bound, bound)
        nn.init.uniform_(self.mean.bias, -bound, bound)
        self.deviation = nn.Linear(features, units)
        nn.init.constant_(self.deviation.weight, first_deviation * bound)
        nn.init.constant_(self.deviation.bias, first_deviation * bound)

    @property
    def num_normals(self) -> int:
        """Normal numbers that one row needs: one per input, one per output."""
        return self.mean.in_features + self.mean.out_features

    def forward(self, rows: Tensor, normals: Tensor | None = None) -> Tensor:
        """[N, units] of rows [N, features], with normals [N, num_normals], or without noise."""
        outputs: Tensor = self.mean(rows)
        if normals is None:
            return outputs
        signed_root = normals.sign() * normals.abs().sqrt()
        inputs, units = signed_root[:, : rows.shape[1]], signed_root[:, rows.shape[1] :]
        varied = functional.linear(rows * inputs, self.deviation.weight)
        return torch.addcmul(outputs, units, varied + self.deviation.bias)
