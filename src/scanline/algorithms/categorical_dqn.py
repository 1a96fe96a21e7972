"""Categorical DQN: a distribution of returns per action, on fixed atoms.

Takes drawn pairs of observations with the rewards between them; gives the cross-entropy to the
projected target and, as priorities, how far the distributions are apart.
Knows no optimiser, buffer, process or environment.

The loss reads the number of atoms from the network, which is built with `num_atoms` of them.
With double, dueling and a prioritised n-step replay it is Rainbow, acting
epsilon-greedily.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from ..records import ActContext, Acted, Batch, LossResult, QDistribution, Views
from .dqn import QLearning, weighted


@dataclass(frozen=True, kw_only=True)
class CategoricalDqn(QLearning):
    """Distributional Q-learning with a target network; double and dueling as settings."""

    num_atoms: int = 51
    """Atoms of the distribution; a network of your own has as many as it gives."""
    v_min: float = -10.0
    """Return of the lowest atom."""
    v_max: float = 10.0
    """Return of the highest atom."""
    priority_form: Literal["cross-entropy", "kl"] = "cross-entropy"
    """What a priority measures: the loss itself, or the loss without the target's entropy."""

    def __post_init__(self) -> None:
        if self.v_min >= self.v_max:
            raise ValueError(f"v_min={self.v_min} must lie below v_max={self.v_max}.")
        if self.priority_form not in ("cross-entropy", "kl"):
            raise ValueError(
                f"priority_form={self.priority_form!r} must be 'cross-entropy' or 'kl'."
            )

    @property
    def head(self) -> str:
        return "dueling-categorical" if self.dueling else "categorical"

    def act(self, outputs: QDistribution, context: ActContext) -> Acted:
        return self.exploration.act(self.expected(outputs.logits), context)

    def expected(self, logits: Tensor) -> Tensor:
        """Mean returns [N, A] of logits [N, A, K]."""
        return torch.softmax(logits, dim=-1) @ support(self.v_min, self.v_max, logits)

    def loss(self, views: Views, batch: Batch) -> LossResult:
        inputs = self.inputs(views, batch.observations)
        outputs: QDistribution = batch.outputs(views.live, inputs)
        logits = of_actions(outputs.logits, batch.actions)
        target = self.target(views, batch)
        losses = -(target * torch.log_softmax(logits, dim=-1)).sum(dim=-1)
        priorities = losses.detach()
        if self.priority_form == "kl":
            priorities = (priorities + torch.xlogy(target, target).sum(dim=-1)).clamp(min=0)
        metrics: dict[str, Tensor | float] = {
            "charts/epsilon": self.exploration.epsilon(batch.agent_steps),
            "losses/td_loss": losses.detach().mean(),
            "losses/q_values": self.expected(logits.detach()).mean(),
        }
        return LossResult({"all": weighted(losses, batch.weights, "mean")}, metrics, priorities)

    @torch.no_grad()
    def target(self, views: Views, batch: Batch) -> Tensor:
        """Projected probabilities [N, K] of the best action of what follows."""
        outputs, chooser = self.next_outputs(views, batch)
        best = of_actions(outputs.logits, self.expected(chooser.logits).argmax(dim=-1))
        reward, discount = batch.columns["reward"], batch.columns["discount"]
        return project(torch.softmax(best, dim=-1), reward, discount, self.v_min, self.v_max)


def of_actions(logits: Tensor, actions: Tensor) -> Tensor:
    """Logits [N, K] of one action each, from [N, A, K]."""
    return logits[torch.arange(len(actions), device=logits.device), actions]


def project(
    probabilities: Tensor, reward: Tensor, discount: Tensor, v_min: float, v_max: float
) -> Tensor:
    """Target probabilities [N, K] from [N, K] ones, rewards [N] and discounts [N].

    The categorical Bellman update (Bellemare 2017): the mass of an atom z moves to r + discount z,
    is clipped to the ends, and is shared by the two nearest atoms in proportion to their nearness.
    """
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
