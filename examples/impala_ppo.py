"""PPO with IMPALA's residual network (Espeholt 2018) in one file: an own network, nothing else.

    scanline train examples/impala_ppo.py pong
    scanline train examples/impala_ppo.py scanline/Catch-v0 --num-envs 16 \\
        --rollout-agent-steps 32 --learning-rate 2.5e-3 --agent-steps 30000

A network of your own is a function from `spaces` to a module; its forward takes observations
[N, S, H, W] as they are stored and gives what the algorithm reads, here `PolicyValue`. PyTorch
computes it, and the run says so. `--network impala` gives the same network to any recipe.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from scanline import Recipe, algorithms, parameters, records, samplers, stores


class Block(nn.Module):
    """Two convolutions that are added to what they read."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1)
        self.second = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, maps: Tensor) -> Tensor:
        inner: Tensor = self.second(functional.relu(self.first(functional.relu(maps))))
        return maps + inner


class ImpalaNetwork(nn.Module):
    """Three sections of convolution, pooling and two blocks; 256 units; policy and value."""

    def __init__(self, spaces: records.Spaces, sections: tuple[int, ...] = (16, 32, 32)) -> None:
        super().__init__()
        (height, width), channels = spaces.frame_shape, spaces.stack
        steps: list[nn.Module] = []
        for filters in sections:
            steps += [nn.Conv2d(channels, filters, 3, padding=1), nn.MaxPool2d(3, 2, padding=1)]
            steps += [Block(filters), Block(filters)]
            height, width, channels = (height + 1) // 2, (width + 1) // 2, filters
        self.body = nn.Sequential(*steps, nn.ReLU(), nn.Flatten())
        self.hidden = nn.Linear(height * width * channels, 256)
        self.policy = nn.Linear(256, spaces.num_actions)
        self.value = nn.Linear(256, 1)
        nn.init.orthogonal_(self.policy.weight, 0.01)

    def forward(self, observations: Tensor) -> records.PolicyValue:
        pixels = observations.to(torch.float32, memory_format=torch.channels_last) / 255
        rows = functional.relu(self.hidden(self.body(pixels)))
        return records.PolicyValue(self.policy(rows), self.value(rows)[:, 0])


recipe = Recipe(
    name="impala-ppo",
    summary="PPO with the residual network of IMPALA.",
    algorithm=algorithms.Ppo(clip_coef=0.1, entropy_coef=0.01, value_coef=0.25),
    network=ImpalaNetwork,
    optimiser=parameters.OptimiserSettings(
        kind="adam", learning_rate=2.5e-4, epsilon=1e-5, max_grad_norm=0.5, anneal="linear"
    ),
    sampling=samplers.SamplingSettings(num_envs=8, rollout_agent_steps=128),
    store=stores.RolloutSettings(epochs=4, num_minibatches=4),
    agent_steps=10_000_000,
)
