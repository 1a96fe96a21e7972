"""Projection: a shifted and shrunken distribution, back on its fixed atoms.

Takes probabilities on K equally spaced atoms, rewards and discounts; gives probabilities on the
same atoms. Knows no network, loss or store.

The one copy of the categorical Bellman update (Bellemare 2017): every atom's mass moves to
r + discount z, is clipped to the ends, and is shared by its two neighbours by their nearness.
"""

from __future__ import annotations

import torch
from torch import Tensor


def project(
    probabilities: Tensor, reward: Tensor, discount: Tensor, v_min: float, v_max: float
) -> Tensor:
    """Target probabilities [N, K] from [N, K] ones, rewards [N] and discounts [N]."""
    num_atoms = probabilities.shape[-1]
    spacing = (v_max - v_min) / (num_atoms - 1)
    moved = reward[:, None] + discount[:, None] * support(v_min, v_max, probabilities)
    place = ((moved.clamp(v_min, v_max) - v_min) / spacing).clamp(0, num_atoms - 1)  # [N, K]
    lower = place.floor()
    above = place - lower  # share of the upper neighbour; 0 where an atom is met exactly
    below = lower.long()
    upper = (below + 1).clamp(max=num_atoms - 1)
    projected = torch.zeros_like(probabilities)
    projected.scatter_add_(1, below, probabilities * (1 - above))
    return projected.scatter_add_(1, upper, probabilities * above)


def support(v_min: float, v_max: float, like: Tensor) -> Tensor:
    """The atoms' values [K], as many and of the same kind as in `like` [..., K]."""
    return torch.linspace(v_min, v_max, like.shape[-1], dtype=like.dtype, device=like.device)
