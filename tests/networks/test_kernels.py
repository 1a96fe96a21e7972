"""The native kernels against PyTorch: features, gradients, strides, threads."""

from __future__ import annotations

import dataclasses
import importlib
import threading
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor, nn

from scanline import _native, networks
from scanline.native_arrays import span, spans
from scanline.networks import kernels
from scanline.networks.convolutions import rows_of
from scanline.networks.dense import dense
from scanline.networks.trunks import TRUNKS, Conv
from scanline.records import Spaces

NATIVE = [name for name, trunk in TRUNKS.items() if trunk.convs]


@pytest.fixture(autouse=True)
def threads() -> Iterator[None]:
    before = torch.get_num_threads(), _native.layer_threads()
    yield
    torch.set_num_threads(before[0])
    _native.set_layer_threads(before[1])


def spaces_for(name: str) -> Spaces:
    frame = TRUNKS[name].frame or (44, 52)
    return Spaces(frame_shape=frame, frame_dtype="uint8", stack=4, num_actions=6)


def pair(name: str, head: str = "policy-value") -> tuple[nn.Module, nn.Module]:
    """The same network with both kinds of kernels."""
    spaces = spaces_for(name)
    kinds: tuple[kernels.Kernels, kernels.Kernels] = ("native", "torch")
    native, plain = (networks.build(name, spaces, head, seed=3, kernels=kind) for kind in kinds)
    return native, plain


def pictures(name: str, num: int) -> Tensor:
    random = torch.Generator().manual_seed(num)
    shape = (num, 4, *spaces_for(name).frame_shape)
    return torch.randint(0, 256, shape, dtype=torch.uint8, generator=random)


def gradients(network: nn.Module, observations: Tensor) -> list[Tensor]:
    network.zero_grad()
    outputs = network.head(network.trunk(observations))
    weights = torch.linspace(-1, 1, outputs.logits.numel()).view_as(outputs.logits)
    ((outputs.logits * weights).sum() + outputs.value.square().sum()).backward()
    return [each.grad.clone() for each in network.parameters() if each.grad is not None]


def assert_close(found: Tensor, expected: Tensor, atol: float = 3e-5) -> None:
    found, expected = found.detach(), expected.detach()
    scale = max(float(expected.abs().max()), 1e-6)
    torch.testing.assert_close(found / scale, expected / scale, rtol=0, atol=atol)


@pytest.mark.parametrize("name", NATIVE)
def test_outputs_and_gradients_equal_pytorchs(name: str) -> None:
    native, plain = pair(name)
    observations = pictures(name, 5)
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


