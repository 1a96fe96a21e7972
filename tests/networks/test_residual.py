"""Networks that PyTorch computes: layer normalisation and IMPALA's residual sections."""

from __future__ import annotations

import math

import torch
from torch.nn import functional

from scanline.networks import build
from scanline.networks.residual import ChannelNorm, ResidualBlock
from scanline.records import Spaces

SPACES = Spaces(frame_shape=(84, 84), frame_dtype="uint8", stack=4, num_actions=6)


def test_maps_are_normalised_over_their_channels_pixel_by_pixel() -> None:
    norm, maps = ChannelNorm(3), torch.randn(2, 3, 4, 5)
    expected = torch.empty_like(maps)
    for n in range(2):
        for row in range(4):
            for column in range(5):
                pixel = maps[n, :, row, column]
                deviation = math.sqrt(float(pixel.var(correction=0)) + 1e-6)
                expected[n, :, row, column] = (pixel - pixel.mean()) / deviation
    torch.testing.assert_close(norm(maps), expected)


def test_the_network_of_pqn_normalises_before_every_relu() -> None:
    network = build("pqn", SPACES, "q", seed=0)
    kinds = [type(each).__name__ for each in network.trunk.convs]
    assert kinds == ["Conv2d", "ChannelNorm", "ReLU"] * 3
    assert [type(each).__name__ for each in network.head.stream] == ["Linear", "LayerNorm", "ReLU"]
    rows = network.head.stream[:2](torch.randn(5, 64 * 49))
    torch.testing.assert_close(rows.mean(1), torch.zeros(5), atol=1e-5, rtol=0)


def test_impala_s_deep_network_has_fifteen_convolutions_and_passes_a_block_s_input_on() -> None:
    network = build("impala", SPACES, "policy-value", seed=0)
    convs = [each for each in network.modules() if isinstance(each, torch.nn.Conv2d)]
    assert [each.out_channels for each in convs] == [16] * 5 + [32] * 5 + [32] * 5
    (block, *_) = [each for each in network.modules() if isinstance(each, ResidualBlock)]
    maps = torch.randn(2, 16, 6, 6)
    inner = block.first(functional.relu(maps))
    torch.testing.assert_close(block(maps), maps + block.second(functional.relu(inner)))
    outputs = network(torch.zeros(3, 4, 84, 84, dtype=torch.uint8))
    assert outputs.logits.shape == (3, 6) and outputs.value.shape == (3,)
