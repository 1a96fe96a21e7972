"""A2C with V-trace: learning from steps that older policies took.

Takes trajectories of some environments, with the probabilities of the policies that acted; gives
targets and loss in one, from one forward pass over all their states.
Knows no optimiser, buffer, process or environment.

CuLE's rolling window holds steps of several policies at once, and IMPALA's actors act with weights
of a while ago. V-trace (Espeholt 2018) weighs each step by the ratio of the present policy to the
one that acted. Ends cut both bootstrap and trace, which CuLE's released code forgets.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from .. import random, returns
from ..records import (
    ActContext,
    Acted,
    Batch,
    Column,
    LossResult,
    Outputs,
    PolicyValue,
    Slot,
    Spaces,
    Views,
)
from ..settings import fractions
from .interface import taken, trajectory_of
from .pixels import PixelNormalising


@dataclass(frozen=True, kw_only=True)
class Vtrace(PixelNormalising):
    """Actor-critic with importance ratios that are clipped from above."""

    discount: float = 0.99
    """Factor per agent step on the future."""
    rho_clip: float = 1.0
    """Largest ratio that weighs a step's own error: it decides which policy is evaluated."""
    c_clip: float = 1.0
    """Largest ratio that weighs later errors: it decides how fast; at most `rho_clip`."""
    entropy_coef: float = 0.01
    """Weight of the entropy bonus."""
    value_coef: float = 0.5
    """Weight of the squared value error."""
    reduction: Literal["mean", "sum"] = "mean"
    """Whether the batch is averaged or summed; a learning rate belongs to one of them."""
    least_probability: float = 1e-5
    """Probabilities in the ratio stay this far from 0 and 1."""

    def __post_init__(self) -> None:
        fractions(self, "discount")
        if not 0.0 < self.c_clip <= self.rho_clip:
            raise ValueError(
                f"c_clip={self.c_clip} must be positive and at most rho_clip={self.rho_clip}."
            )
        if not 0.0 < self.least_probability < 0.5:
            raise ValueError(
                f"least_probability={self.least_probability} must lie between 0 and 0.5; "
                "1e-5 is usual."
            )

    @property
    def needs(self) -> frozenset[str]:
        return super().needs | {"sequences"}

    def columns(self, spaces: Spaces) -> Mapping[str, Column]:
        return {"log_probability": Column()}

    def act(self, outputs: Outputs, context: ActContext) -> Acted:
        actions = random.choose_actions(outputs.logits, context.uniforms, context.choice)
        log_taken = taken(torch.log_softmax(outputs.logits, dim=-1), actions)
        return Acted(actions, {"log_probability": self._bounded(log_taken)})

    def loss(self, views: Views, batch: Batch) -> LossResult:
        slot = batch.slot
        assert slot is not None, (
            "V-trace needs sequences; a window or a queue of rollouts gives them"
        )
        num_steps, num_envs = slot.actions.shape
        inputs = self.inputs(views, batch.observations)
        outputs: PolicyValue = batch.outputs(views.live, inputs)
        value = outputs.value.view(num_steps + 1, num_envs)
        log_all = torch.log_softmax(outputs.logits[: num_steps * num_envs], dim=-1)
        log_taken = taken(log_all, batch.actions).view_as(slot.actions)
        change = self._bounded(log_taken.detach()) - slot.columns["log_probability"]
        target = self._targets(views, slot, value.detach(), change.exp())
        policy = -(log_taken * target.advantage).mean()
        error = (target.value - value[:-1]).square().mean()
        entropy = -(log_all.exp() * log_all).sum(-1).mean()
        total = policy - self.entropy_coef * entropy + self.value_coef * error
        metrics = {
            "losses/policy_loss": policy.detach(),
            "losses/value_loss": error.detach(),
            "losses/entropy": entropy.detach(),
            "losses/explained_variance": returns.explained_variance(value[:-1], target.value),
            "losses/approx_kl": (change.exp() - 1.0 - change).mean(),
            "losses/clipfrac": (change > math.log(self.rho_clip)).float().mean(),
        }
        is_sum = self.reduction == "sum"
        return LossResult({"all": total * slot.actions.numel() if is_sum else total}, metrics)

    def _targets(self, views: Views, slot: Slot, value: Tensor, ratio: Tensor) -> returns.VTrace:
        """Targets [T, B] for values [T + 1, B] and ratios [T, B]."""
        clips = returns.Clips(rho=self.rho_clip, c=self.c_clip)
        with torch.no_grad():
            trajectory = trajectory_of(self, views, slot, value[-1])
            return returns.vtrace(trajectory, value[:-1], ratio, self.discount, clips)

    def _bounded(self, log_probability: Tensor) -> Tensor:
        least = self.least_probability
        return log_probability.clamp(math.log(least), math.log1p(-least))
