"""DQN's loss against loops over single items, and against Stable-Baselines3."""

from __future__ import annotations

from dataclasses import replace

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings
from torch.testing import assert_close

from algorithms.q_networks import QNet, in_double, random_batch, views
from scanline.algorithms import Dqn, EpsilonGreedy
from scanline.interfaces import Algorithm
from scanline.random import GREEDY, SAMPLED, Choice
from scanline.records import ActContext, Batch, QValues, Views
from scanline.settings import check_unique, leaves


def item_by_definition(own: Dqn, nets: Views, batch: Batch, item: int) -> tuple[float, float]:
    """(loss, absolute error) of one item, without its weight."""
    assert nets.target is not None
    assert batch.next_observations is not None
    with torch.no_grad():
        live = nets.live(batch.observations[item : item + 1]).q[0]
        following = batch.next_observations[item : item + 1]
        target = nets.target(following).q[0]
        chooser = nets.live(following).q[0] if own.double else target
    best = max(range(4), key=lambda action: float(chooser[action]))
    reward = float(batch.columns["reward"][item])
    goal = reward + float(batch.columns["discount"][item]) * float(target[best])
    error = abs(float(live[batch.actions[item]]) - goal)
    if own.loss_form == "huber" and error > own.huber_width:
        return own.huber_width * (error - 0.5 * own.huber_width), error
    return 0.5 * error**2, error


@given(
    st.integers(0, 10**6),
    st.booleans(),
    st.sampled_from(["squared", "huber"]),
    st.sampled_from(["mean", "sum"]),
    st.booleans(),
)
@settings(max_examples=50, deadline=None)
def test_the_loss_equals_its_definition(
    seed: int, double: bool, form: str, reduction: str, with_weights: bool
) -> None:
    own = Dqn(double=double, loss_form=form, reduction=reduction, huber_width=1.5)  # type: ignore[arg-type]
    nets, batch = views(seed), random_batch(seed, with_weights=with_weights)
    # In double precision: a float32 error near zero has few digits left to compare.
    nets, batch = Views(nets.live.double(), nets.target.double()), in_double(batch)  # type: ignore[union-attr]
    result = own.loss(nets, batch)
    slow = [item_by_definition(own, nets, batch, item) for item in range(12)]
    weights = batch.weights.tolist() if batch.weights is not None else [1.0] * 12
    total = sum(weight * loss for weight, (loss, _) in zip(weights, slow, strict=True))
    expected = total if reduction == "sum" else total / 12
    assert result.losses["all"].item() == pytest.approx(expected, rel=1e-9)
    assert result.priorities is not None
    assert result.priorities.tolist() == pytest.approx([error for _, error in slow], rel=1e-9)
    plain = sum(loss for loss, _ in slow) / 12
    assert result.metrics["losses/td_loss"].item() == pytest.approx(plain, rel=1e-9)


def test_gradients_reach_the_live_network_only() -> None:
    nets = views(3)
    Dqn(double=True).loss(nets, random_batch(3)).losses["all"].backward()  # type: ignore[no-untyped-call]
    assert all(each.grad is not None for each in nets.live.parameters())
    assert nets.target is not None
    assert all(each.grad is None for each in nets.target.parameters())


def test_double_and_plain_targets_differ_only_in_who_chooses() -> None:
    nets, batch = views(5), random_batch(5)
    same = Views(live=nets.live, target=nets.live)
    assert_close(Dqn(double=True).target(same, batch), Dqn().target(same, batch))
    assert not torch.allclose(Dqn(double=True).target(nets, batch), Dqn().target(nets, batch))


def context(agent_steps: int, choice: Choice, uniforms: torch.Tensor) -> ActContext:
    return ActContext(views(0), uniforms, agent_steps, choice)


def test_epsilon_falls_with_agent_steps_and_evaluation_has_its_own() -> None:
    own = Dqn(
        exploration=EpsilonGreedy(
            epsilon_start=1.0, epsilon_end=0.2, epsilon_agent_steps=100, evaluation_epsilon=0.05
        )
    )
    q = torch.tensor([[0.0, 1.0, 0.0, 0.0]] * 1000)
    first = (torch.arange(1000) / 1000)[:, None]
    uniforms = torch.cat([first, torch.full((1000, 1), 0.99)], dim=1)  # random means action 3
    for agent_steps, choice, chance in [
        (0, SAMPLED, 1.0),
        (50, SAMPLED, 0.6),
        (900, SAMPLED, 0.2),
        (0, own.evaluation_choice, 0.05),
        (0, GREEDY, 0.0),
    ]:
        actions = own.act(QValues(q), context(agent_steps, choice, uniforms)).actions
        assert (actions == 3).float().mean().item() == pytest.approx(chance, abs=0.002)
        assert set(actions.tolist()) <= {1, 3}


def test_settings_name_the_head_and_stay_unique() -> None:
    assert isinstance(Dqn(), Algorithm)
    assert Dqn().head == "q"
    assert Dqn(dueling=True).head == "dueling"
    check_unique(Dqn())
    assert all(leaf.help for leaf in leaves(Dqn()))


@pytest.mark.parametrize(
    "wrong", [{"loss_form": "cubic"}, {"reduction": "max"}, {"huber_width": 0.0}]
)
def test_settings_out_of_range_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Dqn(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "wrong", [{"epsilon_start": 1.5}, {"evaluation_epsilon": -0.1}, {"epsilon_agent_steps": 0}]
)
def test_exploration_out_of_range_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        EpsilonGreedy(**wrong)  # type: ignore[arg-type]


def test_what_is_missing_is_said() -> None:
    nets, batch = views(0), random_batch(0)
    with pytest.raises(ValueError, match="target network"):
        Dqn().loss(Views(live=nets.live), batch)
    with pytest.raises(ValueError, match="replay"):
        Dqn().loss(nets, replace(batch, next_observations=None))


def test_a_network_learns_the_values_of_a_two_state_chain() -> None:
    """Right pays 1 and ends, left pays 0 and stays: values 1 and 0.9, by any correct update."""
    live, target = QNet(1), QNet(2)
    optimiser = torch.optim.Adam(live.parameters(), 1e-2)
    state = torch.zeros(2, 1, 6)
    batch = replace(
        random_batch(0, 2, with_weights=False),
        observations=state,
        next_observations=state,
        actions=torch.tensor([0, 1]),
        columns={"reward": torch.tensor([0.0, 1.0]), "discount": torch.tensor([0.9, 0.0])},
    )
    own = Dqn(exploration=EpsilonGreedy())
    for update in range(300):
        if update % 20 == 0:
            target.load_state_dict(live.state_dict())
            with torch.no_grad():  # actions that never occur must not win the maximum
                target.layers[2].bias[2:] = -100.0
        optimiser.zero_grad()
        own.loss(Views(live=live, target=target), batch).losses["all"].backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    assert live(state[:1]).q[0, :2].tolist() == pytest.approx([0.9, 1.0], abs=0.02)
