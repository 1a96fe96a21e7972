"""Frame stacks: the one place that turns single frames into observations.

Takes the last S frames of a batch, oldest first, and how many of them are valid; gives
observations [N, S, ...] with the protocol's padding. Knows no store and no engine.

Rollout and replay keep every frame once, an eighth of the memory of stored stacks. While no episode
is younger than S steps the result is a view: nothing is copied.
"""

from __future__ import annotations

import torch
from torch import Tensor


def build(frames: Tensor, depth: Tensor, padding: str) -> Tensor:
    """Observations [N, S, ...] from frames [S, N, ...] and valid depths [N]."""
    stacked = frames.transpose(0, 1)
    stack = frames.shape[0]
    if int(depth.min()) >= stack:
        return stacked
    young = torch.nonzero(depth < stack).flatten()
    observations = stacked.clone(memory_format=torch.contiguous_format)
    observations[young] = _padded(observations[young], depth[young], padding)
    return observations


def windows(frames: Tensor, depth: Tensor, padding: str) -> Tensor:
    """Observations [T, B, S, ...] from frames [S - 1 + T, B, ...] and depths [T, B]."""
    num_steps, num_envs = depth.shape
    stack = frames.shape[0] - num_steps + 1
    views = frames.unfold(0, stack, 1).movedim(-1, 2)  # [T, B, S, ...]
    if int(depth.min()) >= stack:
        return views
    young = torch.nonzero(depth < stack)
    observations = views.clone(memory_format=torch.contiguous_format)
    t, b = young[:, 0], young[:, 1]
    observations[t, b] = _padded(observations[t, b], depth[t, b], padding)
    assert observations.shape[:2] == (num_steps, num_envs)
    return observations


def _padded(observations: Tensor, depth: Tensor, padding: str) -> Tensor:
    """Replaces the planes older than the episode: by zeros, or by its first frame."""
    num, stack = observations.shape[:2]
    place = torch.arange(stack, device=observations.device)
    first = (stack - depth.long())[:, None]  # index of the episode's first frame
    if padding == "repeat":
        source = torch.maximum(place[None, :], first)
        return observations[torch.arange(num, device=observations.device)[:, None], source]
    missing = place[None, :] < first
    return observations.masked_fill(missing.view(num, stack, *[1] * (observations.dim() - 2)), 0)
