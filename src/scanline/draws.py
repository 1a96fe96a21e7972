"""Draws: decisions made of numbers in [0, 1).

Takes scores of actions and uniforms; gives actions. Knows no stream, policy or environment.

Chance enters only through the uniforms, so that the action of an environment depends on nothing but
its own observation and its own counter.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ._native import draw_categorical
from .spans import is_plain, places


def categorical(logits: Tensor, uniforms: Tensor) -> Tensor:
    """Actions [N] by inverting the cumulated softmax of logits [N, A] at uniforms [N, K].

    The first uniform of a row counts. On a CPU one native call takes the place of six operations.
    """
    if is_plain(logits) and is_plain(uniforms):
        return _categorical_here(logits, uniforms)
    cumulated = torch.softmax(logits, dim=-1).cumsum(dim=-1)
    drawn = (uniforms[:, :1] >= cumulated).sum(dim=-1)
    return drawn.clamp(max=logits.shape[-1] - 1)


def _categorical_here(logits: Tensor, uniforms: Tensor) -> Tensor:
    actions = torch.empty(len(logits), dtype=torch.int64)
    draw_categorical(*places(logits, uniforms, actions))
    return actions


def action(logits: Tensor, uniforms: Tensor, *, greedy: bool) -> Tensor:
    """Actions [N] of a policy: the best of logits [N, A], or drawn at uniforms [N, K]."""
    return logits.argmax(dim=-1) if greedy else categorical(logits, uniforms)


def log_probability(log_all: Tensor, actions: Tensor) -> Tensor:
    """Log-probabilities [N] of the actions taken, from those of all actions [N, A]."""
    return log_all.gather(-1, actions[:, None]).squeeze(-1)


def epsilon_greedy(q: Tensor, epsilon: float, uniforms: Tensor) -> Tensor:
    """Actions [N]: the best of q [N, A], or with chance epsilon any; uniforms [N, 2]."""
    num_actions = q.shape[-1]
    anything = (uniforms[:, 1] * num_actions).long().clamp(max=num_actions - 1)
    return torch.where(uniforms[:, 0] < epsilon, anything, q.argmax(dim=-1))
