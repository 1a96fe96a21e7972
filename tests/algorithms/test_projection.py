"""The categorical projection against the formula of Bellemare 2017, atom by atom."""

from __future__ import annotations

import hypothesis.strategies as st
import torch
from hypothesis import given, settings
from torch.testing import assert_close

from scanline.algorithms.projection import project, support


def by_definition(
    probabilities: torch.Tensor, reward: float, discount: float, v_min: float, v_max: float
) -> list[float]:
    """Equation 7: sum over j of clip(1 - |clip(r + discount z_j) - z_i| / spacing, 0, 1) p_j."""
    num = len(probabilities)
    spacing = (v_max - v_min) / (num - 1)
    projected = []
    for i in range(num):
        mass = 0.0
        for j in range(num):
            moved = min(max(reward + discount * (v_min + j * spacing), v_min), v_max)
            share = 1 - abs(moved - (v_min + i * spacing)) / spacing
            mass += min(max(share, 0.0), 1.0) * float(probabilities[j])
        projected.append(mass)
    return projected


@given(
    st.integers(0, 10**6),
    st.integers(2, 51),
    st.sampled_from([(-10.0, 10.0), (0.0, 1.0), (-3.0, 7.5)]),
)
@settings(max_examples=60, deadline=None)
def test_projection_equals_its_definition(
    seed: int, num_atoms: int, ends: tuple[float, float]
) -> None:
    random = torch.Generator().manual_seed(seed)
    logits = torch.randn((5, num_atoms), generator=random, dtype=torch.float64)
    probabilities = torch.softmax(logits * 3, dim=-1)
    reward = torch.randn(5, generator=random, dtype=torch.float64) * 8
    # Exact atoms, both clipped ends and a terminal step are the edges of the formula.
    reward[0], reward[1] = 0.0, 100.0
    discount = torch.tensor([1.0, 0.9, 0.0, 0.99**3, 0.5], dtype=torch.float64)
    projected = project(probabilities, reward, discount, *ends)
    for row in range(5):
        expected = by_definition(
            probabilities[row], float(reward[row]), float(discount[row]), *ends
        )
        assert_close(projected[row], torch.tensor(expected, dtype=torch.float64))
    assert_close(projected.sum(-1), torch.ones(5, dtype=torch.float64))


def test_no_shift_changes_nothing() -> None:
    probabilities = torch.softmax(torch.randn(3, 51), dim=-1)
    same = project(probabilities, torch.zeros(3), torch.ones(3), -10.0, 10.0)
    assert_close(same, probabilities, atol=2e-6, rtol=0)  # places are float32 numbers up to 50


def test_the_support_ends_where_it_should() -> None:
    atoms = support(-10.0, 10.0, torch.zeros(51))
    assert atoms[0] == -10
    assert atoms[-1] == 10
    assert_close(atoms.diff(), torch.full((50,), 0.4))
