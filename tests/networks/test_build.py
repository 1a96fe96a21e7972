"""The one door: names, refusals, and a network of the user's own."""

import pytest
import torch
from torch import nn

from scanline.networks import build, descriptions
from scanline.networks.trunks import TRUNKS
from scanline.records import Spaces


def spaces(*frame: int, dtype: str = "uint8", stack: int = 4) -> Spaces:
    return Spaces(frame_shape=frame, frame_dtype=dtype, stack=stack, num_actions=6)


def test_every_name_has_one_sentence():
    assert list(descriptions()) == list(TRUNKS)
    assert all(text.endswith(".") and text.count(". ") == 0 for text in descriptions().values())


@pytest.mark.parametrize(
    ("name", "given", "words"),
    [
        ("nature", spaces(104, 80), "84x84, but .* 104x80 .*; use 'nature-104x80'"),
        ("nips", spaces(104, 80), "84x84, but .* 104x80 .*; use 'nips-104x80'"),
        ("nature-104x80", spaces(84, 84), "104x80, but .* 84x84 .*; use 'nature'"),
        ("nature", spaces(4), "takes images, but .* vectors of 4 .*; use 'mlp'"),
        ("nature", spaces(10, 10), "84x84, but .* 10x10 .*; use 'mlp'"),
        ("nature-any", spaces(35, 60), "larger frames, but .* 35x60 .*; use 'mlp'"),
        ("mlp", spaces(84, 84), "16384 numbers .* 84x84 .*; use 'nips' or 'nature'"),
        ("nature", spaces(210, 160, 3), "84x84, but .* 210x160x3 .*; use 'nature-any'"),
        ("resnet", spaces(84, 84), "network 'resnet' is unknown; choose one of nips"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_name_that_does(name, given, words):
    with pytest.raises(ValueError, match=words):
        build(name, given, "q", seed=0)


def test_smallest_frame_of_nature_any_is_36():
    network = build("nature-any", spaces(36, 36), "q", seed=0)
    assert network(torch.zeros(1, 4, 36, 36, dtype=torch.uint8)).q.shape == (1, 6)


@pytest.mark.parametrize(
    ("observations", "words"),
    [
        (
            torch.zeros(2, 4, 84, 80, dtype=torch.uint8),
            r"\(2, 4, 84, 80\), but .* \[N, 4, 84, 84\]",
        ),
        (torch.zeros(4, 84, 84, dtype=torch.uint8), r"\(4, 84, 84\), but .* \[N, 4, 84, 84\]"),
        (
            torch.zeros(2, 4, 84, 84, dtype=torch.int64),
            "torch.int64, but networks take torch.uint8",
        ),
    ],
)
def test_wrong_observations_are_refused_by_shape_and_type(observations, words):
    network = build("nips", spaces(84, 84), "q", seed=0)
    with pytest.raises(ValueError, match=words):
        network(observations)


def own_network(given: Spaces) -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(given.stack * given.frame_shape[0], 2))


def test_an_own_network_is_seeded_and_leaves_the_global_generator_alone():
    before = torch.get_rng_state()
    one, same, other = (build(own_network, spaces(3), "q", seed=seed) for seed in (1, 1, 2))
    assert torch.equal(before, torch.get_rng_state())
    assert torch.equal(one[1].weight, same[1].weight)
    assert not torch.equal(one[1].weight, other[1].weight)


def test_an_own_function_must_give_a_module():
    with pytest.raises(ValueError, match=r"gave a int, but it must give a torch.nn.Module"):
        build(lambda given: 3, spaces(3), "q", seed=0)
