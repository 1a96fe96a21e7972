"""Blocks: a filled slot as rows of the ring.

Takes a slot and the columns computed from it; gives arrays [rows, b, ...] by the ring's names.
Knows neither the ring nor where the rows will lie.
"""

from __future__ import annotations

from collections.abc import Set

import torch
from torch import Tensor

from ..records import Experience, Slot
from .n_step import TERMINAL, TRUNCATED


def rows_of(experience: Experience, names: Set[str]) -> dict[str, Tensor]:
    """The steps [T, b, ...] of a slot with the algorithm's columns `names`; frames one row more."""
    slot = experience.slot
    own = {**slot.columns, **experience.columns}
    unknown = sorted(own.keys() - names)
    if unknown:
        raise ValueError(
            f"Columns {unknown} were put, but the replay was made without them; name them in the "
            "algorithm's columns()."
        )
    truncated = slot.truncated & ~slot.terminal
    return {
        "frame": slot.frames[slot.stack - 1 :],
        "action": slot.actions,
        "reward": slot.reward,
        "end": slot.terminal * TERMINAL + truncated * TRUNCATED,
        "version": slot.version[:, None].expand_as(slot.actions),
        **own,
    }


def depth_since_cut(slot: Slot, rows_since_cut: int) -> Tensor:
    """Depths [T + 1, b]; right after a cut the ring has no frames from before it."""
    if rows_since_cut >= slot.stack:
        return slot.depth
    most = rows_since_cut + 1 + torch.arange(slot.num_steps + 1)
    return torch.minimum(slot.depth, most.clamp(max=slot.stack).to(torch.uint8)[:, None])
