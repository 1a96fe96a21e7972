"""PQN (Gallici 2024) in one file: Q-learning on fresh rollouts, with an own network and RAdam.

    scanline train examples/pqn.py pong
    scanline train examples/pqn.py scanline/Catch-v0 --num-envs 16 --rollout-agent-steps 8 \\
        --num-minibatches 4 --learning-rate 1e-3 --agent-steps 40000

The recipe `pqn` of scanline has the published settings; this file shows how little of it is the
algorithm. No replay and no target network: layer normalisation keeps it stable, and targets are
lambda returns over the best values, computed once per rollout by `prepare`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

import torch
from torch import Tensor, nn

from scanline import Recipe, algorithms, parameters, random, records, returns, samplers, stores


class NormedNetwork(nn.Module):
    """Convolutions where the picture is large, dense layers, each with layer normalisation."""

    def __init__(self, spaces: records.Spaces) -> None:
        super().__init__()
        sizes = [(8, 4, 32), (4, 2, 64), (3, 1, 64)] if min(spaces.frame_shape) >= 36 else []
        steps: list[nn.Module] = []
        height, width, channels = *spaces.frame_shape, spaces.stack
        for kernel, stride, filters in sizes:
            height, width = (height - kernel) // stride + 1, (width - kernel) // stride + 1
            steps.append(nn.Conv2d(channels, filters, kernel, stride))
            steps += [nn.GroupNorm(1, filters), nn.ReLU()]
            channels = filters
        steps += [nn.Flatten(), nn.Linear(height * width * channels, 256), nn.LayerNorm(256)]
        self.body = nn.Sequential(*steps, nn.ReLU(), nn.Linear(256, spaces.num_actions))

    def forward(self, observations: Tensor) -> records.QValues:
        return records.QValues(self.body(observations.float() / 255))


@dataclass(frozen=True, kw_only=True)
class OwnPqn(algorithms.Defaults):
    """Epsilon-greedy Q-learning towards lambda returns."""

    exploration: algorithms.EpsilonGreedy = field(
        default_factory=lambda: algorithms.EpsilonGreedy(epsilon_end=0.001, evaluation_epsilon=0.0)
    )
    """How often actions are random; over the first tenth of the run."""
    discount: float = 0.99
    """Factor per agent step on the future."""
    q_lambda: float = 0.65
    """Trace decay of the returns."""

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"rollouts"})

    @property
    def evaluation_choice(self) -> random.Choice:
        return self.exploration.evaluation_choice

    def spanning(self, agent_steps: int) -> Self:
        # Schedules that span the run are stretched here, when its length is known.
        steps = max(1, agent_steps // 10)
        exploration = dataclasses.replace(self.exploration, epsilon_agent_steps=steps)
        return dataclasses.replace(self, exploration=exploration)

    def columns(self, spaces: records.Spaces) -> Mapping[str, records.Column]:
        # What `act` gives and the store keeps with every step.
        return {"value": records.Column()}

    def act(self, outputs: records.QValues, context: records.ActContext) -> records.Acted:
        actions = self.exploration.act(outputs.q, context).actions
        return records.Acted(actions, {"value": outputs.value})

    def prepare(self, views: records.Views, slot: records.Slot) -> records.Experience:
        value, trajectory = slot.columns["value"], algorithms.trajectory_of(self, views, slot)
        advantage = returns.gae(trajectory, value, self.discount, self.q_lambda)
        return records.Experience(slot, {"returns": advantage + value})

    def loss(self, views: records.Views, batch: records.Batch) -> records.LossResult:
        value = algorithms.taken(views.live(batch.observations).q, batch.actions)
        loss = 0.5 * (value - batch.columns["returns"]).square().mean()
        metrics = {
            "charts/epsilon": self.exploration.epsilon(batch.agent_steps),
            "losses/td_loss": loss.detach(),
        }
        return records.LossResult({"all": loss}, metrics)


recipe = Recipe(
    name="own-pqn",
    summary="Q-learning on fresh rollouts with a network of its own and RAdam.",
    algorithm=OwnPqn(),
    network=NormedNetwork,
    optimiser=parameters.TorchSettings(
        factory=torch.optim.RAdam, learning_rate=2.5e-4, max_grad_norm=10.0
    ),
    sampling=samplers.SamplingSettings(num_envs=128, rollout_agent_steps=32),
    store=stores.RolloutSettings(epochs=2, num_minibatches=32),
    agent_steps=10_000_000,
)
