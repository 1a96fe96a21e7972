"""Advantage actor-critic: the loss of A2C, PAAC, A3C and GA3C.

Takes a rollout and gives n-step returns (`prepare`), then a batch and gives the loss.
Knows no optimiser, buffer, process or environment.

One loss serves four systems; they differ in how steps are collected, how the batch is reduced, and
in small numbers (factors, an epsilon inside the logarithm), which are settings here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from .. import returns
from .._native import actor_critic
from ..native_arrays import is_readable, unchecked_spans
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
from ..settings import at_least, fractions
from .interface import taken, trajectory_of
from .pixels import PixelNormalising

LogForm = Literal["exact", "plain", "added", "floor"]


class Terms(NamedTuple):
    """Losses by name, and means over the batch; floats where they are known at once."""

    losses: Mapping[str, Tensor]
    policy: Tensor | float
    value: Tensor | float
    entropy: Tensor | float


@dataclass(frozen=True, kw_only=True)
class ActorCritic(PixelNormalising):
    """Policy gradient with a value baseline, an entropy bonus and a squared value error."""

    discount: float = 0.99
    """Factor per agent step on the future."""
    gae_lambda: float = 1.0
    """Trace decay of the advantages; 1 gives plain n-step returns."""
    entropy_coef: float = 0.01
    """Weight of the entropy bonus."""
    value_coef: float = 0.5
    """Weight of the squared value error."""
    loss_scale: float = 1.0
    """Factor on the whole loss."""
    reduction: Literal["mean", "sum"] = "mean"
    """Whether the batch is averaged or summed; a learning rate belongs to one of them."""
    log_form: LogForm = "exact"
    """Logarithm of a probability: exact, i.e. finite at 0 too; plain, infinite there; of
    p + log_epsilon (added), or of max(p, log_epsilon) (floor)."""
    log_epsilon: float = 0.0
    """Number that keeps the logarithm finite in the forms `added` and `floor`."""
    bootstrap: Literal["live", "acting"] = "live"
    """Which value stands for what follows a rollout: of the weights that learn, or of those that
    acted, stored with the step, as GA3C's agents know it."""
    min_policy: float = 0.0
    """Number added to every probability, in acting and learning, before all are divided by their
    new sum: GA3C's smoothing, 0 for none."""
    separate_losses: bool = False
    """Whether policy and value have an optimiser each, both over all weights: GA3C's dual RMSProp;
    else one for the sum of their losses."""

    def __post_init__(self) -> None:
        at_least(0, self, "min_policy")
        fractions(self, "discount", "gae_lambda")
        if (self.log_form in ("exact", "plain")) != (self.log_epsilon == 0.0):
            raise ValueError(
                f"log_form={self.log_form!r} does not go with log_epsilon={self.log_epsilon}; "
                "'exact' and 'plain' have none, 'added' and 'floor' need one above 0."
            )

    @property
    def needs(self) -> frozenset[str]:
        separate = ("several losses",) if self.separate_losses else ()
        return super().needs | {"fresh steps", *separate}

    @property
    def losses(self) -> tuple[str, ...]:
        """Names of the losses, each of which moves all weights."""
        return ("policy", "value") if self.separate_losses else ("all",)

    def columns(self, spaces: Spaces) -> Mapping[str, Column]:
        return {"value": Column()} if self.bootstrap == "acting" else {}

    def act(self, outputs: Outputs, context: ActContext) -> Acted:
        if self.min_policy:
            outputs = outputs._replace(logits=self._probabilities(outputs.logits).log())
        acted = super().act(outputs, context)
        columns = {"value": outputs.value} if self.bootstrap == "acting" else {}
        return Acted(acted.actions, columns)

    def prepare(self, views: Views, slot: Slot) -> Experience:
        columns = {"returns": self._returns(views, slot)}
        return Experience(slot, columns, self.next_state(views, slot))

    def _returns(self, views: Views, slot: Slot) -> Tensor:
        trajectory = trajectory_of(self, views, slot, slot.last.get("value"))
        if self.gae_lambda == 1.0:
            return returns.n_step(trajectory, self.discount)
        inputs, sequences = self.inputs(views, slot.observations()), slot.sequences(slot.num_steps)
        outputs = views.live(inputs) if sequences is None else sequences.outputs(views.live, inputs)
        value: Tensor = outputs.value.view_as(slot.reward)
        return returns.gae(trajectory, value, self.discount, self.gae_lambda) + value

    def loss(self, views: Views, batch: Batch) -> LossResult:
        inputs = self.inputs(views, batch.observations)
        outputs: PolicyValue = batch.outputs(views.live, inputs)
        terms = self.native_terms(outputs, batch) or self.torch_terms(outputs, batch)
        explained = returns.explained_variance(outputs.value, batch.columns["returns"])
        metrics = {
            "losses/policy_loss": terms.policy,
            "losses/value_loss": terms.value,
            "losses/entropy": terms.entropy,
            "losses/explained_variance": explained,
        }
        return LossResult(terms.losses, metrics)

    def native_terms(self, outputs: PolicyValue, batch: Batch) -> Terms | None:
        """Loss and gradient in one native call; None where `torch_terms` must do it.

        An operation of PyTorch takes 20 microseconds between kernels that fill the caches, and
        this loss with its backward pass has thirty.
        """
        logits, values = outputs
        floats = (logits, values, batch.columns["returns"])
        has_form = self.log_form == "exact" and not self.min_policy and not self.separate_losses
        is_native = all(map(is_readable, floats)) and is_readable(batch.actions, torch.int64)
        if not has_form or not is_native:
            return None
        gradients = torch.empty_like(logits), torch.empty_like(values)
        scale = self.loss_scale / (1 if self.reduction == "sum" else len(batch.actions))
        arrays = unchecked_spans(*floats, batch.actions, *gradients)
        policy, entropy, value = actor_critic(*arrays, self.entropy_coef, self.value_coef, scale)
        total = scale * (policy - self.entropy_coef * entropy + self.value_coef * value)
        loss = _KnownGradient.apply(total, gradients, logits, values)  # type: ignore[no-untyped-call]
        num = max(len(values), 1)
        return Terms({"all": loss}, policy / num, value / num, entropy / num)

    def torch_terms(self, outputs: PolicyValue, batch: Batch) -> Terms:
        log_all, probabilities = self._log_probabilities(outputs.logits)
        log_taken = taken(log_all, batch.actions)
        error = batch.columns["returns"] - outputs.value
        policy = -log_taken * error.detach()
        entropy = -(probabilities * log_all).sum(-1)
        value = error.square()
        parts = policy - self.entropy_coef * entropy, self.value_coef * value
        totals = parts if self.separate_losses else (parts[0] + parts[1],)
        losses = dict(zip(self.losses, map(self._reduced, totals), strict=True))
        return Terms(losses, *(each.detach().mean() for each in (policy, value, entropy)))

    def _reduced(self, total: Tensor) -> Tensor:
        return self.loss_scale * (total.sum() if self.reduction == "sum" else total.mean())

    def _log_probabilities(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """Logarithms and probabilities, both [N, A]."""
        if self.log_form == "exact" and not self.min_policy:
            log_all = torch.log_softmax(logits, dim=-1)
            return log_all, log_all.exp()
        probabilities = self._probabilities(logits)
        if self.log_form in ("exact", "plain"):
            return probabilities.log(), probabilities
        if self.log_form == "added":
            return (probabilities + self.log_epsilon).log(), probabilities
        return probabilities.clamp(min=self.log_epsilon).log(), probabilities

    def _probabilities(self, logits: Tensor) -> Tensor:
        probabilities = torch.softmax(logits, dim=-1)
        if not self.min_policy:
            return probabilities
        return (probabilities + self.min_policy) / (1.0 + self.min_policy * logits.shape[-1])


class _KnownGradient(torch.autograd.Function):
    """A loss whose gradient was computed with it."""

    @staticmethod
    def forward(
        context: Any, loss: float, gradients: tuple[Tensor, ...], *inputs: Tensor
    ) -> Tensor:
        context.gradients = gradients
        return torch.tensor(loss, dtype=torch.float32)  # infinite where it is too large

    @staticmethod
    def backward(context: Any, *upstream: Any) -> tuple[Any, ...]:
        factor = float(upstream[0])
        if factor == 1.0:
            return None, None, *context.gradients
        return None, None, *(each * factor for each in context.gradients)
