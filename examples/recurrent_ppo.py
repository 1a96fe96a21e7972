"""Recurrent PPO in one file: a memory of your own, a minimal gated unit (Zhou 2016).

    scanline train examples/recurrent_ppo.py pong
    scanline train examples/recurrent_ppo.py scanline/Recall-v0 --num-envs 32 \\
        --rollout-agent-steps 16 --learning-rate 5e-3 --anneal none --agent-steps 40000

Recall shows a cue, then nothing for some steps, then a lamp: without memory the score stays below
0. A network with memory says what it carries from step to step; `carried.unroll` runs its cell
along sequences and begins anew where an episode begins. Minibatches are whole sequences of some
environments (`shuffle="envs"`). The recipe `ppo-lstm` has an LSTM and CleanRL's settings.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from scanline import Recipe, algorithms, carried, parameters, protocols, records, samplers, stores


class GatedUnit(nn.Module):
    """One gate that forgets and lets in."""

    def __init__(self, inputs: int, size: int) -> None:
        super().__init__()
        self.gate = nn.Linear(inputs + size, size)
        self.candidate = nn.Linear(inputs + size, size)

    def forward(self, rows: Tensor, hidden: Tensor) -> Tensor:
        gate = torch.sigmoid(self.gate(torch.cat([rows, hidden], dim=1)))
        new = torch.tanh(self.candidate(torch.cat([rows, gate * hidden], dim=1)))
        return hidden + gate * (new - hidden)


class RecurrentNetwork(nn.Module):
    """Features of one frame, the unit, then policy and value."""

    def __init__(self, spaces: records.Spaces, size: int = 128) -> None:
        super().__init__()
        self.carried = {"hidden": carried.Column((size,))}  # each episode begins with zeros
        self.body, features = body_of(spaces)
        self.unit = GatedUnit(features, size)
        self.policy, self.value = nn.Linear(size, spaces.num_actions), nn.Linear(size, 1)
        nn.init.orthogonal_(self.policy.weight, 0.01)

    def forward(
        self, observations: Tensor, before: carried.Carried
    ) -> tuple[records.PolicyValue, carried.State]:
        # Observations [T * B, S, ...], time first; acting is one step, T = 1.
        rows = self.body(observations.float() / 255)
        rows, after = before.unroll(self.step, rows, self.carried)
        return records.PolicyValue(self.policy(rows), self.value(rows)[:, 0]), after

    def step(self, rows: Tensor, state: carried.State) -> tuple[Tensor, carried.State]:
        hidden = self.unit(rows, state["hidden"])
        return hidden, {"hidden": hidden}


def body_of(spaces: records.Spaces) -> tuple[nn.Module, int]:
    """Convolutions for pictures, one dense layer for anything small; and its number of features."""
    if spaces.is_image and min(spaces.frame_shape) >= 36:
        steps: list[nn.Module] = []
        (height, width), channels = spaces.frame_shape, spaces.stack
        for kernel, stride, filters in ((8, 4, 32), (4, 2, 64), (3, 1, 64)):
            height, width = (height - kernel) // stride + 1, (width - kernel) // stride + 1
            steps += [nn.Conv2d(channels, filters, kernel, stride), nn.ReLU()]
            channels = filters
        dense = nn.Linear(height * width * channels, 512)
        return nn.Sequential(*steps, nn.Flatten(), dense, nn.ReLU()), 512
    numbers = int(torch.Size(spaces.observation_shape).numel())
    return nn.Sequential(nn.Flatten(), nn.Linear(numbers, 64), nn.ReLU()), 64


recipe = Recipe(
    name="recurrent-ppo",
    summary="PPO with a gated unit of its own, on single frames.",
    algorithm=algorithms.Ppo(clip_coef=0.1, entropy_coef=0.01, value_coef=0.25),
    network=RecurrentNetwork,
    protocol=protocols.get("baselines").replace(stack=1),
    optimiser=parameters.OptimiserSettings(
        kind="adam", learning_rate=2.5e-4, epsilon=1e-5, max_grad_norm=0.5, anneal="linear"
    ),
    sampling=samplers.SamplingSettings(num_envs=8, rollout_agent_steps=128),
    store=stores.RolloutSettings(epochs=4, num_minibatches=4, shuffle="envs"),
    agent_steps=10_000_000,
)
