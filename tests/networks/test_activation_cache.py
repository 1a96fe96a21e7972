"""The activation cache: a hit has the bits of a second forward pass, anything else is a miss."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from networks.native_and_torch import (
    assert_same_kinds,
    drawn,
    gradients,
    images,
    pair,
    spoil,
)
from scanline import networks


def rollout(network: nn.Module, cache: networks.ActivationCache, steps: list[Tensor]) -> None:
    cache.start_rollout()
    with cache.writing(), torch.inference_mode():
        for observations in steps:
            network(observations)


def test_recalled_activations_give_the_bits_of_a_second_forward_pass() -> None:
    native, _ = pair("nature")
    observations = torch.cat((images("nature", 5), drawn("nature", 7)))
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
    rollout(native, cache, [images("nature", 4)])
    with cache.reading():
        other = native(torch.zeros_like(images("nature", 4)))
    assert torch.equal(other.logits, native(images("nature", 4)).logits)


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
    observations = images("nips", 6)
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
