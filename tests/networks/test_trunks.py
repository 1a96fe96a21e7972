"""Shapes, sizes and arithmetic of the published trunks."""

import math

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d, pad, relu

from scanline.networks import build
from scanline.networks.convolutions import rows_of
from scanline.networks.trunks import TRUNKS, Conv, output_size, padding
from scanline.records import Spaces

NUM_ACTIONS = 6


def spaces_of(name: str) -> Spaces:
    frame = TRUNKS[name].frame or (84, 84)
    return Spaces(frame_shape=frame, frame_dtype="uint8", stack=4, num_actions=NUM_ACTIONS)


def built(name: str, head: str = "policy-value", seed: int = 0) -> nn.Module:
    return build(name, spaces_of(name), head, seed=seed)


def num_parameters(module: nn.Module) -> int:
    return sum(each.numel() for each in module.parameters())


def observations_for(name: str, num: int = 3) -> Tensor:
    generator = torch.Generator().manual_seed(7)
    shape = (num, *spaces_of(name).observation_shape)
    return torch.randint(0, 256, shape, dtype=torch.uint8, generator=generator)


# From the papers: shape of the last convolution's output [C, H, W].
MAPS = {
    "nips": (32, 9, 9),
    "nature": (64, 7, 7),
    "nature-uniform": (64, 7, 7),
    "nips-orthogonal": (32, 9, 9),
    "nature-any": (64, 7, 7),
    "nips-104x80": (32, 12, 9),
    "nature-104x80": (64, 12, 9),
    "ga3c": (32, 11, 11),
    "ga3c-large-4": (64, 6, 6),
    "ga3c-large-3": (64, 7, 7),
    "ga3c-large-2": (64, 11, 11),
    "ga3c-large-1": (64, 21, 21),
    "cule": (32, 7, 7),
    "cule-dqn": (64, 7, 7),
    "pqn": (64, 7, 7),
    "impala": (32, 11, 11),
}


def test_every_convolutional_name_has_its_published_maps():
    assert set(MAPS) == {n for n, row in TRUNKS.items() if not row.is_flat and not row.memory}


@pytest.mark.parametrize("name", MAPS)
def test_maps_have_the_published_shape(name):
    network = built(name)
    features = rows_of(network.trunk(observations_for(name)))
    assert features.shape == (3, math.prod(MAPS[name]))


@pytest.mark.parametrize(
    ("name", "head", "expected"),
    [
        # conv 16*4*64+16, conv 32*16*16+32, FC 2592*256+256, outputs 257*(6+1)
        ("nips", "policy-value", 4112 + 8224 + 663_808 + 257 * 7),
        # GA3C: 3872 features into 256
        ("ga3c", "policy-value", 4112 + 8224 + 3872 * 256 + 256 + 257 * 7),
        # Mnih 2015 with 6 actions
        ("nature", "q", 8224 + 32_832 + 36_928 + 1_606_144 + 513 * 6),
        ("cule", "policy-value", 8224 + 32_832 + (32 * 64 * 9 + 32) + 1568 * 512 + 512 + 513 * 7),
        ("nature", "categorical", 8224 + 32_832 + 36_928 + 1_606_144 + 513 * 6 * 51),
        ("nature", "dueling", 8224 + 32_832 + 36_928 + 2 * 1_606_144 + 513 * 7),
    ],
)
def test_number_of_parameters_is_the_sum_over_published_layers(name, head, expected):
    assert num_parameters(built(name, head)) == expected


def test_sizes_that_the_papers_round():
    assert round(num_parameters(built("nips-104x80")) / 1e6, 1) == 0.9
    assert round(num_parameters(built("nature-104x80")) / 1e6, 1) == 3.6
    # CuLE's paper speaks of 4M parameters; its released network has these, in 3.5 MB of floats.
    assert num_parameters(built("cule")) == 866_439


def test_nature_with_18_actions_has_the_size_known_from_the_paper():
    spaces = Spaces(frame_shape=(84, 84), frame_dtype="uint8", stack=4, num_actions=18)
    assert num_parameters(build("nature-uniform", spaces, "q", seed=0)) == 1_693_362


def test_same_padding_puts_the_odd_pixel_after():
    assert padding(Conv(16, 8, 4, "same"), 84) == (2, 2)
    assert padding(Conv(32, 4, 2, "same"), 21) == (1, 2)
    assert output_size(Conv(32, 4, 2, "same"), 21) == 11


def forward_by_definition(network: nn.Module, name: str, observations: Tensor) -> Tensor:
    """The hidden features, from float64 NCHW arithmetic and the layers' own numbers."""
    row = TRUNKS[name]
    maps = observations.contiguous().double() * row.pixels.scale + row.pixels.offset
    layers = [each for each in network.trunk.convs if isinstance(each, nn.Conv2d)]
    for conv, layer in zip(row.convs, layers, strict=True):
        rows, columns = padding(conv, maps.shape[2]), padding(conv, maps.shape[3])
        maps = pad(maps, (*columns, *rows))
        weight = layer.weight.double().contiguous()
        maps = relu(conv2d(maps, weight, layer.bias.double(), stride=conv.stride))
    return torch.stack([maps[n].permute(1, 2, 0).reshape(-1) for n in range(len(maps))])


@pytest.mark.parametrize("name", sorted(set(MAPS) - {"ga3c-large-1", "pqn", "impala"}))
def test_channels_last_equals_contiguous_arithmetic(name):
    network, observations = built(name), observations_for(name)
    with torch.no_grad():
        features = rows_of(network.trunk(observations))
        expected = forward_by_definition(network, name, observations)
    scale = float(expected.abs().max())
    torch.testing.assert_close(features.double(), expected, rtol=1e-4, atol=1e-5 * scale)


def test_convolutions_stay_channels_last():
    network = built("nature")
    maps = []
    for layer in network.trunk.convs:
        layer.register_forward_hook(lambda module, inputs, output: maps.append(output))
    network(observations_for("nature"))
    assert all(each.is_contiguous(memory_format=torch.channels_last) for each in maps)
    assert network.trunk.convs[0].weight.is_contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize("name", ["nips", "ga3c"])
def test_strided_views_give_the_same_outputs(name):
    frames = torch.randint(0, 256, (9, 3, 84, 84), dtype=torch.uint8)
    view = frames[3:7].transpose(0, 1)
    network = built(name)
    assert not view.is_contiguous()
    with torch.no_grad():
        assert torch.equal(network(view).logits, network(view.contiguous()).logits)


def test_colour_frames_fill_three_times_the_channels():
    spaces = Spaces(frame_shape=(96, 96, 3), frame_dtype="uint8", stack=2, num_actions=5)
    network = build("nature-any", spaces, "q", seed=0)
    assert network.trunk.convs[0].in_channels == 6
    assert network(torch.zeros(2, 2, 96, 96, 3, dtype=torch.uint8)).q.shape == (2, 5)


@pytest.mark.parametrize(
    ("frame", "dtype"), [((4,), "float32"), ((128,), "uint8"), ((10, 10), "uint8")]
)
def test_mlp_takes_vectors_ram_and_small_images(frame, dtype):
    spaces = Spaces(frame_shape=frame, frame_dtype=dtype, stack=2, num_actions=3)
    network = build("mlp", spaces, "policy-value", seed=0)
    observations = torch.ones((7, 2, *frame), dtype=getattr(torch, dtype))
    outputs = network(observations)
    assert outputs.logits.shape == (7, 3)
    assert outputs.value.shape == (7,)
