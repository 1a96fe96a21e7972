"""IQN (Dabney 2018b) in one file: quantiles of the return at levels that are drawn.

    scanline train examples/iqn.py pong
    scanline train examples/iqn.py scanline/Catch-v0 --network mlp --learning-rate 1e-3 \\
        --agent-steps 20000 --learning-starts-agent-steps 500 --capacity-agent-steps 8000 \\
        --epsilon-agent-steps 5000 --target-agent-steps 400

A network cannot give quantiles before it knows the levels. So it gives features and a function of
levels; acting takes its levels from the numbers of the step (`draws_per_step`), learning from the
generator of the batch. Both are keyed by counters, so that runs repeat and resume bit for bit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from scanline import Recipe, algorithms, networks, paces, parameters, records, samplers, stores


@dataclass(frozen=True)
class Quantiles:
    """Outputs of the network: a function from levels [N, K] to quantiles [N, K, A]."""

    rows: Tensor
    head: ImplicitHead

    def at(self, levels: Tensor) -> Tensor:
        head = self.head
        angles = math.pi * head.multiples * levels[..., None]  # [N, K, cosines]
        weight = torch.relu(head.embedding(angles.cos()))  # [N, K, size]
        outputs: Tensor = head.outputs(self.rows[:, None] * weight)
        return outputs


class ImplicitHead(nn.Module):
    """Hidden layers of the named network; levels are mixed in behind them."""

    def __init__(
        self, hidden: networks.Hidden, spaces: records.Spaces, num_cosines: int = 64
    ) -> None:
        super().__init__()
        self.stream = hidden.stream()
        self.embedding = nn.Linear(num_cosines, hidden.size)
        self.outputs = nn.Linear(hidden.size, spaces.num_actions)
        self.register_buffer("multiples", torch.arange(1.0, num_cosines + 1))

    def forward(self, features: networks.Features) -> Quantiles:
        return Quantiles(self.stream(features), self)


@dataclass(frozen=True, kw_only=True)
class Iqn(algorithms.QLearning):
    """Implicit quantile regression with a target network."""

    num_levels: int = 8
    """Levels per loss and side, N and N' of the paper."""
    num_act_levels: int = 32
    """Levels over which an action's value is averaged, K of the paper."""
    kappa: float = 1.0
    """Error at which the quantile Huber loss becomes linear."""

    @property
    def head(self) -> networks.Head:
        return ImplicitHead

    @property
    def draws_per_step(self) -> int:
        # Two for epsilon-greedy, and the levels behind them.
        return 2 + self.num_act_levels

    def act(self, outputs: Quantiles, context: records.ActContext) -> records.Acted:
        levels = context.uniforms[:, 2:].to(outputs.rows.device)
        return self.exploration.act(outputs.at(levels).mean(1), context)

    def loss(self, views: records.Views, batch: records.Batch) -> records.LossResult:
        num, device = len(batch.actions), batch.actions.device
        shape = (3, num, self.num_act_levels)
        drawn = torch.rand(shape, generator=batch.random).to(device)
        levels, next_levels = drawn[0, :, : self.num_levels], drawn[1, :, : self.num_levels]
        outputs = views.live(self.inputs(views, batch.observations))
        quantiles = taken(outputs.at(levels), batch.actions)
        with torch.no_grad():
            following, chooser = self.next_outputs(views, batch)
            best = chooser.at(drawn[2]).mean(1).argmax(-1)
            value = taken(following.at(next_levels), best)
            reward, discount = batch.columns["reward"], batch.columns["discount"]
            target = reward[:, None] + discount[:, None] * value
        losses = self.quantile_huber(quantiles, target, levels)
        metrics = {
            "charts/epsilon": self.exploration.epsilon(batch.agent_steps),
            "losses/td_loss": losses.detach().mean(),
            "losses/q_values": quantiles.detach().mean(),
        }
        loss = algorithms.weighted(losses, batch.weights, "mean")
        return records.LossResult({"all": loss}, metrics, losses.detach())

    def quantile_huber(self, quantiles: Tensor, target: Tensor, levels: Tensor) -> Tensor:
        """Losses [N] of quantiles [N, K] at levels [N, K] against samples [N, L]."""
        error = target[:, None, :] - quantiles[:, :, None]
        size, kappa = error.abs(), self.kappa
        huber = torch.where(size <= kappa, 0.5 * error.square(), kappa * (size - 0.5 * kappa))
        weight = (levels[:, :, None] - (error.detach() < 0).float()).abs()
        return (weight * huber / kappa).mean(-1).sum(-1)


def taken(quantiles: Tensor, actions: Tensor) -> Tensor:
    """[N, K] of one action each, from [N, K, A]."""
    return quantiles.gather(-1, actions[:, None, None].expand(-1, quantiles.shape[1], 1))[..., 0]


recipe = Recipe(
    name="iqn",
    summary="Dabney 2018: implicit quantiles at drawn levels, on 8 environments.",
    algorithm=Iqn(
        exploration=algorithms.EpsilonGreedy(
            epsilon_end=0.01, epsilon_agent_steps=250_000, evaluation_epsilon=0.001
        )
    ),
    network="nature",
    optimiser=parameters.OptimiserSettings(kind="adam", learning_rate=5e-5, epsilon=0.01 / 32),
    sampling=samplers.SamplingSettings(num_envs=8, rollout_agent_steps=1),
    store=stores.ReplaySettings(batch_size=32, training_intensity=8.0),
    pace=paces.Alternate(target_agent_steps=10_000),
    agent_steps=10_000_000,
)
