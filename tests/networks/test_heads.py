"""Heads: names and shapes of the outputs, the dueling sum, the gradient scale."""

import math

import pytest
import torch

from scanline.networks import HeadSettings, build
from scanline.records import PolicyValue, QDistribution, QValues, Spaces

SPACES = Spaces(frame_shape=(3,), frame_dtype="float32", stack=2, num_actions=5)
IMAGES = Spaces(frame_shape=(84, 84), frame_dtype="uint8", stack=4, num_actions=5)
OBSERVATIONS = torch.randn(7, 2, 3, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(
    ("kind", "record", "shapes"),
    [
        ("policy-value", PolicyValue, [(7, 5), (7,)]),
        ("q", QValues, [(7, 5)]),
        ("dueling", QValues, [(7, 5)]),
        ("categorical", QDistribution, [(7, 5, 51)]),
        ("dueling-categorical", QDistribution, [(7, 5, 51)]),
    ],
)
def test_outputs_are_the_named_tuples_of_the_records(kind, record, shapes):
    outputs = build("mlp", SPACES, kind, seed=0)(OBSERVATIONS)
    assert type(outputs) is record
    assert [tuple(each.shape) for each in outputs] == shapes


def test_num_atoms_is_a_setting():
    head = HeadSettings(kind="categorical", num_atoms=11)
    assert build("mlp", SPACES, head, seed=0)(OBSERVATIONS).logits.shape == (7, 5, 11)


@pytest.mark.parametrize("kind", ["dueling", "dueling-categorical"])
def test_dueling_adds_the_value_to_advantages_without_their_mean(kind):
    network = build("mlp", SPACES, kind, seed=0)
    head, features = network.head, OBSERVATIONS.flatten(1)
    advantage = head.advantage(head.advantage_stream(features)).view(7, 5, -1)
    value = head.value(head.value_stream(features))
    (outputs,) = network(OBSERVATIONS)
    for n in range(7):
        for action in range(5):
            expected = value[n] + advantage[n, action] - sum(advantage[n]) / 5
            torch.testing.assert_close(outputs[n, action].reshape(-1), expected)


def gradients(scale: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Of the first convolution and of the value layer."""
    head = HeadSettings(kind="dueling", conv_gradient_scale=scale)
    network = build("nips", IMAGES, head, seed=0)
    generator = torch.Generator().manual_seed(1)
    shape = (2, 4, 84, 84)
    observations = torch.randint(0, 256, shape, dtype=torch.uint8, generator=generator)
    network(observations).q.square().sum().backward()
    return network.trunk.convs[0].weight.grad, network.head.value.weight.grad


def test_gradient_scale_reaches_the_convolutions_only():
    plain, scaled = gradients(1.0), gradients(1 / math.sqrt(2))
    torch.testing.assert_close(scaled[0], plain[0] / math.sqrt(2))
    assert torch.equal(scaled[1], plain[1])
    assert plain[0].abs().max() > 0


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"kind": "quantile"}, "head 'quantile' is unknown; choose one of policy-value"),
        ({"kind": "categorical", "num_atoms": 1}, "num_atoms=1 is no distribution"),
        ({"kind": "dueling", "conv_gradient_scale": 0.0}, "conv_gradient_scale=0.0"),
        ({"kind": "q", "conv_gradient_scale": 0.5}, "read by dueling heads only"),
    ],
)
def test_impossible_heads_are_refused(wrong, words):
    with pytest.raises(ValueError, match=words):
        HeadSettings(**wrong)
