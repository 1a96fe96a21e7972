"""Layers of trunks that are more than a chain of convolutions; PyTorch computes them.

Takes channels and a factory of layers; gives modules from maps [N, C, H, W], channels last in
memory, to maps. Knows no network by name, no head and no loss.
"""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional

from .layers import Layers


class ChannelNorm(nn.LayerNorm):
    """Layer normalisation of maps over their channels, each pixel by itself, as in Flax."""

    def __init__(self, channels: int) -> None:
        super().__init__(channels, eps=1e-6)

    def forward(self, maps: Tensor) -> Tensor:
        return super().forward(maps.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class ResidualBlock(nn.Module):
    """Two convolutions of 3x3, each after a ReLU, added to what they read."""

    def __init__(self, channels: int, layers: Layers) -> None:
        super().__init__()
        self.first = layers.conv(channels, channels, 3, padding=1)
        self.second = layers.conv(channels, channels, 3, padding=1)

    def forward(self, maps: Tensor) -> Tensor:
        inner: Tensor = self.second(functional.relu(self.first(functional.relu(maps))))
        return maps + inner


def section(channels: int, filters: int, layers: Layers) -> list[nn.Module]:
    """A section of IMPALA's deep network: 3x3 convolution, maximum over 3x3 with stride 2, two
    residual blocks."""
    return [
        layers.conv(channels, filters, 3, padding=1),
        nn.MaxPool2d(3, stride=2, padding=1),
        ResidualBlock(filters, layers),
        ResidualBlock(filters, layers),
    ]


def section_size(size: int) -> int:
    """Length of one axis after a section."""
    return (size + 1) // 2
