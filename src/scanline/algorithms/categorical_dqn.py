"""Categorical DQN: a distribution of returns per action, on fixed atoms.

Takes drawn pairs of observations with the rewards between them; gives the cross-entropy to the
projected target and, as priorities, how far the distributions are apart.
Knows no optimiser, buffer, process or environment.

The number of atoms is the network's: only the ends of their range stand here, so that the two
cannot disagree. With double, dueling and a prioritised n-step replay it is Rainbow, acting
epsilon-greedily.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from ..random import Choice
from ..records import ActContext, Acted, Batch, LossResult, QDistribution, Views
from .exploration import EpsilonGreedy
from .projection import project, support
from .replayed import Replayed, followed, target_of, weighted


@dataclass(frozen=True, kw_only=True)
class CategoricalDqn(Replayed):
    """Distributional Q-learning with a target network; double and dueling as settings."""

    exploration: EpsilonGreedy = field(default_factory=EpsilonGreedy)
    """How often actions are random."""
    v_min: float = -10.0
    """Return of the lowest atom."""
    v_max: float = 10.0
    """Return of the highest atom."""
    double: bool = False
    """Whether the live network chooses the next action and the target only values it."""
    dueling: bool = False
    """Whether the network has separate streams for value and advantage."""
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

    @property
    def evaluation_choice(self) -> Choice:
        return self.exploration.evaluation_choice

    def act(self, outputs: QDistribution, context: ActContext) -> Acted:
        return self.exploration.act(self.expected(outputs.logits), context)

    def expected(self, logits: Tensor) -> Tensor:
        """Mean returns [N, A] of logits [N, A, K]."""
        return torch.softmax(logits, dim=-1) @ support(self.v_min, self.v_max, logits)

    def loss(self, views: Views, batch: Batch) -> LossResult:
        outputs: QDistribution = views.live(self.inputs(views, batch.observations))
        logits = taken(outputs.logits, batch.actions)
        target = self.target(views, batch)
        losses = -(target * torch.log_softmax(logits, dim=-1)).sum(dim=-1)
        priorities = losses.detach()
        if self.priority_form == "kl":
            priorities = (priorities + torch.xlogy(target, target).sum(dim=-1)).clamp(min=0)
        metrics = {
            "losses/td_loss": losses.detach().mean(),
            "losses/q_values": self.expected(logits.detach()).mean(),
        }
        return LossResult({"all": weighted(losses, batch.weights, "mean")}, metrics, priorities)

    @torch.no_grad()
    def target(self, views: Views, batch: Batch) -> Tensor:
        """Projected probabilities [N, K] of the best action of what follows."""
        following = self.inputs(views, followed(batch))
        logits: Tensor = target_of(views)(following).logits
        chooser: Tensor = views.live(following).logits if self.double else logits
        best = taken(logits, self.expected(chooser).argmax(dim=-1))
        reward, discount = batch.columns["reward"], batch.columns["discount"]
        return project(torch.softmax(best, dim=-1), reward, discount, self.v_min, self.v_max)


def taken(logits: Tensor, actions: Tensor) -> Tensor:
    """Logits [N, K] of one action each, from [N, A, K]."""
    return logits[torch.arange(len(actions), device=logits.device), actions]
