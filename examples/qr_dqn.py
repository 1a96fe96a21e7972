"""QR-DQN (Dabney 2018) in one file: the loss and the head are yours, everything else is reused.

    scanline check qr_dqn.py                          # does it fit, learn, save, resume?
    scanline train qr_dqn.py pong                     # hours; Ctrl-C saves, --resume goes on
    scanline train qr_dqn.py scanline/Catch-v0 --network mlp --learning-rate 1e-3 \\
        --agent-steps 20000 --learning-starts-agent-steps 500 --capacity-agent-steps 8000 \\
        --epsilon-agent-steps 5000 --target-agent-steps 400 --num-quantiles 20   # the toy game

The network gives N quantiles of the return per action. They are moved towards the quantiles of
reward + discount * return of the best next action by the quantile Huber loss.
Every field of `QrDqn` is an option of `scanline train`: try `--num-quantiles 51`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

# These are all of scanline's names that a file like this needs; docs/api.md explains each.
from scanline import Recipe, algorithms, networks, paces, parameters, records, samplers, stores


class QuantileHead(nn.Module):
    """What the network ends with: quantiles [N, A, K] under the name `logits` of QDistribution."""

    def __init__(self, hidden: networks.Hidden, spaces: records.Spaces, num_quantiles: int) -> None:
        super().__init__()
        self.shape = (spaces.num_actions, num_quantiles)
        # Hidden layers of the named network, and a layer behind them: our kernels compute both.
        self.stream = hidden.stream()
        self.quantiles = hidden.outputs(spaces.num_actions * num_quantiles)

    def forward(self, features: networks.Features) -> records.QDistribution:
        return records.QDistribution(self.quantiles(self.stream(features)).unflatten(1, self.shape))


@dataclass(frozen=True, kw_only=True)
class QrDqn(algorithms.QLearning):
    """Quantile regression with a target network; `--double` chooses by the live network."""

    num_quantiles: int = 200
    """Quantiles of the return per action."""
    kappa: float = 1.0
    """Error at which the quantile Huber loss becomes linear."""

    @property
    def head(self) -> networks.Head:
        # A function of (hidden, spaces). A name, e.g. "q", takes one of the built-in heads.
        return partial(QuantileHead, num_quantiles=self.num_quantiles)

    def act(self, outputs: records.QDistribution, context: records.ActContext) -> records.Acted:
        # `exploration` is of QLearning: epsilon-greedy by a schedule, with its own evaluation.
        return self.exploration.act(outputs.logits.mean(-1), context)

    def loss(self, views: records.Views, batch: records.Batch) -> records.LossResult:
        # views.live learns, views.target is the lagged copy. A batch of a replay has observations,
        # actions, next_observations, weights, and columns "reward" (n-step) and "discount".
        outputs = views.live(self.inputs(views, batch.observations))
        quantiles = of_actions(outputs.logits, batch.actions)
        target = self.target(views, batch)
        losses = quantile_huber(quantiles, target, self.kappa)
        metrics = {
            "charts/epsilon": self.exploration.epsilon(batch.agent_steps),
            "losses/td_loss": losses.detach().mean(),
            "losses/q_values": quantiles.detach().mean(),
        }
        # One loss per parameter group ("all"), numbers for the log, priorities for the replay.
        loss = algorithms.weighted(losses, batch.weights, "mean")
        return records.LossResult({"all": loss}, metrics, losses.detach())

    @torch.no_grad()
    def target(self, views: records.Views, batch: records.Batch) -> Tensor:
        """Quantiles [N, K] of what follows the best next action."""
        outputs, chooser = self.next_outputs(views, batch)
        best = of_actions(outputs.logits, chooser.logits.mean(-1).argmax(-1))
        return batch.columns["reward"][:, None] + batch.columns["discount"][:, None] * best


def of_actions(quantiles: Tensor, actions: Tensor) -> Tensor:
    """[N, K] of one action each, from [N, A, K]."""
    return quantiles[torch.arange(len(actions), device=quantiles.device), actions]


def quantile_huber(quantiles: Tensor, target: Tensor, kappa: float) -> Tensor:
    """Losses [N] of quantiles [N, K] against samples [N, L]: equation 10 of the paper."""
    num = quantiles.shape[1]
    levels = (torch.arange(num, device=quantiles.device) + 0.5) / num
    error = target[:, None, :] - quantiles[:, :, None]  # [N, K, L]
    size = error.abs()
    huber = torch.where(size <= kappa, 0.5 * error.square(), kappa * (size - 0.5 * kappa))
    weight = (levels[None, :, None] - (error.detach() < 0).float()).abs()
    return (weight * huber / kappa).mean(-1).sum(-1)


# The recipe: one choice per concept. Leave a line out to get its default.
recipe = Recipe(
    name="qr-dqn",
    summary="Dabney 2018: DQN with 200 quantiles per action, on 8 environments.",
    algorithm=QrDqn(
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
