"""Bytes to planes against the definition, for contiguous and strided observations."""

import torch

from scanline.networks.convolutions import PixelScale, image_planes
from scanline.networks.trunks import CENTRED, SIGNED, UNIT, FlatTrunk

RAW = PixelScale(1.0)


def strided_observations() -> torch.Tensor:
    """A view [N, S, H, W] into time-first frames, as a rollout gives it."""
    frames = torch.arange(7 * 3 * 5 * 6, dtype=torch.int64).remainder(256).to(torch.uint8)
    return frames.view(7, 3, 5, 6)[2:6].transpose(0, 1)


def test_planes_of_a_strided_view_equal_the_plain_conversion():
    observations = strided_observations()
    assert not observations.is_contiguous()
    expected = observations.contiguous().to(torch.float32)
    assert torch.equal(image_planes(observations, RAW), expected)


def test_planes_lie_channels_last_in_memory():
    planes = image_planes(strided_observations(), UNIT)
    assert planes.is_contiguous(memory_format=torch.channels_last)


def test_each_scale_is_its_formula():
    observations = strided_observations()
    x = observations.to(torch.float64)
    for scale, expected in (
        (UNIT, x / 255),
        (SIGNED, x / 128 - 1),
        (CENTRED, (x - 127.5) / 128),
        (RAW, x),
    ):
        planes = image_planes(observations, scale).to(torch.float64)
        torch.testing.assert_close(planes, expected, rtol=0, atol=1e-7)
        flat = FlatTrunk(scale)(observations).to(torch.float64)
        torch.testing.assert_close(flat, expected.flatten(1), rtol=0, atol=1e-7)


def test_floats_are_taken_as_they_come():
    observations = torch.randn(2, 4, 5, 6, generator=torch.Generator().manual_seed(0))
    assert torch.equal(image_planes(observations, SIGNED), observations)
    assert torch.equal(FlatTrunk(SIGNED)(observations), observations.flatten(1))


def test_colours_become_channels_of_their_frame():
    observations = torch.randint(0, 256, (2, 3, 5, 6, 3), dtype=torch.uint8)
    planes = image_planes(observations, RAW)
    assert planes.shape == (2, 9, 5, 6)
    for position in range(3):
        for colour in range(3):
            expected = observations[:, position, :, :, colour].to(torch.float32)
            assert torch.equal(planes[:, 3 * position + colour], expected)


def test_the_input_is_not_changed():
    observations = torch.full((1, 4, 5, 6), 255, dtype=torch.uint8)
    image_planes(observations, UNIT)
    FlatTrunk(UNIT)(observations)
    vector = torch.ones(2, 1, 3)
    FlatTrunk(SIGNED)(vector)
    assert int(observations.min()) == 255
    assert torch.equal(vector, torch.ones(2, 1, 3))