def drawn(name: str, num: int) -> Tensor:
    """Pictures as games draw them: stripes, boxes, a noisy corner; the first one is empty."""
    random = torch.Generator().manual_seed(num)
    height, width = spaces_for(name).frame_shape
    found = torch.full((num, 4, height, width), 87, dtype=torch.uint8)
    for picture in range(1, num):
        found[picture, :, height // 3 : height // 3 + picture] = 140
        for plane in range(4):
            y, x = (int(n) for n in torch.randint(0, 30, (2,), generator=random))
            found[picture, plane, y : y + 5, x : x + 3] = 236
        if picture % 3 == 0:
            noise = torch.randint(0, 256, (4, 9, 9), dtype=torch.uint8, generator=random)
            found[picture, :, -9:, -9:] = noise
    return found


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
    observations = pictures("nature", num)
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
    frames = pictures("nips", 3).flatten(0, 1)  # 12 frames in a row
    windows = frames.unfold(0, 4, 1).movedim(-1, 1)  # [9, 4, H, W], one frame further each
    assert not windows.is_contiguous()
    assert_close(native(windows).logits, plain(windows).logits)


def test_float_observations_are_taken_as_they_come() -> None:
    native, plain = pair("nature")
    observations = pictures("nature", 3).float() / 100 - 1
    assert_close(native(observations).logits, plain(observations).logits)


@pytest.mark.parametrize("num_threads", [2, 3])
def test_threads_change_no_bit(num_threads: int) -> None:
    native, _ = pair("nature")
    observations = torch.cat((pictures("nature", 21), drawn("nature", 60)))
    networks.share_cores(1, native=True)
    alone = gradients(native, observations)
    networks.share_cores(num_threads, native=True)
    for _ in range(3):
        together = gradients(native, observations)
        assert all(torch.equal(a, b) for a, b in zip(alone, together, strict=True))


def test_callers_in_several_threads_get_their_own_results() -> None:
    native, _ = pair("nips")
    networks.share_cores(2, native=True)
    batches = [pictures("nips", num) for num in (4, 7, 16)]
    with torch.no_grad():
        expected = [native(batch).logits for batch in batches]
    wrong: list[int] = []

    def call(number: int) -> None:
        with torch.no_grad():
            for _ in range(30):
                if not torch.equal(native(batches[number]).logits, expected[number]):
                    wrong.append(number)

    callers = [threading.Thread(target=call, args=(number,)) for number in range(3)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(timeout=60)
        assert not caller.is_alive()
    assert not wrong


def test_sizes_that_the_kernels_do_not_know_are_left_to_pytorch() -> None:
    odd = Spaces(frame_shape=(84, 84), frame_dtype="uint8", stack=1, num_actions=3)
    network = networks.build("nature", odd, "policy-value", seed=0)
    observations = torch.zeros((2, 1, 84, 84), dtype=torch.uint8)
    assert network(observations).logits.shape == (2, 3)  # 8 x 1 channels are no multiple of 16
    assert _native.ConvStack.refusal([[84, 84, 1, 32, 8, 4, 0, 0, 0, 0]]) is not None


def given(frames: Tensor) -> _native.Pictures:
    address, shape = frames.data_ptr(), tuple(frames.shape)
    return _native.Pictures(address, True, shape, frames.stride(), 1.0, 0.0)


def test_wrong_arrays_are_refused() -> None:
    sizes = [[84, 84, 4, 16, 8, 4, 0, 0, 0, 0]]
    if _native.ConvStack.refusal(sizes) is not None:
        pytest.skip("this processor has no native kernels")
    stack = _native.ConvStack(sizes).begin()
    weights = spans([torch.zeros(16, 8, 8, 4), torch.zeros(16)])
    frames, features = torch.zeros((2, 4, 84, 84), dtype=torch.uint8), torch.zeros(2, 20 * 20 * 16)
    whole = [span(features)]
    with pytest.raises(ValueError, match="rows has"):
        stack.forward(given(frames), weights, [span(features[:1])])
    with pytest.raises(ValueError, match="weights do not have"):
        stack.forward(given(frames), [(weights[0][0], 8), weights[1]], whole)
    with pytest.raises(ValueError, match="for every convolution"):
        stack.forward(given(frames), weights[:1], whole)
    with pytest.raises(ValueError, match="sizes of the first"):
        stack.forward(given(frames[:, :3]), weights, whole)
    with pytest.raises(ValueError, match="multiple of 16 units"):
        stack.forward(given(frames), [*weights, (0, 6400 * 8), (0, 8)], [(0, 16)])
    with pytest.raises(ValueError, match="weights of the dense layer has"):
        stack.forward(given(frames), [*weights, (0, 6400 * 8), (0, 16)], [(0, 32)])
    hidden = [*weights, (0, 6400 * 16), (0, 16)]
    with pytest.raises(ValueError, match="rows for every layer"):
        stack.forward(given(frames), hidden, [(0, 32), (0, 2)])
    with pytest.raises(ValueError, match="sizes of one layer"):
        stack.forward(given(frames), [*hidden, (0, 16 * 3 + 1), (0, 3)], [(0, 32), (0, 6)])
    with pytest.raises(ValueError, match="out has"):
        stack.forward(given(frames), [*hidden, (0, 16 * 3), (0, 3)], [(0, 32), (0, 5)])
    stack.forward(given(frames), weights, whole)
    with pytest.raises(ValueError, match="went through a dense layer"):
        stack.backward(hidden, [(0, 32)], [(0, 32)], hidden)
    with pytest.raises(ValueError, match="for every weight"):
        stack.backward(hidden, [(0, 32)], [(0, 32)], weights)
    with pytest.raises(ValueError, match="for every row"):
        stack.backward(weights, whole, [(0, 32)], weights)
    layers = [*hidden, (0, 16 * 3), (0, 3)]
    with pytest.raises(ValueError, match="out_gradients has"):
        stack.backward(layers, [(0, 32), (0, 6)], [(0, 32)], layers)
    with pytest.raises(ValueError, match="contiguous"):
        given(frames.transpose(2, 3))
    with pytest.raises(ValueError, match="sizes of one layer"):
        _native.dense_forward(span(torch.zeros(33)), [(0, 33), (0, 16)], [(0, 16)], True)
    with pytest.raises(ValueError, match="for every layer"):
        _native.dense_forward(span(torch.zeros(32)), [(0, 32)], [(0, 16)], True)
    with pytest.raises(ValueError, match="must have one size"):
        _native.rmsprop([(0, 3)], [(0, 4)], [(0, 3)], [], 0.9, 0.1, False, 0.1, 1.0)
    with pytest.raises(ValueError, match="sizes of one rollout"):
        _native.n_step_returns((0, 6), (0, 6), (0, 6), (0, 6), (0, 4), 0.9, (0, 6))
    with pytest.raises(ValueError, match="at least one thread"):
        _native.set_layer_threads(0)


def test_arrays_that_are_not_what_they_seem_are_refused() -> None:
    for wrong in (torch.zeros(8).double(), torch.zeros(8)[::2], torch.zeros(1).expand(8)):
        with pytest.raises(TypeError, match="float32 on the CPU without gaps"):
            span(wrong)
    with pytest.raises(ValueError, match="sizes of one batch"):
        _native.draw_categorical((0, 0), span(torch.zeros(4)), (0, 4))


NOT_FINITE = (float("nan"), float("inf"), -float("inf"))


def assert_same_kinds(found: Tensor, expected: Tensor, what: str) -> None:
    """What is no number is so in both, and what is infinite too."""
    for kind in (torch.isnan, torch.isposinf, torch.isneginf):
        assert torch.equal(kind(found), kind(expected)), f"{what}: {kind.__name__}"


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


def spoil(weight: Tensor, place: int, value: float) -> None:
    """One number of a weight, counted in the order of its axes."""
    with torch.no_grad():
        weight[torch.unravel_index(torch.tensor(place), weight.shape)] = value


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


@pytest.mark.parametrize("value", NOT_FINITE)
@pytest.mark.parametrize("relu", [True, False])
def test_dense_layers_keep_what_is_no_number(relu: bool, value: float) -> None:
    layer = nn.Linear(32, 21)
    spoil(layer.weight, 70, value)
    rows = torch.randn(9, 32, generator=torch.Generator().manual_seed(0)).clamp(min=0)
    rows[4, 5] = value
    outs = []
    for own in (True, False):
        layer.zero_grad()
        given = rows.clone().requires_grad_()
        if own:
            (out,) = dense([layer], given, relu=relu)
        else:
            out = layer(given).relu() if relu else layer(given)
        out.square().sum().backward()
        assert given.grad is not None and layer.weight.grad is not None
        assert layer.bias.grad is not None
        outs.append([out.detach(), given.grad, layer.weight.grad, layer.bias.grad])
    for found, expected in zip(*outs, strict=True):
        assert_same_kinds(found, expected, "rows or gradients")


def test_pictures_that_are_recalled_or_only_looked_at_keep_what_is_no_number() -> None:
    native, plain = pair("nature")
    observations = drawn("nature", 6)
    for network in (native, plain):
        spoil(next(network.parameters()), 11, float("nan"))
    cache = networks.ActivationCache(native, 6)
    rollout(native, cache, list(observations.chunk(3)))
    with cache.reading():
        found = gradients(native, observations)
    for mine, theirs in zip(found, gradients(plain, observations), strict=True):
        assert_same_kinds(mine, theirs, "gradients")
    cache.start_rollout()
    with cache.writing(), torch.no_grad():
        native(observations[:3])
        native(observations[:3])
        assert_same_kinds(native(observations).logits, plain(observations).logits, "logits")


def rollout(network: nn.Module, cache: networks.ActivationCache, steps: list[Tensor]) -> None:
    cache.start_rollout()
    with cache.writing(), torch.inference_mode():
        for observations in steps:
            network(observations)


def test_recalled_activations_give_the_bits_of_a_second_forward_pass() -> None:
    native, _ = pair("nature")
    observations = torch.cat((pictures("nature", 5), drawn("nature", 7)))
    expected = gradients(native, observations)
    cache = networks.ActivationCache(native, 12)
    for _ in range(2):  # a second rollout starts anew
        rollout(native, cache, list(observations.chunk(3)))
        with cache.reading():
            found = gradients(native, observations)
        assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))


