"""First weights: their ranges by rule, and that they depend on the seed alone."""

import math

import pytest
import torch
from torch import nn

from scanline.networks import build
from scanline.networks.layers import Layers, fan_in, fan_in_uniform
from scanline.networks.trunks import TRUNKS
from scanline.records import Spaces

SPACES = Spaces(frame_shape=(84, 84), frame_dtype="uint8", stack=4, num_actions=6)


def layers_of(name: str, head: str = "policy-value") -> dict[str, nn.Module]:
    """Every layer under its path; an output layer's path ends with its role."""
    frame = TRUNKS[name].frame or (10, 10)
    spaces = Spaces(frame_shape=frame, frame_dtype="uint8", stack=4, num_actions=6)
    network = build(name, spaces, head, seed=3).requires_grad_(False)
    return {
        key: each
        for key, each in network.named_modules()
        if isinstance(each, nn.Conv2d | nn.Linear)
    }


@pytest.mark.parametrize("name", ["nips", "ga3c", "ga3c-large-2", "nature-uniform"])
def test_fan_in_uniform_fills_its_range_for_weights_and_biases(name):
    for layer in layers_of(name).values():
        bound = 1 / math.sqrt(fan_in(layer.weight)) * (1 + 1e-6)  # single precision rounds it up
        assert float(layer.weight.abs().max()) <= bound
        assert float(layer.weight.abs().max()) > 0.95 * bound
        assert 0 < float(layer.bias.abs().max()) <= bound


def test_orthogonal_has_its_gain_per_role_and_zero_biases():
    for key, layer in layers_of("nature").items():
        gain = {"head.policy": 0.01, "head.value": 1.0}.get(key, math.sqrt(2))
        rows = layer.weight.reshape(len(layer.weight), -1).double()
        expected = gain**2 * torch.eye(len(rows), dtype=torch.float64)
        torch.testing.assert_close(rows @ rows.T, expected, rtol=0, atol=1e-5 * gain**2)
        assert not layer.bias.any()


def test_orthogonal_q_layer_has_gain_one():
    rows = layers_of("nature", "q")["head.q"].weight
    torch.testing.assert_close(rows @ rows.T, torch.eye(6), rtol=0, atol=1e-5)


def test_cule_multiplies_kaiming_by_the_gain_again_but_not_at_the_outputs():
    for key, layer in layers_of("cule").items():
        hidden = key not in ("head.policy", "head.value")
        deviation = math.sqrt(2 / fan_in(layer.weight)) * (math.sqrt(2) if hidden else 1.0)
        # 512 to 800,000 normal draws: their deviation is within 10 percent of the true one.
        assert float(layer.weight.std()) == pytest.approx(deviation, rel=0.1)
        assert not layer.bias.any()


def test_cule_s_dqn_has_kaiming_s_normal_weights_everywhere():
    for layer in layers_of("cule-dqn", "q").values():
        deviation = math.sqrt(2 / fan_in(layer.weight))
        assert float(layer.weight.std()) == pytest.approx(deviation, rel=0.1)
        assert not layer.bias.any()


@pytest.mark.parametrize("head", ["policy-value", "q"])
def test_accelerated_form_has_glorot_convolutions_and_rows_of_fixed_norm(head):
    for key, layer in layers_of("nature-104x80", head).items():
        if isinstance(layer, nn.Conv2d):
            area = layer.kernel_size[0] ** 2
            bound = math.sqrt(6 / (area * (layer.in_channels + layer.out_channels)))
            assert 0.95 * bound < float(layer.weight.abs().max()) <= bound
        else:
            norm = 0.01 if key in ("head.policy", "head.q") else 1.0
            expected = torch.full((layer.out_features,), norm)
            torch.testing.assert_close(layer.weight.norm(dim=1), expected)
        assert not layer.bias.any()


SOME = ["nips", "nature", "nature-104x80", "cule", "mlp", "pqn", "impala"]


def weights(name: str, seed: int, threads: int = 1) -> list[torch.Tensor]:
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        frame = TRUNKS[name].frame or (84, 84) if name != "mlp" else (10, 10)
        spaces = Spaces(frame_shape=frame, frame_dtype="uint8", stack=4, num_actions=6)
        return [each.detach() for each in build(name, spaces, "q", seed=seed).parameters()]
    finally:
        torch.set_num_threads(before)


def equal(one: list[torch.Tensor], other: list[torch.Tensor]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("name", SOME)
def test_weights_are_a_function_of_the_seed_and_not_of_threads(name):
    assert equal(weights(name, 5, threads=1), weights(name, 5, threads=2))
    assert not equal(weights(name, 5), weights(name, 6))


@pytest.mark.parametrize("name", SOME)
def test_building_neither_reads_nor_moves_the_global_generator(name):
    torch.manual_seed(0)
    before = torch.get_rng_state()
    first = weights(name, 5)
    assert torch.equal(before, torch.get_rng_state())
    torch.manual_seed(1)
    assert equal(first, weights(name, 5))


def test_building_restores_the_number_of_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        build("nips", SPACES, "q", seed=0)
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)


def test_layers_draw_in_the_order_of_their_construction():
    make = [Layers(fan_in_uniform, torch.Generator().manual_seed(0)) for _ in range(2)]
    first, second = make[0].dense(4, 3), make[0].dense(4, 3)
    assert not torch.equal(first.weight, second.weight)
    assert torch.equal(first.weight, make[1].dense(4, 3).weight)
