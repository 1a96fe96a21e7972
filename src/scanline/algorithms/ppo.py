"""Proximal policy optimisation: several epochs on one rollout, with a clipped ratio.

Takes a rollout whose values and log-probabilities were stored while acting and gives generalised
advantages (`prepare`), then minibatches and gives the clipped loss.
Knows no optimiser, buffer, process or environment.

The published forms differ in what they normalise, clip and anneal; all of that is settings. The
value error is the whole square, as in `ActorCritic`: a coefficient from code that halves it
(CleanRL, CuLE) is half as large here.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Self

import torch
from torch import Tensor

from .. import random, returns
from ..records import (
    ActContext,
    Acted,
    Batch,
    Column,
    Experience,
    LossResult,
    Outputs,
    PolicyValue,
    Slot,
    Spaces,
    Views,
)
from ..schedules import Linear
from ..settings import at_least, fractions
from .interface import taken, trajectory_of
from .pixels import PixelNormalising

_EPSILON = 1e-8
"""What keeps the deviation of equal advantages from zero."""


@dataclass(frozen=True, kw_only=True)
class Ppo(PixelNormalising):
    """Clipped policy gradient with generalised advantages."""

    discount: float = 0.99
    """Factor per agent step on the future."""
    gae_lambda: float = 0.95
    """Trace decay of the advantages."""
    clip_coef: float = 0.1
    """Largest change of the action's probability ratio that still earns gradient."""
    clip_anneal: Literal["none", "linear"] = "none"
    """'linear' takes the clip to zero, as an annealed learning rate; 'none' keeps it."""
    clip_anneal_agent_steps: int = 0
    """Agent steps until an annealed clip is zero; 0 for those of the whole run."""
    normalise_advantages: Literal["none", "minibatch", "rollout"] = "minibatch"
    """Over what advantages get mean 0 and deviation 1; with several learners, each over its own."""
    clip_value_loss: bool = False
    """Whether a value may move from the stored one by no more than the clip for free."""
    entropy_coef: float = 0.01
    """Weight of the entropy bonus."""
    value_coef: float = 0.5
    """Weight of the squared value error, which is not halved."""

    def __post_init__(self) -> None:
        fractions(self, "discount", "gae_lambda")
        at_least(0, self, "clip_anneal_agent_steps", remedy="0 means the whole run")
        if not self.clip_coef > 0.0:
            raise ValueError(f"clip_coef={self.clip_coef} must be positive; 0.1 or 0.2 is usual.")

    @property
    def needs(self) -> frozenset[str]:
        return super().needs | {"rollouts"}

    def columns(self, spaces: Spaces) -> Mapping[str, Column]:
        return {"log_probability": Column(), "value": Column()}

    def spanning(self, agent_steps: int) -> Self:
        if self.clip_anneal == "none" or self.clip_anneal_agent_steps:
            return self
        return dataclasses.replace(self, clip_anneal_agent_steps=agent_steps)

    def act(self, outputs: Outputs, context: ActContext) -> Acted:
        actions = random.choose_actions(outputs.logits, context.uniforms, context.choice)
        log_taken = taken(torch.log_softmax(outputs.logits, dim=-1), actions)
        return Acted(actions, {"log_probability": log_taken, "value": outputs.value})

    def prepare(self, views: Views, slot: Slot) -> Experience:
        value = slot.columns["value"]
        trajectory = trajectory_of(self, views, slot)
        advantage = returns.gae(trajectory, value, self.discount, self.gae_lambda)
        target = advantage + value
        if self.normalise_advantages == "rollout":
            advantage = normalised(advantage, slot.played())
        columns = {"advantage": advantage, "returns": target}
        return Experience(slot, columns, self.next_state(views, slot))

    def loss(self, views: Views, batch: Batch) -> LossResult:
        inputs = self.inputs(views, batch.observations)
        outputs: PolicyValue = batch.outputs(views.live, inputs)
        log_all = torch.log_softmax(outputs.logits, dim=-1)
        change = taken(log_all, batch.actions) - batch.columns["log_probability"]
        clip = self.clip_at(batch.agent_steps)
        policy = self._policy_loss(change.exp(), batch.columns["advantage"], clip)
        value = self._value_loss(outputs.value, batch, clip)
        entropy = -(log_all.exp() * log_all).sum(-1).mean()
        total = policy - self.entropy_coef * entropy + self.value_coef * value
        metrics = {
            "losses/policy_loss": policy.detach(),
            "losses/value_loss": value.detach(),
            "losses/entropy": entropy.detach(),
            "losses/explained_variance": returns.explained_variance(
                batch.columns["value"], batch.columns["returns"]
            ),
            **_change_metrics(change.detach(), clip),
        }
        return LossResult({"all": total}, metrics)

    def clip_at(self, agent_steps: int) -> float:
        """The clip after so many agent steps."""
        if self.clip_anneal == "none":
            return self.clip_coef
        assert self.clip_anneal_agent_steps, "`spanning` has not said how long the run is"
        line = Linear(
            start=self.clip_coef, end=0.0, duration_agent_steps=self.clip_anneal_agent_steps
        )
        return line(agent_steps)

    def _policy_loss(self, ratio: Tensor, advantage: Tensor, clip: float) -> Tensor:
        if self.normalise_advantages == "minibatch":
            advantage = normalised(advantage)
        clipped = ratio.clamp(1.0 - clip, 1.0 + clip)
        return -torch.minimum(advantage * ratio, advantage * clipped).mean()

    def _value_loss(self, value: Tensor, batch: Batch, clip: float) -> Tensor:
        error = (value - batch.columns["returns"]).square()
        if self.clip_value_loss:
            stored = batch.columns["value"]
            near = stored + (value - stored).clamp(-clip, clip)
            error = torch.maximum(error, (near - batch.columns["returns"]).square())
        return error.mean()


def normalised(advantage: Tensor, played: Tensor | None = None) -> Tensor:
    """Mean 0 and deviation 1 over those at the places `played`, the deviation with Bessel's
    correction; a single one stays."""
    counted = advantage if played is None else advantage.flatten()[played]
    if counted.numel() == 1:
        return advantage
    return (advantage - counted.mean()) / (counted.std() + _EPSILON)


def _change_metrics(change: Tensor, clip: float) -> Mapping[str, Tensor]:
    """How far the policy moved from the one that acted; `change` is log pi - log mu."""
    ratio = change.exp()
    return {
        "losses/old_approx_kl": -change.mean(),
        "losses/approx_kl": (ratio - 1.0 - change).mean(),
        "losses/clipfrac": ((ratio - 1.0).abs() > clip).float().mean(),
    }
