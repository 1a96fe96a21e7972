"""Random numbers by counter: known answers, independence, blocks. Actions drawn with them."""

from __future__ import annotations

import numpy as np
import torch

from scanline import random


def test_philox_gives_the_published_known_answers() -> None:
    zeros = random.philox((0, 0), np.zeros(4, np.uint32))
    assert [hex(word) for word in zeros] == ["0x6627e8d5", "0xe169c58d", "0xbc57ac4c", "0x9b00dbd8"]
    ones = random.philox((0xFFFFFFFF, 0xFFFFFFFF), np.full(4, 0xFFFFFFFF, np.uint32))
    assert [hex(word) for word in ones] == ["0x408f276d", "0x41c83b0e", "0xa20bc7c6", "0x6d5451fd"]


def test_a_number_depends_on_its_counter_alone() -> None:
    many = random.uniforms(3, "act", np.arange(50)[None, :], np.arange(20)[:, None])
    alone = random.uniforms(3, "act", 7, 11)
    assert np.array_equal(many[11, 7], alone)


def test_seeds_purposes_and_counters_give_different_numbers() -> None:
    base = random.uniforms(0, "act", 1, 2)
    for other in ((1, "act", 1, 2), (0, "noops", 1, 2), (0, "act", 2, 1), (0, "act", 1, 2 + 2**32)):
        assert not np.array_equal(base, random.uniforms(*other))


def test_numbers_are_uniform_below_one() -> None:
    drawn = random.uniforms(0, "act", np.arange(50_000), 0)
    assert drawn.min() >= 0.0
    assert drawn.max() < 1.0
    histogram, _ = np.histogram(drawn, bins=20, range=(0, 1))
    expected = drawn.size / 20
    chi_square = float(((histogram - expected) ** 2 / expected).sum())
    assert chi_square < 43.8  # 19 degrees of freedom, one in a thousand; the seed is fixed


def test_a_block_of_a_stream_equals_single_draws() -> None:
    ids = np.array([4, 9, 2])
    stream = random.EnvStream(5, "act", ids)
    for step in (0, 127, 128, 3, 1000):
        single = random.uniforms(5, "act", ids, step)[:, :2]
        assert torch.equal(stream.at(step), torch.from_numpy(single))


def test_generators_are_keyed_by_purpose_and_place() -> None:
    first = torch.rand(4, generator=random.generator(0, "minibatches", 1))
    again = torch.rand(4, generator=random.generator(0, "minibatches", 1))
    other = torch.rand(4, generator=random.generator(0, "minibatches", 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def drawn_in_whole_arrays(logits: torch.Tensor, uniforms: torch.Tensor) -> torch.Tensor:
    """Doubles are left to PyTorch's operations."""
    return random.categorical(logits.double(), uniforms.double())


def test_native_draws_are_those_of_whole_arrays() -> None:
    generator = torch.Generator().manual_seed(0)
    logits = 3 * torch.randn((20_000, 6), generator=generator)
    uniforms = torch.rand((20_000, 2), generator=generator)
    found = random.categorical(logits, uniforms)
    assert found.dtype == torch.int64
    assert torch.equal(found, drawn_in_whole_arrays(logits, uniforms))


def test_the_first_uniform_of_a_row_decides_and_its_ends_are_actions() -> None:
    logits = torch.tensor([[0.0, 0.0]]).log_softmax(-1).expand(4, 2).contiguous()
    uniforms = torch.tensor([[0.0, 0.9], [0.49, 0.9], [0.5, 0.1], [1 - 2**-24, 0.0]])
    for draw in (random.categorical, drawn_in_whole_arrays):
        assert draw(logits, uniforms).tolist() == [0, 0, 1, 1]


def test_actions_that_cannot_be_are_not_drawn() -> None:
    logits = torch.tensor([[-torch.inf, 1000.0, -torch.inf]])
    for uniform in (0.0, 0.5, 1 - 2**-24):
        assert random.categorical(logits, torch.tensor([[uniform, 0.0]])).tolist() == [1]


def test_the_best_action_needs_no_chance() -> None:
    logits = torch.tensor([[0.0, 2.0, 1.0]])
    uniforms = torch.tensor([[0.0, 0.0]])
    assert random.choose_actions(logits, uniforms, random.GREEDY).tolist() == [1]
    assert random.choose_actions(logits, uniforms, random.SAMPLED).tolist() == [0]


def test_more_draws_leave_the_first_ones_as_they_are() -> None:
    ids = np.array([4, 9, 2])
    stream = random.EnvStream(5, "act", ids)
    two, many = stream.at(130), stream.at(130, 11)
    assert many.shape == (3, 11) and torch.equal(many[:, :2], two)
    assert torch.equal(stream.at(130), two), "after a longer draw"
    assert len(torch.unique(many)) == many.numel(), "further draws are not the first ones again"


def test_normals_are_finite_and_have_mean_0_and_deviation_1() -> None:
    drawn = random.normals(random.draws(0, "act", np.arange(20_000), 0, 4))
    assert abs(float(drawn.mean())) < 0.02 and abs(float(drawn.std()) - 1.0) < 0.02
    ends = random.normals(torch.tensor([0.0, 1.0 - 2.0**-24]))
    assert torch.isfinite(ends).all()
