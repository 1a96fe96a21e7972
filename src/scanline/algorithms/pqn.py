"""PQN: Q-learning without replay or target network (Gallici 2024).

Takes a rollout whose best values were stored while acting and gives lambda returns (`prepare`),
then shuffled minibatches and gives the squared error.
Knows no optimiser, buffer, process or environment.

Layer normalisation in the network is what keeps it stable in place of a target network; the
lambda return is the generalised advantage over the values of the best actions, plus these values.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from torch import Tensor

from .. import returns
from ..random import Choice
from ..records import (
    ActContext,
    Acted,
    Batch,
    Column,
    Experience,
    LossResult,
    QValues,
    Slot,
    Spaces,
    Views,
)
from ..settings import fractions
from .exploration import EpsilonGreedy
from .interface import Defaults, taken, trajectory_of


@dataclass(frozen=True, kw_only=True)
class Pqn(Defaults):
    """Epsilon-greedy Q-learning towards lambda returns of fresh rollouts."""

    exploration: EpsilonGreedy = field(default_factory=EpsilonGreedy)
    """How often actions are random."""
    exploration_share: float = 0.1
    """Share of the run's agent steps over which epsilon falls; 0 for `epsilon_agent_steps`."""
    discount: float = 0.99
    """Factor per agent step on the future."""
    q_lambda: float = 0.65
    """Trace decay of the returns: 0 looks one step ahead, 1 to the end of the rollout."""

    def __post_init__(self) -> None:
        fractions(self, "discount", "q_lambda", "exploration_share")

    @property
    def head(self) -> str:
        return "q"

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"rollouts"})

    @property
    def evaluation_choice(self) -> Choice:
        return self.exploration.evaluation_choice

    def spanning(self, agent_steps: int) -> Self:
        steps = max(1, int(self.exploration_share * agent_steps))
        if not self.exploration_share:
            return self
        exploration = dataclasses.replace(self.exploration, epsilon_agent_steps=steps)
        return dataclasses.replace(self, exploration=exploration)

    def columns(self, spaces: Spaces) -> Mapping[str, Column]:
        return {"value": Column()}

    def act(self, outputs: QValues, context: ActContext) -> Acted:
        actions = self.exploration.act(outputs.q, context).actions
        return Acted(actions, {"value": outputs.value})

    def prepare(self, views: Views, slot: Slot) -> Experience:
        value, trajectory = slot.columns["value"], trajectory_of(self, views, slot)
        advantage = returns.gae(trajectory, value, self.discount, self.q_lambda)
        return Experience(slot, {"returns": advantage + value})

    def loss(self, views: Views, batch: Batch) -> LossResult:
        outputs: QValues = batch.outputs(views.live)
        value = taken(outputs.q, batch.actions)
        loss = 0.5 * (value - batch.columns["returns"]).square().mean()
        metrics: dict[str, Tensor | float] = {
            "charts/epsilon": self.exploration.epsilon(batch.agent_steps),
            "losses/td_loss": loss.detach(),
            "losses/q_values": value.detach().mean(),
        }
        return LossResult({"all": loss}, metrics)
