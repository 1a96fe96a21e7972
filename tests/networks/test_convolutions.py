"""Bytes to planes by their definition, and native convolutions against PyTorch."""

from __future__ import annotations

import dataclasses
import importlib

import pytest
import torch
from torch import Tensor, nn

from networks.native_and_torch import (
    NATIVE,
    NOT_FINITE,
    assert_close,
    assert_same_kinds,
    drawn,
    gradients,
    images,
    pair,
    spoil,
)
from scanline import _native, networks
from scanline.networks.convolutions import PixelScale, image_planes, rows_of
from scanline.networks.trunks import CENTRED, SIGNED, TRUNKS, UNIT, Conv, FlatTrunk
from scanline.records import Spaces

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


@pytest.mark.parametrize("name", NATIVE)
def test_outputs_and_gradients_equal_pytorchs(name: str) -> None:
    native, plain = pair(name)
    observations = images(name, 5)
    with torch.no_grad():
        assert_close(native(observations).logits, plain(observations).logits)
        assert_close(native(observations).value, plain(observations).value)
    for found, expected, weight in zip(
        gradients(native, observations),
        gradients(plain, observations),
        native.parameters(),
        strict=True,
    ):
        assert found.stride() == weight.stride()
        assert_close(found, expected)


@pytest.mark.parametrize("name", ["nips", "nature"])
@pytest.mark.parametrize("head", ["q", "dueling"])
def test_features_may_have_one_reader_or_two(name: str, head: str) -> None:
    native, plain = pair(name, head)
    observations = drawn(name, 9)
    found, expected = native(observations).q, plain(observations).q
    assert_close(found, expected)
    ((found**2).sum() + (expected**2).sum()).backward()
    for mine, theirs in zip(native.parameters(), plain.parameters(), strict=True):
        assert mine.grad is not None and theirs.grad is not None
        assert_close(mine.grad, theirs.grad)


def test_a_hidden_layer_may_be_read_without_outputs() -> None:
    native, plain = pair("nature")
    observations = drawn("nature", 9)
    found, expected = (each.head.stream(each.trunk(observations)) for each in (native, plain))
    assert_close(found, expected)
    ((found**2).sum() + (expected**2).sum()).backward()
    for mine, theirs in zip(native.parameters(), plain.parameters(), strict=True):
        assert (mine.grad is None) == (theirs.grad is None)
        if mine.grad is not None and theirs.grad is not None:
            assert_close(mine.grad, theirs.grad)


@pytest.mark.parametrize("name", NATIVE)
def test_outputs_that_are_the_same_are_computed_once(name: str) -> None:
    """Forwards it has the bits of a network that sees one picture at a time; backwards sums come in
    another order."""
    native, plain = pair(name)
    observations = drawn(name, 8)
    pixels = native.trunk.pixels  # type: ignore[union-attr]
    floats = observations.float() * pixels.scale + pixels.offset
    with torch.no_grad():
        trunk = native.trunk
        assert isinstance(trunk, nn.Module)
        for read in (lambda some: rows_of(trunk(some)), lambda some: native(some).logits):
            alone = torch.cat([read(each[None]) for each in observations])
            assert torch.equal(read(observations), alone)
            assert torch.equal(read(floats), alone)
    for found, of_floats, expected in zip(
        gradients(native, observations),
        gradients(native, floats),
        gradients(plain, observations),
        strict=True,
    ):
        assert_close(found, of_floats)
        assert_close(found, expected)


def test_filters_that_are_always_zero_cost_nothing_and_change_nothing() -> None:
    """Half of all outputs are never positive, black pixels neither."""
    native, plain = pair("nature")
    observations = drawn("nature", 8)
    observations[:, :, 40:] = 0
    for network in (native, plain):
        for name, weight in network.named_parameters():
            if name.endswith("bias") and "policy" not in name and "value" not in name:
                weight.data[::2] = -100.0
    for found, expected in zip(
        gradients(native, observations), gradients(plain, observations), strict=True
    ):
        assert_close(found, expected)
        if found.dim() > 1:
            assert (found == 0).any()


def test_more_filters_than_a_word_has_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    wide = dataclasses.replace(
        TRUNKS["nips"], convs=(Conv(80, 8, 4), Conv(144, 4, 2)), hidden=(80,)
    )
    monkeypatch.setattr(
        importlib.import_module("scanline.networks.build"), "TRUNKS", {"nips": wide}
    )
    native, plain = pair("nips")
    observations = drawn("nips", 8)
    assert_close(native(observations).logits, plain(observations).logits)
    for found, expected in zip(
        gradients(native, observations), gradients(plain, observations), strict=True
    ):
        assert_close(found, expected)


@pytest.mark.parametrize("num", [1, 2, 9, 33])
def test_every_number_of_pictures(num: int) -> None:
    native, plain = pair("nature")
    observations = images("nature", num)
    for found, expected in zip(
        gradients(native, observations), gradients(plain, observations), strict=True
    ):
        assert_close(found, expected)


class ChannelsLast(nn.Module):
    def forward(self, maps: Tensor) -> Tensor:
        return maps.permute(0, 2, 3, 1)


