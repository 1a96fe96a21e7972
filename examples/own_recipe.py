"""A recipe of your own in one file: your loss, your network, everything else reused.

    scanline train examples/own_recipe.py scanline/Catch-v0 --engine gymnasium --seconds 20

The loss is actor-critic with a clipped advantage, so that one lucky game cannot push the policy
far; the network is a single hidden layer. Every field of `ClippedAdvantage` becomes an option:
try `--largest-advantage 0.5`.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from scanline import Recipe, algorithms, parameters, records, returns, samplers


@dataclass(frozen=True, kw_only=True)
class ClippedAdvantage(algorithms.Defaults):
    """REINFORCE with a value baseline and bounded advantages."""

    discount: float = 0.99
    """Factor per agent step on the future."""
    largest_advantage: float = 1.0
    """Bound on the size of an advantage."""

    def prepare(self, views: records.Views, slot: records.Slot) -> records.Experience:
        trajectory = algorithms.trajectory_of(self, views, slot)
        return records.Experience(slot, {"returns": returns.n_step(trajectory, self.discount)})

    def loss(self, views: records.Views, batch: records.Batch) -> records.LossResult:
        outputs = batch.outputs(views.live)
        log_taken = torch.log_softmax(outputs.logits, -1).gather(-1, batch.actions[:, None])[:, 0]
        error = batch.columns["returns"] - outputs.value
        bounded = error.detach().clamp(-self.largest_advantage, self.largest_advantage)
        entropy = torch.distributions.Categorical(logits=outputs.logits).entropy()
        loss = (-log_taken * bounded + 0.5 * error.square() - 0.02 * entropy).mean()
        return records.LossResult({"all": loss}, {"losses/policy_loss": loss.detach()})


class OneHiddenLayer(nn.Module):
    """Observations [N, S, H, W] bytes to logits and value."""

    def __init__(self, spaces: records.Spaces) -> None:
        super().__init__()
        num_inputs = int(torch.Size(spaces.observation_shape).numel())
        self.hidden = nn.Linear(num_inputs, 64)
        self.policy = nn.Linear(64, spaces.num_actions)
        self.value = nn.Linear(64, 1)

    def forward(self, observations: Tensor) -> records.PolicyValue:
        hidden = torch.tanh(self.hidden(observations.flatten(1).float() / 255))
        return records.PolicyValue(self.policy(hidden), self.value(hidden)[:, 0])


recipe = Recipe(
    name="own",
    summary="An example: bounded advantages on a small network.",
    algorithm=ClippedAdvantage(),
    network=OneHiddenLayer,
    protocol="as-is",
    optimiser=parameters.OptimiserSettings(kind="adam", learning_rate=3e-3),
    sampling=samplers.SamplingSettings(num_envs=16, rollout_agent_steps=10),
    agent_steps=100_000,
)