def test_what_is_recalled_is_not_computed() -> None:
    native, _ = pair("nature")
    cache = networks.ActivationCache(native, 4)
    rollout(native, cache, [pictures("nature", 4)])
    with cache.reading():
        other = native(torch.zeros_like(pictures("nature", 4)))
    assert torch.equal(other.logits, native(pictures("nature", 4)).logits)


def test_pictures_that_are_not_kept_are_helped_and_leave_no_trace() -> None:
    native, _ = pair("nature")
    observations, beyond = drawn("nature", 12), drawn("nature", 5).flip(0)
    expected = gradients(native, observations)
    cache = networks.ActivationCache(native, 12)
    cache.start_rollout()
    with cache.writing(), torch.inference_mode():
        for some in observations.chunk(3):
            native(some)
        peeked = native(beyond).logits
    with torch.no_grad():
        assert torch.equal(peeked, native(beyond).logits)
    with cache.reading():
        found = gradients(native, observations)
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))


def test_weights_that_move_during_a_rollout_act_at_once() -> None:
    native, _ = pair("nips")
    observations = drawn("nips", 6)
    cache = networks.ActivationCache(native, 12)
    cache.start_rollout()
    with cache.writing(), torch.inference_mode():
        native(observations)
        with torch.inference_mode(False), torch.no_grad():
            next(native.parameters()).mul_(1.5)
        found = native(observations).logits
    with torch.no_grad():
        assert torch.equal(found, native(observations).logits)


@pytest.mark.parametrize("case", ["a weight moved", "rows are missing", "more rows than room"])
def test_nothing_is_recalled_when(case: str) -> None:
    native, _ = pair("nips")
    observations = pictures("nips", 6)
    cache = networks.ActivationCache(native, 4 if case == "more rows than room" else 6)
    kept = observations[:4] if case == "rows are missing" else observations
    rollout(native, cache, list(kept.chunk(2)))
    if case == "a weight moved":
        with torch.no_grad():
            next(native.parameters()).mul_(1.5)
    expected = gradients(native, observations)
    with cache.reading():
        found = gradients(native, observations)
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))
