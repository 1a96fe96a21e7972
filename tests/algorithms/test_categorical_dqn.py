"""Categorical DQN's loss and projection (Bellemare 2017) against loops over single items."""

from __future__ import annotations

import math

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings
from torch.testing import assert_close

from algorithms.q_networks import in_double, random_batch, views
from scanline.algorithms import CategoricalDqn, EpsilonGreedy
from scanline.algorithms.categorical_dqn import project, support
from scanline.interfaces import Algorithm
from scanline.records import ActContext, Batch, QDistribution, Views
from scanline.settings import check_unique, leaves

NUM_ATOMS = 11


def projected_by_definition(
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


def item_by_definition(
    own: CategoricalDqn, nets: Views, batch: Batch, item: int
) -> tuple[float, float]:
    """(cross-entropy, divergence) of one item, without its weight."""
    assert nets.target is not None
    assert batch.next_observations is not None
    atoms = [own.v_min + j * (own.v_max - own.v_min) / (NUM_ATOMS - 1) for j in range(NUM_ATOMS)]

    def probabilities(network: torch.nn.Module, observation: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            return torch.softmax(network(observation[None]).logits[0].double(), dim=-1)

    following = probabilities(nets.target, batch.next_observations[item])
    chooser = probabilities(nets.live, batch.next_observations[item]) if own.double else following
    means = [sum(z * float(p) for z, p in zip(atoms, row, strict=True)) for row in chooser]
    best = following[means.index(max(means))]
    reward, discount = (float(batch.columns[name][item]) for name in ("reward", "discount"))
    goal = projected_by_definition(best, reward, discount, own.v_min, own.v_max)
    mine = probabilities(nets.live, batch.observations[item])[batch.actions[item]]
    cross = -sum(g * math.log(float(p)) for g, p in zip(goal, mine, strict=True))
    entropy = -sum(g * math.log(g) for g in goal if g > 0)
    return cross, cross - entropy


@given(
    st.integers(0, 10**6), st.booleans(), st.booleans(), st.sampled_from(["cross-entropy", "kl"])
)
@settings(max_examples=15, deadline=None)
def test_the_loss_equals_its_definition(
    seed: int, double: bool, with_weights: bool, form: str
) -> None:
    own = CategoricalDqn(v_min=-4.0, v_max=6.0, double=double, priority_form=form)  # type: ignore[arg-type]
    nets = views(seed, NUM_ATOMS)
    nets = Views(nets.live.double(), nets.target.double())  # type: ignore[union-attr]
    batch = in_double(random_batch(seed, with_weights=with_weights))
    result = own.loss(nets, batch)
    slow = [item_by_definition(own, nets, batch, item) for item in range(12)]
    weights = batch.weights.tolist() if batch.weights is not None else [1.0] * 12
    expected = sum(w * cross for w, (cross, _) in zip(weights, slow, strict=True)) / 12
    assert result.losses["all"].item() == pytest.approx(expected, rel=1e-9)
    assert result.priorities is not None
    chosen = [kl if form == "kl" else cross for cross, kl in slow]
    assert result.priorities.tolist() == pytest.approx(chosen, rel=1e-7, abs=1e-12)


def test_acting_takes_the_best_expected_return() -> None:
    own = CategoricalDqn(
        v_min=0.0, v_max=2.0, exploration=EpsilonGreedy(epsilon_start=0.0, epsilon_end=0.0)
    )
    # Action 0 surely gives 1; action 1 gives 0 or 2, mostly 2; action 2 mostly 0.
    probabilities = torch.tensor([[[0.0, 1.0, 0.0], [0.3, 0.0, 0.7], [0.7, 0.0, 0.3]]])
    acted = own.act(
        QDistribution((probabilities + 1e-9).log()),
        ActContext(views(0), torch.tensor([[0.0, 0.9]]), 0),
    )
    assert acted.actions.tolist() == [1]


def test_settings_name_the_head_and_stay_unique() -> None:
    assert isinstance(CategoricalDqn(), Algorithm)
    assert CategoricalDqn().head == "categorical"
    assert CategoricalDqn(dueling=True).head == "dueling-categorical"
    check_unique(CategoricalDqn())
    assert all(leaf.help for leaf in leaves(CategoricalDqn()))


@pytest.mark.parametrize("wrong", [{"v_min": 10.0}, {"priority_form": "td"}])
def test_settings_out_of_range_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        CategoricalDqn(**wrong)  # type: ignore[arg-type]


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
        expected = projected_by_definition(
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
