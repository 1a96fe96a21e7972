"""What losses over replayed pairs share: pixels, the target view, the pair, importance weights.

Takes views and a batch; gives what a loss needs of them or says what is missing.
Knows no particular loss.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor, nn

from ..records import Batch, Experience, Slot, Spaces, Views
from . import pixels
from .interface import Defaults


@dataclass(frozen=True, kw_only=True)
class Replayed(Defaults):
    """An algorithm over replayed pairs; pixels are counted once, when their steps are stored."""

    normalise_pixels: bool = False
    """Whether pixels get mean 0 and deviation 1, each by its own statistics over the run."""

    def init(self, spaces: Spaces) -> Mapping[str, Tensor]:
        return pixels.initial(spaces) if self.normalise_pixels else {}

    def inputs(self, views: Views, observations: Tensor) -> Tensor:
        return pixels.normalised(views.state, observations) if views.state else observations

    def prepare(self, views: Views, slot: Slot) -> Experience:
        state = pixels.noted(views.state, slot) if self.normalise_pixels else None
        return Experience(slot, state=state)


def target_of(views: Views) -> nn.Module:
    """The lagged network, without which values would chase themselves."""
    if views.target is None:
        raise ValueError(
            "This algorithm needs a target network, but views.target is empty; keep a lagged copy "
            "in the parameters (target_agent_steps)."
        )
    return views.target


def followed(batch: Batch) -> Tensor:
    """Observations [N, S, ...] that follow."""
    if batch.next_observations is None:
        raise ValueError(
            "This algorithm learns from pairs, but the batch has no next_observations; "
            "use a replay as store."
        )
    return batch.next_observations


def weighted(losses: Tensor, weights: Tensor | None, reduction: str) -> Tensor:
    """One loss of losses [N], each times its importance weight if there are any.

    The mean divides by the number of items, not by the sum of weights: a batch of rare steps is
    meant to count less.
    """
    if weights is not None:
        losses = losses * weights
    return losses.sum() if reduction == "sum" else losses.mean()
