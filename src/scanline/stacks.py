"""Frame stacks: the one place that turns single frames into observations.

Takes the last S frames of a batch, oldest first, and how many of them are valid; gives
observations [N, S, ...] with the protocol's padding, all on the CPU. Knows no store and no engine.

Rollout and replay keep every frame once, an eighth of the memory of stored stacks. While no episode
is younger than S steps the result is a view: nothing is copied.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

Array = npt.NDArray[Any]


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
    stack, ages = planes.shape[depth.dim()], depth.numpy()
    if ages.min() >= stack:
        return planes
    observations = planes.clone(memory_format=torch.contiguous_format)
    _pad(observations.numpy(), stack - ages.astype(np.int64), padding)
    return observations


def _pad(planes: Array, first: Array, padding: str) -> None:
    """Replaces planes [..., S, *frame] older than the episode, whose first frame is at `first`
    [...]: by zeros, or by that frame. NumPy moves whole planes, PyTorch number by number."""
    older = np.arange(planes.shape[first.ndim]) < first[..., None]
    if padding == "repeat":
        *rows, _ = np.nonzero(older)
        planes[older] = planes[(*rows, first[tuple(rows)])]
    else:
        planes[older] = 0
