"""Draws: shares of actions, ends of the scale, the native form against whole arrays."""

from __future__ import annotations

import torch

from scanline import draws


def drawn_in_whole_arrays(logits: torch.Tensor, uniforms: torch.Tensor) -> torch.Tensor:
    """Doubles are left to PyTorch's operations."""
    return draws.categorical(logits.double(), uniforms.double())


def test_native_draws_are_those_of_whole_arrays() -> None:
    random = torch.Generator().manual_seed(0)
    logits = 3 * torch.randn((20_000, 6), generator=random)
    uniforms = torch.rand((20_000, 2), generator=random)
    found = draws.categorical(logits, uniforms)
    assert found.dtype == torch.int64
    assert torch.equal(found, drawn_in_whole_arrays(logits, uniforms))


def test_the_first_uniform_of_a_row_decides_and_its_ends_are_actions() -> None:
    logits = torch.tensor([[0.0, 0.0]]).log_softmax(-1).expand(4, 2).contiguous()
    uniforms = torch.tensor([[0.0, 0.9], [0.49, 0.9], [0.5, 0.1], [1 - 2**-24, 0.0]])
    for draw in (draws.categorical, drawn_in_whole_arrays):
        assert draw(logits, uniforms).tolist() == [0, 0, 1, 1]


def test_actions_that_cannot_be_are_not_drawn() -> None:
    logits = torch.tensor([[-torch.inf, 1000.0, -torch.inf]])
    for uniform in (0.0, 0.5, 1 - 2**-24):
        assert draws.categorical(logits, torch.tensor([[uniform, 0.0]])).tolist() == [1]


def test_the_best_action_needs_no_chance() -> None:
    logits = torch.tensor([[0.0, 2.0, 1.0]])
    uniforms = torch.tensor([[0.0, 0.0]])
    assert draws.action(logits, uniforms, draws.GREEDY).tolist() == [1]
    assert draws.action(logits, uniforms, draws.SAMPLED).tolist() == [0]
