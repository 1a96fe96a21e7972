"""Returns and advantages: n-step, generalised advantages, V-trace. The only copy.

Takes rewards, ends and values as tensors [T, B]; gives targets of the same shape, without gradient.
Knows no network, store or algorithm.

Ends come in two kinds. A terminal step has no future. A truncated one has a future that was not
seen: its bootstrap is the value of its true last observation, the input `final_value`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from ._native import n_step_returns
from .native_arrays import is_readable, unchecked_spans


@dataclass(frozen=True)
class Trajectory:
    """Rewards, ends and bootstrap values of a rollout."""

    reward: Tensor  # [T, B]
    terminal: Tensor  # [T, B] bool, no future
    truncated: Tensor  # [T, B] bool, a future that was not seen
    final_value: Tensor  # [T, B], read only where truncated
    last_value: Tensor  # [B], value of the observation after the last step

    def arrays(self) -> tuple[Tensor, ...]:
        return self.reward, self.terminal, self.truncated, self.final_value, self.last_value

    def is_readable(self) -> bool:
        """Whether native code can read all of it."""
        dtypes = (torch.float32, torch.bool, torch.bool, torch.float32, torch.float32)
        return all(map(is_readable, self.arrays(), dtypes))

    def continued(self, factor: Tensor | float) -> Tensor:
        """[T, B], the factor where the next step belongs to the same episode, else 0."""
        if not isinstance(factor, Tensor):
            factor = torch.full_like(self.reward, factor)
        return factor.masked_fill(self.terminal | self.truncated, 0.0)

    def next_values(self, value: Tensor) -> Tensor:
        """[T, B], after every step the next of `value` [T, B], or the bootstrap of an end."""
        following = torch.cat((value[1:], self.last_value[None]))
        return self._or_zero(torch.where(self.truncated, self.final_value, following))

    def bootstraps(self) -> Tensor:
        """[T, B], of truncated steps their true last value, else 0."""
        return self._or_zero(torch.where(self.truncated, self.final_value, 0.0))

    def _or_zero(self, future: Tensor) -> Tensor:
        return torch.where(self.terminal, 0.0, future)


def discounted_sums(own: Tensor, factor: Tensor, last: Tensor) -> Tensor:
    """Sums [T, B] from the last step to the first: own[t] + factor[t] * the sum of step t + 1."""
    sums, following = torch.empty_like(own), last
    steps = zip(own.unbind(), factor.unbind(), sums.unbind(), strict=True)
    for term, weight, total in reversed(list(steps)):
        following = torch.addcmul(term, weight, following, out=total)
    return sums


def n_step(trajectory: Trajectory, discount: float) -> Tensor:
    """Discounted sums of rewards up to the next end or the rollout's end, bootstrapped.

    On a CPU one native call replaces a dozen operations.
    """
    if not trajectory.is_readable():
        return _n_step_torch(trajectory, discount)
    sums = torch.empty_like(trajectory.reward)
    *inputs, output = unchecked_spans(*trajectory.arrays(), sums)
    n_step_returns(*inputs, discount, output)
    return sums


@torch.no_grad()
def _n_step_torch(trajectory: Trajectory, discount: float) -> Tensor:
    own = trajectory.reward + discount * trajectory.bootstraps()  # looking for one would be a wait
    return discounted_sums(own, trajectory.continued(discount), trajectory.last_value)


@torch.no_grad()
def gae(trajectory: Trajectory, value: Tensor, discount: float, trace: float) -> Tensor:
    """Generalised advantages [T, B] for values [T, B] and trace decay lambda."""
    delta = trajectory.reward + discount * trajectory.next_values(value) - value
    zeros = torch.zeros_like(trajectory.last_value)
    return discounted_sums(delta, trajectory.continued(discount * trace), zeros)


@torch.no_grad()
def explained_variance(value: Tensor, target: Tensor) -> Tensor:
    """Share of the targets' variance that the values explain: 1 for all, 0 for none.

    Bounded by -1 from below, and 0 where targets do not vary: one batch of hardly any reward would
    outweigh all others in a mean.
    """
    spread = target.var(correction=0)
    share = 1.0 - (target - value).var(correction=0) / spread
    return torch.where(spread > 0.0, share.clamp(min=-1.0), 0.0)


class VTrace(NamedTuple):
    """Targets of V-trace."""

    value: Tensor  # [T, B] v_t
    advantage: Tensor  # [T, B] rho_t (r_t + discount v_{t+1} - V_t)


@dataclass(frozen=True)
class Clips:
    """Upper bounds of the importance ratios."""

    rho: float = 1.0
    c: float = 1.0


@torch.no_grad()
def vtrace(
    trajectory: Trajectory, value: Tensor, ratio: Tensor, discount: float, clips: Clips
) -> VTrace:
    """V-trace for values [T, B] and ratios pi/mu [T, B]; traces are cut at every end."""
    rho, trace = ratio.clamp(max=clips.rho), ratio.clamp(max=clips.c)
    delta = rho * (trajectory.reward + discount * trajectory.next_values(value) - value)
    factor, zeros = trajectory.continued(discount * trace), torch.zeros_like(trajectory.last_value)
    targets = value + discounted_sums(delta, factor, zeros)
    advantages = rho * (trajectory.reward + discount * trajectory.next_values(targets) - value)
    return VTrace(targets, advantages)
