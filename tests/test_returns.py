"""Returns against slow versions written from their definitions, over random episodes."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings
from torch.testing import assert_close

from scanline import returns
from scanline.returns import Clips, Trajectory

DISCOUNT = 0.9


@st.composite
def trajectories(draw: st.DrawFn) -> tuple[Trajectory, torch.Tensor, torch.Tensor]:
    """A random rollout with its values and importance ratios."""
    num_steps, num_envs = draw(st.integers(1, 7)), draw(st.integers(1, 3))
    random = torch.Generator().manual_seed(draw(st.integers(0, 10**6)))

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=random, dtype=torch.float64)

    kind = torch.randint(0, 4, (num_steps, num_envs), generator=random)
    trajectory = Trajectory(
        reward=normal(num_steps, num_envs),
        terminal=kind == 0,
        truncated=kind == 1,
        final_value=normal(num_steps, num_envs),
        last_value=normal(num_envs),
    )
    ratio = torch.rand((num_steps, num_envs), generator=random, dtype=torch.float64) * 2
    return trajectory, normal(num_steps, num_envs), ratio


def bootstrap(trajectory: Trajectory, t: int, b: int, following: float) -> float:
    """What replaces the future after step t, by the definition of each end."""
    if trajectory.terminal[t, b]:
        return 0.0
    return float(trajectory.final_value[t, b]) if trajectory.truncated[t, b] else following


def ended(trajectory: Trajectory, t: int, b: int) -> bool:
    return bool(trajectory.terminal[t, b] or trajectory.truncated[t, b])


def n_step_by_definition(trajectory: Trajectory, t: int, b: int) -> float:
    """Sum of discounted rewards until the first end, then the bootstrap."""
    total, factor = 0.0, 1.0
    for k in range(t, trajectory.reward.shape[0]):
        total += factor * float(trajectory.reward[k, b])
        factor *= DISCOUNT
        if ended(trajectory, k, b):
            return total + factor * bootstrap(trajectory, k, b, 0.0)
    return total + factor * float(trajectory.last_value[b])


def next_value(trajectory: Trajectory, value: torch.Tensor, t: int, b: int) -> float:
    last = t + 1 == value.shape[0]
    following = float(trajectory.last_value[b]) if last else float(value[t + 1, b])
    return bootstrap(trajectory, t, b, following)


@given(trajectories())
@settings(max_examples=60, deadline=None)
def test_n_step_equals_its_definition(drawn: tuple[Trajectory, torch.Tensor, torch.Tensor]) -> None:
    trajectory, _, _ = drawn
    got = returns.n_step(trajectory, DISCOUNT)
    for t in range(got.shape[0]):
        for b in range(got.shape[1]):
            assert abs(float(got[t, b]) - n_step_by_definition(trajectory, t, b)) < 1e-9


@given(trajectories())
@settings(max_examples=60, deadline=None)
def test_n_step_in_one_native_call(drawn: tuple[Trajectory, torch.Tensor, torch.Tensor]) -> None:
    trajectory, _, _ = drawn
    single = Trajectory(
        *(each.float() if each.is_floating_point() else each for each in trajectory.arrays())
    )
    assert single.is_readable() and not trajectory.is_readable()
    expected = returns.n_step(trajectory, DISCOUNT).float()
    assert_close(returns.n_step(single, DISCOUNT), expected, rtol=0, atol=1e-5)


@given(trajectories(), st.floats(0, 1))
@settings(max_examples=60, deadline=None)
def test_gae_equals_the_sum_of_discounted_errors(
    drawn: tuple[Trajectory, torch.Tensor, torch.Tensor], trace: float
) -> None:
    trajectory, value, _ = drawn
    got = returns.gae(trajectory, value, DISCOUNT, trace)
    for t in range(got.shape[0]):
        for b in range(got.shape[1]):
            total, factor = 0.0, 1.0
            for k in range(t, got.shape[0]):
                future = DISCOUNT * next_value(trajectory, value, k, b)
                total += factor * (float(trajectory.reward[k, b]) + future - float(value[k, b]))
                factor *= DISCOUNT * trace
                if ended(trajectory, k, b):
                    break
            assert abs(float(got[t, b]) - total) < 1e-9


@given(trajectories())
@settings(max_examples=40, deadline=None)
def test_gae_with_full_traces_is_the_n_step_return_less_the_value(
    drawn: tuple[Trajectory, torch.Tensor, torch.Tensor],
) -> None:
    trajectory, value, _ = drawn
    assert_close(
        returns.gae(trajectory, value, DISCOUNT, 1.0) + value, returns.n_step(trajectory, DISCOUNT)
    )


@given(trajectories())
@settings(max_examples=60, deadline=None)
def test_vtrace_equals_its_sum_of_products(
    drawn: tuple[Trajectory, torch.Tensor, torch.Tensor],
) -> None:
    trajectory, value, ratio = drawn
    clips = Clips(rho=1.3, c=0.9)
    got = returns.vtrace(trajectory, value, ratio, DISCOUNT, clips)
    rho, trace = ratio.clamp(max=clips.rho), ratio.clamp(max=clips.c)
    for t in range(value.shape[0]):
        for b in range(value.shape[1]):
            total, factor = float(value[t, b]), 1.0
            for k in range(t, value.shape[0]):
                future = DISCOUNT * next_value(trajectory, value, k, b)
                delta = float(trajectory.reward[k, b]) + future - float(value[k, b])
                total += factor * float(rho[k, b]) * delta
                factor *= DISCOUNT * float(trace[k, b])
                if ended(trajectory, k, b):
                    break
            assert abs(float(got.value[t, b]) - total) < 1e-9
            target = next_value(trajectory, got.value, t, b)
            advantage = float(trajectory.reward[t, b]) + DISCOUNT * target - float(value[t, b])
            assert abs(float(got.advantage[t, b]) - float(rho[t, b]) * advantage) < 1e-9


@given(trajectories())
@settings(max_examples=40, deadline=None)
def test_vtrace_on_policy_is_the_n_step_return(
    drawn: tuple[Trajectory, torch.Tensor, torch.Tensor],
) -> None:
    trajectory, value, ratio = drawn
    got = returns.vtrace(trajectory, value, torch.ones_like(ratio), DISCOUNT, Clips())
    assert_close(got.value, returns.n_step(trajectory, DISCOUNT))


@pytest.mark.parametrize(
    ("value", "share"),
    [
        ([1.0, 2.0, 3.0, 6.0], 1.0),
        ([9.0, 10.0, 11.0, 14.0], 1.0),
        ([5.0, 5.0, 5.0, 5.0], 0.0),
        ([-1e3, 1e3, -1e3, 1e3], -1.0),
    ],
)
def test_explained_variance_is_the_share_that_values_explain(
    value: list[float], share: float
) -> None:
    target = torch.tensor([1.0, 2.0, 3.0, 6.0])
    explained = returns.explained_variance(torch.tensor(value, requires_grad=True), target)
    assert explained.item() == pytest.approx(share, abs=1e-6)
    assert not explained.requires_grad
    flat = returns.explained_variance(torch.tensor(value), torch.zeros(4))
    assert flat.item() == 0.0
