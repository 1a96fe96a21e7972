"""Returns and advantages: n-step, generalised advantages, V-trace. The only copy.

Takes rewards, ends and values as tensors [T, B]; gives targets of the same shape, without gradient.
Knows no network, store or algorithm.

Ends come in two kinds. A terminal step has no future. A truncated one has a future that was not
seen: its bootstrap is the value of its true last observation, handed in as `final_value`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor


@dataclass(frozen=True)
class Path:
    """What happened along a rollout."""

    reward: Tensor  # [T, B]
    terminal: Tensor  # [T, B] bool, no future
    truncated: Tensor  # [T, B] bool, a future that was not seen
    final_value: Tensor  # [T, B], read only where truncated
    last_value: Tensor  # [B], value of the observation after the last step

    def continuation(self, value: Tensor, following: Tensor, t: int) -> Tensor:
        """`following` [B], or the bootstrap that replaces it where step t ended."""
        ended = torch.where(self.truncated[t], self.final_value[t], following)
        return torch.where(self.terminal[t], torch.zeros_like(value), ended)


def n_step(path: Path, discount: float) -> Tensor:
    """Discounted sums of rewards up to the next end or the rollout's end, bootstrapped."""
    returns = torch.empty_like(path.reward)
    following = path.last_value
    for t in reversed(range(path.reward.shape[0])):
        following = path.reward[t] + discount * path.continuation(following, following, t)
        returns[t] = following
    return returns


def gae(path: Path, value: Tensor, discount: float, trace: float) -> Tensor:
    """Generalised advantages [T, B] for values [T, B] and trace decay lambda."""
    advantages = torch.empty_like(path.reward)
    advantage, following = torch.zeros_like(path.last_value), path.last_value
    ended = path.terminal | path.truncated
    for t in reversed(range(path.reward.shape[0])):
        delta = path.reward[t] + discount * path.continuation(value[t], following, t) - value[t]
        advantage = delta + discount * trace * torch.where(ended[t], 0.0, advantage)
        advantages[t], following = advantage, value[t]
    return advantages


class VTrace(NamedTuple):
    """Targets of V-trace."""

    value: Tensor  # [T, B] v_t
    advantage: Tensor  # [T, B] rho_t (r_t + discount v_{t+1} - V_t)


@dataclass(frozen=True)
class Clips:
    """Upper bounds of the importance ratios."""

    rho: float = 1.0
    c: float = 1.0


def vtrace(path: Path, value: Tensor, ratio: Tensor, discount: float, clips: Clips) -> VTrace:
    """V-trace for values [T, B] and ratios pi/mu [T, B]; traces are cut at every end."""
    rho, trace = ratio.clamp(max=clips.rho), ratio.clamp(max=clips.c)
    ended = path.terminal | path.truncated
    targets, advantages = torch.empty_like(value), torch.empty_like(value)
    following_value, following_target = path.last_value, path.last_value
    for t in reversed(range(value.shape[0])):
        next_value = path.continuation(value[t], following_value, t)
        next_target = path.continuation(value[t], following_target, t)
        delta = rho[t] * (path.reward[t] + discount * next_value - value[t])
        correction = torch.where(ended[t], 0.0, following_target - following_value)
        targets[t] = value[t] + delta + discount * trace[t] * correction
        advantages[t] = rho[t] * (path.reward[t] + discount * next_target - value[t])
        following_value, following_target = value[t], targets[t]
    return VTrace(targets, advantages)
