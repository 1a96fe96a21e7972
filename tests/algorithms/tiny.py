"""A small network, spaces without a game, and SB3's policy under our outputs."""

from __future__ import annotations

import gymnasium
import numpy as np
import torch

from scanline.records import Column, PolicyValue, Slot, Spaces

SPACES = Spaces(frame_shape=(6,), frame_dtype="float32", stack=1, num_actions=3)


class Tiny(torch.nn.Module):
    """Observations [N, 1, 6] to logits and value."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self.hidden = torch.nn.Linear(6, 8)
            self.policy = torch.nn.Linear(8, 3)
            self.value = torch.nn.Linear(8, 1)

    def forward(self, observations: torch.Tensor) -> PolicyValue:
        hidden = torch.tanh(self.hidden(observations.flatten(1)))
        return PolicyValue(self.policy(hidden), self.value(hidden)[:, 0])


class Nothing(gymnasium.Env[np.ndarray, int]):
    """Spaces for SB3; it is never stepped."""

    observation_space = gymnasium.spaces.Box(-9, 9, (6,), np.float32)
    action_space = gymnasium.spaces.Discrete(3)

    def reset(self, *, seed: int | None = None, options: dict[str, object] | None = None):
        return np.zeros(6, np.float32), {}


class LikeSb3(torch.nn.Module):
    """SB3's policy as one of our networks: the same layers under our outputs."""

    def __init__(self, policy: torch.nn.Module) -> None:
        super().__init__()
        self.policy = policy

    def forward(self, observations: torch.Tensor) -> PolicyValue:
        features = self.policy.extract_features(observations.flatten(1))
        for_policy, for_value = self.policy.mlp_extractor(features)
        return PolicyValue(
            self.policy.action_net(for_policy), self.policy.value_net(for_value)[:, 0]
        )


def filled_slot(columns: tuple[str, ...] = (), num_steps: int = 5, num_envs: int = 2) -> Slot:
    """Random frames, rewards and actions without ends."""
    slot = Slot.allocate(SPACES, num_steps, num_envs, {name: Column() for name in columns})
    random = torch.Generator().manual_seed(2)
    slot.frames.copy_(torch.randn(slot.frames.shape, generator=random))
    slot.reward.copy_(torch.randn(slot.reward.shape, generator=random))
    slot.actions.copy_(torch.randint(0, 3, slot.actions.shape, generator=random))
    for column in slot.columns.values():
        column.copy_(torch.randn(column.shape, generator=random))
    return slot
