"""DQN: errors between a live network's values and a lagged one's, n steps later.

Takes drawn pairs of observations with the rewards between them; gives the loss and, as priorities,
the sizes of the errors. Knows no optimiser, buffer, process or environment.

How far rewards are summed and how the future is discounted is decided where steps are accumulated:
a batch brings both as columns, so n-step, terminal and truncated steps need no line here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

from ..random import Choice
from ..records import ActContext, Acted, Batch, LossResult, Outputs, QValues, Views
from .exploration import EpsilonGreedy
from .interface import taken
from .pixels import PixelNormalising


@dataclass(frozen=True, kw_only=True)
class QLearning(PixelNormalising):
    """Acts epsilon-greedily and learns from replayed pairs with a target network."""

    exploration: EpsilonGreedy = field(default_factory=EpsilonGreedy)
    """How often actions are random."""
    double: bool = False
    """Whether the live network chooses the next action and the target only values it."""
    dueling: bool = False
    """Whether the network has separate streams for value and advantage."""

    @property
    def needs(self) -> frozenset[str]:
        return super().needs | {"pairs", "target"}

    @property
    def evaluation_choice(self) -> Choice:
        return self.exploration.evaluation_choice

    def next_outputs(self, views: Views, batch: Batch) -> tuple[Outputs, Outputs]:
        """Of the next observations: what values the best action, and what chooses it."""
        if views.target is None:
            raise ValueError(
                "This algorithm needs a target network, but views.target is empty; keep a lagged "
                "copy in the parameters (target_agent_steps)."
            )
        if batch.next_observations is None:
            raise ValueError(
                "This algorithm learns from pairs, but the batch has no next_observations; "
                "use a replay as store."
            )
        observations = self.inputs(views, batch.next_observations)
        outputs: Outputs = batch.next_outputs(views.target, observations)
        return outputs, batch.next_outputs(views.live, observations) if self.double else outputs


def weighted(losses: Tensor, weights: Tensor | None, reduction: str) -> Tensor:
    """One loss of losses [N], each times its importance weight if there are any.

    The mean divides by the number of items, not by the sum of weights: a batch of rare steps is
    meant to count less.
    """
    if weights is not None:
        losses = losses * weights
    return losses.sum() if reduction == "sum" else losses.mean()


@dataclass(frozen=True, kw_only=True)
class Dqn(QLearning):
    """Q-learning with a target network; double and dueling as settings."""

    loss_form: Literal["squared", "huber"] = "huber"
    """Half the squared error, or the same up to `huber_width` and linear beyond."""
    huber_width: float = 1.0
    """Error at which the Huber loss becomes linear."""
    reduction: Literal["mean", "sum"] = "mean"
    """Whether the batch is averaged or summed; a learning rate belongs to one of them."""

    def __post_init__(self) -> None:
        if self.loss_form not in ("squared", "huber"):
            raise ValueError(f"loss_form={self.loss_form!r} must be 'squared' or 'huber'.")
        if self.reduction not in ("mean", "sum"):
            raise ValueError(f"reduction={self.reduction!r} must be 'mean' or 'sum'.")
        if self.huber_width <= 0:
            raise ValueError(f"huber_width={self.huber_width} must be above 0.")

    @property
    def head(self) -> str:
        return "dueling" if self.dueling else "q"

    def act(self, outputs: QValues, context: ActContext) -> Acted:
        return self.exploration.act(outputs.q, context)

    def loss(self, views: Views, batch: Batch) -> LossResult:
        outputs: QValues = batch.outputs(views.live, self.inputs(views, batch.observations))
        value = taken(outputs.q, batch.actions)
        error = value - self.target(views, batch)
        losses = self._errors(error)
        metrics: dict[str, Tensor | float] = {
            "charts/epsilon": self.exploration.epsilon(batch.agent_steps),
            "losses/td_loss": losses.detach().mean(),
            "losses/q_values": value.detach().mean(),
        }
        loss = weighted(losses, batch.weights, self.reduction)
        return LossResult({"all": loss}, metrics, error.detach().abs())

    @torch.no_grad()
    def target(self, views: Views, batch: Batch) -> Tensor:
        """Reward plus discounted value of what follows, [N]."""
        outputs, chooser = self.next_outputs(views, batch)
        best = taken(outputs.q, chooser.q.argmax(dim=1))
        return batch.columns["reward"] + batch.columns["discount"] * best

    def _errors(self, error: Tensor) -> Tensor:
        if self.loss_form == "squared":
            return 0.5 * error.square()
        zeros = torch.zeros_like(error)
        return functional.huber_loss(error, zeros, reduction="none", delta=self.huber_width)
