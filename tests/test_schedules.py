"""Schedules at their corners and between them."""

import pytest

from scanline.schedules import Constant, Linear, WarmUp


def test_constant_never_changes():
    assert [Constant(value=0.5)(steps) for steps in (0, 1, 10**12)] == [0.5] * 3


def test_linear_is_a_line_between_two_constants():
    epsilon = Linear(start=1.0, end=0.1, duration_agent_steps=100, begin_agent_steps=50)
    assert [epsilon(steps) for steps in (0, 50)] == [1.0, 1.0]
    assert epsilon(100) == pytest.approx(0.55)
    assert [epsilon(steps) for steps in (150, 151, 10**12)] == [0.1] * 3


def test_linear_may_rise():
    beta = Linear(start=0.4, end=1.0, duration_agent_steps=4)
    assert [beta(steps) for steps in range(5)] == pytest.approx([0.4, 0.55, 0.7, 0.85, 1.0])


def test_warm_up_multiplies_the_schedule_under_it():
    falling = Linear(start=1.0, end=0.0, duration_agent_steps=100)
    warm = WarmUp(schedule=falling, duration_agent_steps=10)
    assert warm(0) == 0.0
    assert warm(5) == pytest.approx(0.5 * 0.95)
    assert [warm(steps) for steps in (10, 60)] == [falling(10), falling(60)]


@pytest.mark.parametrize(
    "make",
    [
        lambda: Linear(start=1.0, end=0.0, duration_agent_steps=0),
        lambda: Linear(start=1.0, end=0.0, duration_agent_steps=5, begin_agent_steps=-1),
        lambda: WarmUp(schedule=Constant(value=1.0), duration_agent_steps=0),
    ],
)
def test_impossible_durations_are_refused(make):
    with pytest.raises(ValueError, match=r"_agent_steps=.*; use"):
        make()
