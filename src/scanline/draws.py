"""Draws: decisions made of numbers in [0, 1).

Takes scores of actions and uniforms; gives actions. Knows no stream, policy or environment.

Chance enters only through the uniforms, so that the action of an environment depends on nothing but
its own observation and its own counter.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from ._native import draw_categorical
from .spans import is_plain, places


class Choice(NamedTuple):
    """How actions are chosen from what a network says of them."""

    greedy: bool = False
    """The best action; else as in training: drawn from a policy, or explored by a schedule."""
    epsilon: float = 0.0
    """Chance of any action instead of the best one; only where the choice is greedy."""

    def __str__(self) -> str:
        if not self.greedy:
            return "sampled as in training"
        return f"greedy with epsilon {self.epsilon:g}" if self.epsilon else "greedy"


SAMPLED, GREEDY = Choice(), Choice(greedy=True)


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


def action(logits: Tensor, uniforms: Tensor, choice: Choice) -> Tensor:
    """Actions [N] of a policy: the best of logits [N, A], or drawn at uniforms [N, 2]."""
    if choice.greedy:
        return epsilon_greedy(logits, choice.epsilon, uniforms)
    return categorical(logits, uniforms)


def log_probability(log_all: Tensor, actions: Tensor) -> Tensor:
    """Log-probabilities [N] of the actions taken, from those of all actions [N, A]."""
    return log_all.gather(-1, actions[:, None]).squeeze(-1)


def epsilon_greedy(q: Tensor, epsilon: float, uniforms: Tensor) -> Tensor:
    """Actions [N]: the best of q [N, A], or with chance epsilon any; uniforms [N, 2]."""
    num_actions = q.shape[-1]
    anything = (uniforms[:, 1] * num_actions).long().clamp(max=num_actions - 1)
    return torch.where(uniforms[:, 0] < epsilon, anything, q.argmax(dim=-1))