def test_more_pictures_than_share_their_outputs() -> None:
    native, plain = pair("nips")
    observations = drawn("nips", 300).roll(7, dims=0)
    plain.trunk = nn.Sequential(plain.trunk.convs, ChannelsLast(), nn.Flatten())
    exact = gradients(plain.double(), observations.double() / 255)  # float sums are 5e-5 off
    for found, expected in zip(gradients(native, observations), exact, strict=True):
        assert_close(found, expected.float())


def test_a_pass_that_is_used_again_knows_nothing_of_earlier_pictures() -> None:
    native, _ = pair("nips")
    fresh = [gradients(pair("nips")[0], drawn("nips", num)) for num in (9, 140, 3)]
    for num, expected in zip((9, 140, 3), fresh, strict=True):
        found = gradients(native, drawn("nips", num))
        assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))


def test_stacks_that_share_their_frames_are_read_in_place() -> None:
    native, plain = pair("nips")
    frames = images("nips", 3).flatten(0, 1)  # 12 frames in a row
    windows = frames.unfold(0, 4, 1).movedim(-1, 1)  # [9, 4, H, W], one frame further each
    assert not windows.is_contiguous()
    assert_close(native(windows).logits, plain(windows).logits)


def test_float_observations_are_taken_as_they_come() -> None:
    native, plain = pair("nature")
    observations = images("nature", 3).float() / 100 - 1
    assert_close(native(observations).logits, plain(observations).logits)


def test_sizes_that_the_kernels_do_not_know_are_left_to_pytorch() -> None:
    odd = Spaces(frame_shape=(84, 84, 3), frame_dtype="uint8", stack=1, num_actions=3)
    network = networks.build("nature", odd, "policy-value", seed=0)
    observations = torch.zeros((2, 1, 84, 84, 3), dtype=torch.uint8)
    assert network(observations).logits.shape == (2, 3)
    refusal = _native.ConvStack.refusal([[84, 84, 1, 32, 7, 4, 0, 0, 0, 0]])
    assert refusal == "kernel times channels must be a multiple of 8"


@pytest.mark.parametrize("stack", [1, 2, 3])
def test_other_stacks_than_four_frames_have_the_gradients_of_pytorch(stack: int) -> None:
    spaces = Spaces(frame_shape=(84, 84), frame_dtype="uint8", stack=stack, num_actions=3)
    native, plain = (
        networks.build("nature", spaces, "policy-value", seed=0, kernels=kernels)
        for kernels in ("native", "torch")
    )
    observations = images("nature", 5)[:, :stack]
    assert native.trunk.sizes is not None
    mine, theirs = (gradients(each, observations) for each in (native, plain))
    for one, other in zip(mine, theirs, strict=True):
        assert_close(one, other)


def assert_spreads_alike(native: nn.Module, plain: nn.Module, observations: Tensor) -> None:
    """Zero times infinity is no number at a border too, which PyTorch may leave out of its sums."""
    has_border = any(getattr(layer, "padding", (0, 0)) != (0, 0) for layer in plain.modules())
    with torch.no_grad():
        found, expected = native(observations), plain(observations)
    assert_same_kinds(found.logits, expected.logits, "logits")
    assert_same_kinds(found.value, expected.value, "value")
    names = [name for name, _ in plain.named_parameters()]
    mine, theirs = (gradients(each, observations) for each in (native, plain))
    for name, one, other in zip(names, mine, theirs, strict=True):
        if has_border:
            assert (one.isnan() | other.isfinite()).all(), f"gradient of {name}"
        else:
            assert_same_kinds(one, other, f"gradient of {name}")


@pytest.mark.parametrize("name", NATIVE)
def test_a_weight_that_is_no_number_spreads_as_in_pytorch(name: str) -> None:
    """Wherever it is: behind a rectifier too, and where all inputs are zero."""
    torch.set_num_threads(1)
    observations = drawn(name, 2)
    observations[:, :, 20:] = 0
    native, plain = pair(name)
    native(observations)  # its weights were finite when they were looked at first
    for number, weights in enumerate(zip(native.parameters(), plain.parameters(), strict=True)):
        before = weights[1].detach().clone()
        for weight in weights:
            spoil(weight, (7 * number + 3) % weight.numel(), float("nan"))
        assert_spreads_alike(native, plain, observations)
        with torch.no_grad():
            for weight in weights:
                weight.copy_(before)
    assert native(observations).logits.isfinite().all()


@pytest.mark.parametrize("value", NOT_FINITE)
def test_a_weight_of_an_input_that_is_always_zero_spreads_too(value: float) -> None:
    native, plain = pair("nature")
    observations = drawn("nature", 3)
    for network in (native, plain):
        biases = [each for name, each in network.named_parameters() if name.endswith("bias")]
        with torch.no_grad():
            biases[2][5] = -1e6  # this filter of the last convolution never answers
    assert rows_of(native.trunk(observations)).view(3, -1, 64)[..., 5].eq(0).all()  # type: ignore[operator]
    hidden = [next(p for p in each.parameters() if p.shape[0] == 512) for each in (native, plain)]
    for weight in hidden:
        spoil(weight, 64 * 7 + 5, value)
    assert_spreads_alike(native, plain, observations)


@pytest.mark.parametrize("value", NOT_FINITE)
def test_an_observation_that_is_no_number_spreads_as_in_pytorch(value: float) -> None:
    native, plain = pair("nature")
    observations = drawn("nature", 3).float() / 255
    observations[1, 2, 40, 41] = value
    assert_spreads_alike(native, plain, observations)
