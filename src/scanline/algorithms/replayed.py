"""What losses over replayed pairs share: the target view, the pair, and importance weights.

Takes views and a batch; gives what a loss needs of them or says what is missing.
Knows no particular loss.
"""

from __future__ import annotations

from torch import Tensor, nn

from ..records import Batch, Views


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
