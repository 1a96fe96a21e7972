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

from ._native import n_step_returns
from .spans import is_plain, places


@dataclass(frozen=True)
class Path:
    """What happened along a rollout."""

    reward: Tensor  # [T, B]
    terminal: Tensor  # [T, B] bool, no future
    truncated: Tensor  # [T, B] bool, a future that was not seen
    final_value: Tensor  # [T, B], read only where truncated
    last_value: Tensor  # [B], value of the observation after the last step

    def arrays(self) -> tuple[Tensor, ...]:
        return self.reward, self.terminal, self.truncated, self.final_value, self.last_value

    def is_plain(self) -> bool:
        """Whether native code can read all of it."""
        kinds = (torch.float32, torch.bool, torch.bool, torch.float32, torch.float32)
        return all(map(is_plain, self.arrays(), kinds))

    def share(self, following: Tensor | float) -> Tensor:
        """[T, B], what counts of the next step: this much in the same game, else 0."""
        if not isinstance(following, Tensor):
            following = torch.full_like(self.reward, following)
        return following.masked_fill(self.terminal | self.truncated, 0.0)

    def following(self, value: Tensor) -> Tensor:
        """What comes after every step: the next of `value` [T, B], or an end's own bootstrap."""
        beyond = torch.cat((value[1:], self.last_value[None]))
        return self._cut(torch.where(self.truncated, self.final_value, beyond))

    def _cut(self, future: Tensor) -> Tensor:
        return torch.where(self.terminal, 0.0, future)

    def bootstraps(self) -> Tensor:
        """[T, B], of truncated steps their true last value, else 0."""
        return self._cut(torch.where(self.truncated, self.final_value, 0.0))


def handed_back(own: Tensor, share: Tensor, beyond: Tensor) -> Tensor:
    """Sums [T, B] from the last step to the first: own[t] + share[t] * the sum of step t + 1."""
    sums, carried = torch.empty_like(own), beyond
    steps = zip(own.unbind(), share.unbind(), sums.unbind(), strict=True)
    for mine, part, total in reversed(list(steps)):
        carried = torch.addcmul(mine, part, carried, out=total)
    return sums


def n_step(path: Path, discount: float) -> Tensor:
    """Discounted sums of rewards up to the next end or the rollout's end, bootstrapped.

    On a CPU one native call takes the place of a dozen operations.
    """
    if path.is_plain():
        return _n_step_here(path, discount)
    return _n_step_in_operations(path, discount)


@torch.no_grad()
def _n_step_in_operations(path: Path, discount: float) -> Tensor:
    own = path.reward
    if path.truncated.any():
        own = own + discount * path.bootstraps()
    return handed_back(own, path.share(discount), path.last_value)


def _n_step_here(path: Path, discount: float) -> Tensor:
    found = torch.empty_like(path.reward)
    *arrays, into = places(*path.arrays(), found)
    n_step_returns(*arrays, discount, into)
    return found


@torch.no_grad()
def gae(path: Path, value: Tensor, discount: float, trace: float) -> Tensor:
    """Generalised advantages [T, B] for values [T, B] and trace decay lambda."""
    delta = path.reward + discount * path.following(value) - value
    return handed_back(delta, path.share(discount * trace), torch.zeros_like(path.last_value))


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
def vtrace(path: Path, value: Tensor, ratio: Tensor, discount: float, clips: Clips) -> VTrace:
    """V-trace for values [T, B] and ratios pi/mu [T, B]; traces are cut at every end."""
    rho, trace = ratio.clamp(max=clips.rho), ratio.clamp(max=clips.c)
    delta = rho * (path.reward + discount * path.following(value) - value)
    nothing = torch.zeros_like(path.last_value)
    targets = value + handed_back(delta, path.share(discount * trace), nothing)
    advantages = rho * (path.reward + discount * path.following(targets) - value)
    return VTrace(targets, advantages)
