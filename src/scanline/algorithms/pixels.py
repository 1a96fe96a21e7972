"""Running mean and deviation of every pixel, as CuLE normalises its input.

Takes the frames of each rollout; gives counts and sums as an algorithm's state, and observations
with mean 0 and deviation 1 per pixel as floats. Algorithms derive from `PixelNormalising`.
Knows no network and no loss.

The state holds sums, not means. Sums of bytes are exact in double precision, so their order does
not matter, and learners that average their states agree on the mean over all their frames.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from .._native import normalise
from ..native_arrays import has_contiguous_planes, images, span
from ..records import Experience, Slot, Spaces, Views
from .interface import Defaults

_FIRST_MEAN, _FIRST_DEVIATION = 127.5, 128.0
"""Before the first frame is counted: (x - 127.5) / 128, as CuLE does without normalising."""
_LEAST_DEVIATION = 1.0
"""Grey levels. A pixel that has hardly ever changed is not blown up when it first does."""


@dataclass(frozen=True, kw_only=True)
class PixelNormalising(Defaults):
    """An algorithm that can normalise pixels; a frame is counted once, when its step is stored."""

    normalise_pixels: bool = False
    """Whether pixels get mean 0 and deviation 1, each by its own statistics over the run."""

    @property
    def needs(self) -> frozenset[str]:
        statistics = ("running statistics", "equal statistics")
        return frozenset(statistics if self.normalise_pixels else ())

    def init(self, spaces: Spaces, num_envs: int) -> Mapping[str, Tensor]:
        return initial(spaces) if self.normalise_pixels else {}

    def inputs(self, views: Views, observations: Tensor) -> Tensor:
        return normalised(views.state, observations) if views.state else observations

    def prepare(self, views: Views, slot: Slot) -> Experience:
        return Experience(slot, state=self.next_state(views, slot))

    def next_state(self, views: Views, slot: Slot) -> Mapping[str, Tensor] | None:
        """The statistics with the slot's frames, for the experience of `prepare`."""
        return counted(views.state, slot) if self.normalise_pixels else None


def initial(spaces: Spaces) -> dict[str, Tensor]:
    """Nothing counted yet."""
    if spaces.frame_dtype != "uint8":
        raise ValueError(
            f"normalise_pixels needs frames of bytes, but this environment gives "
            f"{spaces.frame_dtype}; set normalise_pixels=False."
        )
    return {
        "pixel_count": torch.zeros((), dtype=torch.float64),
        "pixel_sum": torch.zeros(spaces.frame_shape, dtype=torch.float64),
        "pixel_square": torch.zeros(spaces.frame_shape, dtype=torch.float64),
    }


def counted(state: Mapping[str, Tensor], slot: Slot) -> dict[str, Tensor]:
    """The state with the frames of this slot's steps added."""
    frames = slot.frames[slot.stack :]  # [T, B, *frame]
    total, square = torch.zeros_like(state["pixel_sum"]), torch.zeros_like(state["pixel_sum"])
    num_frames = frames.shape[0] * frames.shape[1] if slot.valid is None else slot.valid.sum()
    for t, step in enumerate(frames):
        wide = step.to(total.dtype)
        if slot.valid is not None:
            wide *= slot.valid[t].view(-1, *(1,) * total.dim())
        total += wide.sum(0)
        square += wide.square_().sum(0)
    return {
        "pixel_count": state["pixel_count"] + num_frames,
        "pixel_sum": state["pixel_sum"] + total,
        "pixel_square": state["pixel_square"] + square,
    }


def normalised(state: Mapping[str, Tensor], observations: Tensor) -> Tensor:
    """Observations [N, S, *frame] as floats, by the pixel's own mean and deviation."""
    mean, deviation = moments(state)
    scale = deviation.reciprocal()
    if not has_contiguous_planes(observations):
        return observations.float().sub_(mean).mul_(scale)
    floats = torch.empty(observations.shape)
    normalise(images(observations), span(mean), span(scale), span(floats))
    return floats


def moments(state: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
    """Mean and deviation [*frame] of every pixel so far."""
    count = state["pixel_count"].clamp(min=1.0)
    mean = state["pixel_sum"] / count
    variance = (state["pixel_square"] / count - mean.square()).clamp(min=0.0)
    deviation = variance.sqrt().clamp(min=_LEAST_DEVIATION)
    unseen = state["pixel_count"] == 0
    mean = torch.where(unseen, torch.full_like(mean, _FIRST_MEAN), mean)
    deviation = torch.where(unseen, torch.full_like(mean, _FIRST_DEVIATION), deviation)
    return mean.float(), deviation.float()
