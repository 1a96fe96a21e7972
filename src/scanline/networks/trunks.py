"""Trunks: the convolutions of the published networks, each a row of data, and their one builder.

Takes a row of `TRUNKS`, the environment's spaces and a factory of layers; gives a module from
observations to flat features, and their number.
Knows nothing of heads, losses or optimisers; the hidden units of a row are built by the head,
because a dueling head needs them twice.

Which initialisation belongs to which name is part of its row: A3C, GA3C and PAAC use the fan-in
uniform, `nature` is today's de-facto orthogonal form, `nature-uniform` the form of Mnih 2015,
`nips-orthogonal` the small network with the orthogonal weights,
the 104x80 forms follow Stooke and Abbeel's code, `cule` and `cule-dqn` CuLE's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

import torch
from torch import Tensor, nn

from ..records import Spaces
from .convolutions import ConvTrunk, PixelScale
from .layers import (
    Layers,
    Rule,
    fan_in_uniform,
    glorot_unit_norm,
    kaiming,
    kaiming_doubled,
    orthogonal,
    truncated_normal,
)
from .residual import ChannelNorm, section, section_size

UNIT = PixelScale(1 / 255)
"""0 to 1: x / 255 (Mnih 2015, PAAC, Stooke and Abbeel, fast DQN)."""
SIGNED = PixelScale(1 / 128, -1.0)
"""-1 to 1: x / 128 - 1 (GA3C)."""
CENTRED = PixelScale(1 / 128, -127.5 / 128)
"""(x - 127.5) / 128 (CuLE's actor-critic when it does not normalise)."""


@dataclass(frozen=True)
class Conv:
    """One convolution, followed by ReLU."""

    filters: int
    kernel: int
    stride: int
    padding: int | Literal["same"] = 0
    """Pixels on each side, or 'same' as TensorFlow counts it: output = ceil(input / stride)."""


@dataclass(frozen=True, kw_only=True)
class Trunk:
    """A published network up to its head."""

    description: str
    """One sentence for the list of networks."""
    convs: tuple[Conv, ...]
    hidden: tuple[int, ...]
    """Units of the dense layers between convolutions and outputs."""
    rule: Rule
    """Initialisation."""
    frame: tuple[int, int] | None = (84, 84)
    """(H, W) that it was published for; None takes any size."""
    pixels: PixelScale = UNIT
    """Scale of byte input."""
    sections: tuple[int, ...] = ()
    """Filters of IMPALA's residual sections, in place of `convs`."""
    normed: bool = False
    """Whether layer normalisation stands before every ReLU."""

    memory: int = 0
    """Units of an LSTM between the dense layers and the outputs; 0 for none."""

    @property
    def is_flat(self) -> bool:
        """Whether it reads the numbers of an observation as they come."""
        return not self.convs and not self.sections

    @property
    def has_kernels(self) -> bool:
        """Whether our own kernels know its layers; else PyTorch computes them."""
        return not self.sections and not self.normed

    def maps_size(self, size: int) -> int:
        """Length of one axis after all convolutions; below 1 where the input is too small."""
        for conv in self.convs:
            size = output_size(conv, size)
        for _ in self.sections:
            size = section_size(size)
        return size


NIPS = (Conv(16, 8, 4), Conv(32, 4, 2))
NATURE = (Conv(32, 8, 4), Conv(64, 4, 2), Conv(64, 3, 1))


def ga3c_large(stride: int) -> Trunk:
    """GA3C's footnote 2: 32 first filters, a third layer of 64; the FC layer keeps 256 units."""
    first = Conv(32, 8, stride, "same")
    return Trunk(
        description=f"GA3C's large network with stride {stride} in the first layer.",
        convs=(first, Conv(32, 4, 2, "same"), Conv(64, 4, 2, "same")),
        hidden=(256,),
        rule=fan_in_uniform,
        pixels=SIGNED,
    )


TRUNKS: Mapping[str, Trunk] = MappingProxyType(
    {
        "nips": Trunk(
            description="A3C's and PAAC's small network: two convolutions, 256 units, 84x84.",
            convs=NIPS,
            hidden=(256,),
            rule=fan_in_uniform,
        ),
        "nature": Trunk(
            description="Three convolutions, 512 units, 84x84; orthogonal as in OpenAI baselines.",
            convs=NATURE,
            hidden=(512,),
            rule=orthogonal,
        ),
        "nature-uniform": Trunk(
            description="The layers of `nature` with the fan-in uniform of Mnih 2015 and PAAC.",
            convs=NATURE,
            hidden=(512,),
            rule=fan_in_uniform,
        ),
        "nips-orthogonal": Trunk(
            description="The layers of `nips` with the orthogonal weights of `nature`.",
            convs=NIPS,
            hidden=(256,),
            rule=orthogonal,
        ),
        "nature-any": Trunk(
            description="The layers of `nature` on any image of at least 36x36.",
            frame=None,
            convs=NATURE,
            hidden=(512,),
            rule=orthogonal,
        ),
        "nips-104x80": Trunk(
            description="Stooke and Abbeel's small network: 104x80, padded to 12x9 features.",
            frame=(104, 80),
            convs=(Conv(16, 8, 4), Conv(32, 4, 2, 1)),
            hidden=(256,),
            rule=glorot_unit_norm,
        ),
        "nature-104x80": Trunk(
            description="Stooke and Abbeel's large network: 104x80, padded to 12x9 features.",
            frame=(104, 80),
            convs=(Conv(32, 8, 4), Conv(64, 4, 2, 1), Conv(64, 3, 1, 1)),
            hidden=(512,),
            rule=glorot_unit_norm,
        ),
        "ga3c": Trunk(
            description="GA3C's small network: `nips` with TensorFlow's SAME padding.",
            convs=(Conv(16, 8, 4, "same"), Conv(32, 4, 2, "same")),
            hidden=(256,),
            rule=fan_in_uniform,
            pixels=SIGNED,
        ),
        "ga3c-large-4": ga3c_large(4),
        "ga3c-large-3": ga3c_large(3),
        "ga3c-large-2": ga3c_large(2),
        "ga3c-large-1": ga3c_large(1),
        "cule": Trunk(
            description="CuLE's actor-critic: `nature` with 32 filters in the third layer.",
            convs=(Conv(32, 8, 4), Conv(64, 4, 2), Conv(32, 3, 1)),
            hidden=(512,),
            rule=kaiming_doubled,
            pixels=CENTRED,
        ),
        "cule-dqn": Trunk(
            description="CuLE's DQN: the layers of `nature` with Kaiming's normal weights.",
            convs=NATURE,
            hidden=(512,),
            rule=kaiming,
        ),
        "pqn": Trunk(
            description="Gallici 2024: the layers of `nature`, each with layer normalisation.",
            convs=NATURE,
            hidden=(512,),
            rule=truncated_normal(2.0),
            normed=True,
        ),
        "mlp": Trunk(
            description="Two dense layers of 128 units, for vectors, RAM and small images.",
            frame=None,
            convs=(),
            hidden=(128, 128),
            rule=orthogonal,
        ),
        "impala": Trunk(
            description="Espeholt 2018, the deep one: 15 convolutions with residuals, 256 units.",
            frame=None,
            convs=(),
            sections=(16, 32, 32),
            hidden=(256,),
            rule=truncated_normal(1.0),
        ),
        "lstm": Trunk(
            description="The layers of `nature`, then an LSTM of 128 units as in CleanRL's PPO.",
            convs=NATURE,
            hidden=(512,),
            rule=orthogonal,
            memory=128,
        ),
        "mlp-lstm": Trunk(
            description="A dense layer of 128 units, then an LSTM of 128, for small observations.",
            frame=None,
            convs=(),
            hidden=(128,),
            rule=orthogonal,
            memory=128,
        ),
    }
)


class FlatTrunk(nn.Module):
    """Observations [N, S, ...frame] to [N, S * numbers per frame]."""

    def __init__(self, pixels: PixelScale) -> None:
        super().__init__()
        self.pixels = pixels

    def forward(self, observations: Tensor) -> Tensor:
        flat = observations.flatten(1)
        return flat if flat.is_floating_point() else self.pixels.apply_(flat.to(torch.float32))


def build_trunk(trunk: Trunk, spaces: Spaces, layers: Layers) -> tuple[nn.Module, int]:
    """The module [N, S, ...frame] to [N, features], and the number of features."""
    if trunk.is_flat:
        return FlatTrunk(trunk.pixels), math.prod(spaces.observation_shape)
    height, width, *colours = spaces.frame_shape
    channels = spaces.stack * math.prod(colours)
    if trunk.sections:
        return _residual_trunk(trunk, (height, width, channels), layers)
    steps: list[nn.Module] = []
    sizes: list[tuple[int, ...]] = []
    for conv in trunk.convs:
        steps += conv_steps(conv, channels, (height, width), layers, trunk.normed)
        border = (*padding(conv, height), *padding(conv, width))
        sizes.append((height, width, channels, conv.filters, conv.kernel, conv.stride, *border))
        height, width, channels = output_size(conv, height), output_size(conv, width), conv.filters
    native_sizes = tuple(sizes) if layers.kernels == "native" and not colours else None
    features = height * width * channels
    return ConvTrunk(nn.Sequential(*steps), trunk.pixels, native_sizes), features


def _residual_trunk(
    trunk: Trunk, image: tuple[int, int, int], layers: Layers
) -> tuple[nn.Module, int]:
    """IMPALA's sections and a last ReLU over images (height, width, channels)."""
    height, width, channels = image
    steps: list[nn.Module] = []
    for filters in trunk.sections:
        steps += section(channels, filters, layers)
        channels = filters
    body = nn.Sequential(*steps, nn.ReLU(inplace=True))
    features = trunk.maps_size(height) * trunk.maps_size(width) * channels
    return ConvTrunk(body, trunk.pixels, None), features


def conv_steps(
    conv: Conv, channels: int, frame: tuple[int, int], layers: Layers, normed: bool
) -> list[nn.Module]:
    """Padding where the convolution cannot pad by itself, the convolution, [norm], ReLU."""
    top, bottom = padding(conv, frame[0])
    left, right = padding(conv, frame[1])
    own = top if top == bottom == left == right else 0
    before = [] if own == top == bottom == left == right else [(left, right, top, bottom)]
    layer = layers.conv(channels, conv.filters, conv.kernel, stride=conv.stride, padding=own)
    norm = [ChannelNorm(conv.filters)] if normed else []
    return [*(nn.ZeroPad2d(sides) for sides in before), layer, *norm, nn.ReLU(inplace=True)]


def padding(conv: Conv, size: int) -> tuple[int, int]:
    """Pixels before and after one axis; TensorFlow puts an odd one after."""
    if conv.padding != "same":
        return conv.padding, conv.padding
    total = max((math.ceil(size / conv.stride) - 1) * conv.stride + conv.kernel - size, 0)
    return total // 2, total - total // 2


def output_size(conv: Conv, size: int) -> int:
    """Length of one axis after the convolution; below 1 where the input is too small."""
    return (size + sum(padding(conv, size)) - conv.kernel) // conv.stride + 1
