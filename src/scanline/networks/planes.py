"""Observations to the floats that a network reads.

Takes uint8 or float32 `[N, S, ...frame]`, also as a view with any strides; gives float32
`[N, S * C, H, W]` with channels last in memory, or `[N, D]` for a network without convolutions.
Knows nothing of layers: only of pixels and memory order.

Frames are copied one stack position at a time: each copy reads bytes in their order and widens
them while it writes. That was about twice as fast as `Tensor.to(float32, channels_last)` on a
2-core AVX2 machine; folding the scale into the first weights or into the copy gained nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class PixelScale:
    """`x * scale + offset` for a byte x; float input is taken as it comes, already scaled."""

    scale: float
    offset: float = 0.0

    def apply_(self, pixels: Tensor) -> Tensor:
        """Scales in place."""
        if self.scale != 1.0:
            pixels.mul_(self.scale)
        return pixels.add_(self.offset) if self.offset else pixels


UNIT = PixelScale(1 / 255)
"""0 to 1: x / 255 (Mnih 2015, PAAC, Stooke and Abbeel, fast DQN)."""
SIGNED = PixelScale(1 / 128, -1.0)
"""-1 to 1: x / 128 - 1 (GA3C)."""
CENTRED = PixelScale(1 / 128, -127.5 / 128)
"""(x - 127.5) / 128 (CuLE's actor-critic when it does not normalise)."""
RAW = PixelScale(1.0)
"""0 to 255, the byte itself."""


def image_planes(observations: Tensor, pixels: PixelScale) -> Tensor:
    """[N, S, H, W] or [N, S, H, W, C] to [N, S * C, H, W], channels last in memory."""
    num, stack, height, width, *colours = observations.shape
    planes = torch.empty(
        (num, height, width, stack, *colours), dtype=torch.float32, device=observations.device
    )
    for position, frame in enumerate(observations.unbind(1)):
        planes[:, :, :, position] = frame
    if not observations.is_floating_point():
        pixels.apply_(planes)
    return planes.flatten(3).permute(0, 3, 1, 2)


def flat_values(observations: Tensor, pixels: PixelScale) -> Tensor:
    """[N, S, ...frame] to [N, S * numbers per frame]."""
    flat = observations.flatten(1)
    return flat if flat.is_floating_point() else pixels.apply_(flat.to(torch.float32))
