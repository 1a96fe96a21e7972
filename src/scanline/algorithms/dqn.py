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
from ..records import ActContext, Acted, Batch, LossResult, QValues, Views
from .exploration import EpsilonGreedy
from .replayed import Replayed, followed, target_of, weighted


@dataclass(frozen=True, kw_only=True)
class Dqn(Replayed):
    """Q-learning with a target network; double and dueling as settings."""

    exploration: EpsilonGreedy = field(default_factory=EpsilonGreedy)
    """How often actions are random."""
    loss_form: Literal["squared", "huber"] = "huber"
    """Half the squared error, or the same up to `huber_width` and linear beyond."""
    huber_width: float = 1.0
    """Error at which the Huber loss becomes linear."""
    double: bool = False
    """Whether the live network chooses the next action and the target only values it."""
    dueling: bool = False
    """Whether the network has separate streams for value and advantage."""
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

    @property
    def evaluation_choice(self) -> Choice:
        return self.exploration.evaluation_choice

    def act(self, outputs: QValues, context: ActContext) -> Acted:
        return self.exploration.act(outputs.q, context)

    def loss(self, views: Views, batch: Batch) -> LossResult:
        outputs: QValues = views.live(self.inputs(views, batch.observations))
        value = outputs.q.gather(1, batch.actions[:, None]).squeeze(1)
        error = value - self.target(views, batch)
        losses = self._errors(error)
        metrics = {
            "losses/td_loss": losses.detach().mean(),
            "losses/q_values": value.detach().mean(),
        }
        loss = weighted(losses, batch.weights, self.reduction)
        return LossResult({"all": loss}, metrics, error.detach().abs())

    @torch.no_grad()
    def target(self, views: Views, batch: Batch) -> Tensor:
        """Reward plus discounted value of what follows, [N]."""
        following = self.inputs(views, followed(batch))
        q: Tensor = target_of(views)(following).q
        chooser: Tensor = views.live(following).q if self.double else q
        best = q.gather(1, chooser.argmax(dim=1, keepdim=True)).squeeze(1)
        return batch.columns["reward"] + batch.columns["discount"] * best

    def _errors(self, error: Tensor) -> Tensor:
        if self.loss_form == "squared":
            return 0.5 * error.square()
        zeros = torch.zeros_like(error)
        return functional.huber_loss(error, zeros, reduction="none", delta=self.huber_width)
