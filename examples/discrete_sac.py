"""Discrete SAC (Christodoulou 2019) in one file: a policy, two critics and a learned temperature.

    scanline train examples/discrete_sac.py pong
    scanline train examples/discrete_sac.py scanline/Catch-v0 --network mlp --learning-rate 1e-3 \\
        --agent-steps 20000 --learning-starts-agent-steps 500 --capacity-agent-steps 8000 \\
        --target-rate 0.02

The policy reads the critics' features without moving them. The target follows by a small share per
update (`target_rate`), and the temperature is a parameter that one term of the loss moves until
the policy has the wanted entropy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from scanline import Recipe, algorithms, networks, paces, parameters, records, samplers, stores


class SacOutputs(NamedTuple):
    """What the network gives."""

    logits: Tensor  # [N, A]
    q1: Tensor  # [N, A]
    q2: Tensor  # [N, A]
    log_temperature: Tensor  # []


class SacHead(nn.Module):
    """Two critics on the hidden layers, and a policy that does not move them."""

    def __init__(self, hidden: networks.Hidden, spaces: records.Spaces) -> None:
        super().__init__()
        self.stream = hidden.stream()
        self.q1, self.q2 = (hidden.outputs(spaces.num_actions) for _ in range(2))
        self.policy = hidden.outputs(spaces.num_actions, "policy")
        self.log_temperature = nn.Parameter(torch.tensor(-2.0))

    def forward(self, features: networks.Features) -> SacOutputs:
        rows = self.stream(features)
        logits = self.policy(rows.detach())
        return SacOutputs(logits, self.q1(rows), self.q2(rows), self.log_temperature)


@dataclass(frozen=True, kw_only=True)
class DiscreteSac(algorithms.Defaults):
    """Soft actor-critic over all actions; acts by sampling from its policy."""

    entropy_share: float = 0.3
    """Wanted entropy, as a share of that of random play."""

    @property
    def head(self) -> networks.Head:
        return SacHead

    @property
    def needs(self) -> frozenset[str]:
        # Declared needs are checked when the recipe is made, with a sentence about what to use.
        return frozenset({"pairs", "target"})

    def loss(self, views: records.Views, batch: records.Batch) -> records.LossResult:
        assert views.target is not None and batch.next_observations is not None
        outputs: SacOutputs = views.live(batch.observations)
        temperature = outputs.log_temperature.exp().detach()
        with torch.no_grad():
            log_next = views.live(batch.next_observations).logits.log_softmax(-1)
            lagged: SacOutputs = views.target(batch.next_observations)
            soft = torch.minimum(lagged.q1, lagged.q2) - temperature * log_next
            value = (log_next.exp() * soft).sum(-1)
            target = batch.columns["reward"] + batch.columns["discount"] * value
        errors = [algorithms.taken(q, batch.actions) - target for q in (outputs.q1, outputs.q2)]
        critic = sum((error.square() for error in errors), torch.zeros_like(target))
        log_all = outputs.logits.log_softmax(-1)
        best = torch.minimum(outputs.q1, outputs.q2).detach()
        policy = (log_all.exp() * (temperature * log_all - best)).sum(-1).mean()
        entropy = -(log_all.exp() * log_all).sum(-1).mean().detach()
        wanted = self.entropy_share * math.log(outputs.logits.shape[-1])
        tuning = outputs.log_temperature.exp() * (entropy - wanted)
        loss = algorithms.weighted(critic, batch.weights, "mean") + policy + tuning
        metrics = {
            "losses/td_loss": critic.detach().mean(),
            "losses/policy_loss": policy.detach(),
            "losses/entropy": entropy,
            "losses/temperature": temperature,
        }
        return records.LossResult({"all": loss}, metrics, errors[0].detach().abs())


recipe = Recipe(
    name="discrete-sac",
    summary="Christodoulou 2019: soft actor-critic with discrete actions, on 8 environments.",
    algorithm=DiscreteSac(),
    network="nature",
    optimiser=parameters.OptimiserSettings(kind="adam", learning_rate=3e-4, epsilon=1e-8),
    sampling=samplers.SamplingSettings(num_envs=8, rollout_agent_steps=1),
    store=stores.ReplaySettings(batch_size=64, training_intensity=16.0),
    pace=paces.Alternate(target_rate=0.005),
    agent_steps=10_000_000,
)
