"""Draws: decisions made of numbers in [0, 1).

Takes scores of actions and uniforms; gives actions. Knows no stream, policy or environment.

Chance enters only through the uniforms, so that the action of an environment depends on nothing but
its own observation and its own counter.
"""

from __future__ import annotations

import torch
from torch import Tensor


def categorical(logits: Tensor, uniform: Tensor) -> Tensor:
    """Actions [N] by inverting the cumulated softmax of logits [N, A] at uniform [N]."""
    cumulated = torch.softmax(logits, dim=-1).cumsum(dim=-1)
    drawn = (uniform[:, None] >= cumulated).sum(dim=-1)
    return drawn.clamp(max=logits.shape[-1] - 1)


def action(logits: Tensor, uniform: Tensor, *, greedy: bool) -> Tensor:
    """Actions [N] of a policy: the best of logits [N, A], or drawn."""
    return logits.argmax(dim=-1) if greedy else categorical(logits, uniform)


def log_probability(log_all: Tensor, actions: Tensor) -> Tensor:
    """Log-probabilities [N] of the actions taken, from those of all actions [N, A]."""
    return log_all.gather(-1, actions[:, None]).squeeze(-1)


def epsilon_greedy(q: Tensor, epsilon: float, uniforms: Tensor) -> Tensor:
    """Actions [N]: the best of q [N, A], or with chance epsilon any; uniforms [N, 2]."""
    num_actions = q.shape[-1]
    anything = (uniforms[:, 1] * num_actions).long().clamp(max=num_actions - 1)
    return torch.where(uniforms[:, 0] < epsilon, anything, q.argmax(dim=-1))
