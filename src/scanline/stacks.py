"""Frame stacks: the one place that turns single frames into observations.

Takes the last S frames of a batch, oldest first, and how many of them are valid; gives
observations [N, S, ...] with the protocol's padding. Knows no store and no engine.

Rollout and replay keep every frame once, an eighth of the memory of stored stacks. While no episode
is younger than S steps the result is a view: nothing is copied.
"""

from __future__ import annotations

import torch
from torch import Tensor


class Sight:
    """What is seen in arrays that are filled again and again: their views are made once.

    Takes planes [..., S, *frame] and depths [...], uint8 on the CPU: views of those arrays.
    """

    def __init__(self, planes: Tensor, depth: Tensor, padding: str) -> None:
        self._planes, self._depth, self._padding = planes, depth, padding
        self._depth_array = depth.numpy()
        self._full = bytes([planes.shape[depth.dim()]]) * depth.numel()

    def observations(self) -> Tensor:
        """Observations [..., S, *frame] of what the arrays hold now."""
        if self._depth_array.tobytes() == self._full:  # the cheapest look at a few bytes
            return self._planes
        return _seen(self._planes, self._depth, self._padding)


def step_planes(frames: Tensor) -> Tensor:
    """Planes [N, S, ...] of frames [S, N, ...], not padded."""
    return frames.transpose(0, 1)


def window_planes(frames: Tensor, num_steps: int) -> Tensor:
    """Planes [T, B, S, ...] of frames [S - 1 + T, B, ...], not padded."""
    return frames.unfold(0, frames.shape[0] - num_steps + 1, 1).movedim(-1, 2)


def build(frames: Tensor, depth: Tensor, padding: str) -> Tensor:
    """Observations [N, S, ...] from frames [S, N, ...] and valid depths [N]."""
    return _seen(step_planes(frames), depth, padding)


def windows(frames: Tensor, depth: Tensor, padding: str) -> Tensor:
    """Observations [T, B, S, ...] from frames [S - 1 + T, B, ...] and depths [T, B]."""
    return _seen(window_planes(frames, len(depth)), depth, padding)


def _seen(planes: Tensor, depth: Tensor, padding: str) -> Tensor:
    """The planes [..., S, *frame] themselves, or a copy, padded where an episode is young."""
    stack = planes.shape[depth.dim()]
    if int(depth.min()) >= stack:
        return planes
    young = torch.nonzero(depth < stack, as_tuple=True)
    observations = planes.clone(memory_format=torch.contiguous_format)
    observations[young] = _padded(observations[young], depth[young], padding)
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
