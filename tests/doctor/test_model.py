"""The model behind forecasts, beside cases computed by hand."""

from __future__ import annotations

import pytest

from scanline.doctor.model import Work, predicted
from scanline.doctor.rates import Curve, Rates

RATES = Rates(
    environment=Curve(((8.0, 0.001), (32.0, 0.004))),
    acting=Curve(((8.0, 0.002), (16.0, 0.003), (32.0, 0.005))),
    learning=Curve(((40.0, 0.004), (160.0, 0.010))),
    other=Curve(((40.0, 0.0005), (160.0, 0.002))),
)
WORK = Work(num_envs=32, rollout_agent_steps=5, updates=1.0, batch_agent_steps=160)


def test_parts_that_take_turns_add_up() -> None:
    # 5 steps of 4 ms and 5 decisions of 5 ms, one update of 10 ms, 2 ms besides: 57 ms.
    found = predicted(RATES, WORK)
    assert found.agent_steps_per_second == pytest.approx(160 / 0.057)
    assert found.seconds == pytest.approx(
        {"environment": 0.020, "acting": 0.025, "learning": 0.010, "other": 0.002}
    )
    assert found.limit == "acting"


def test_several_updates_of_a_part_of_the_rollout() -> None:
    # Four epochs of four minibatches of 40 steps: 16 updates of 4 ms.
    work = Work(num_envs=32, rollout_agent_steps=5, updates=16.0, batch_agent_steps=40)
    rate = predicted(RATES, work).agent_steps_per_second
    assert rate == pytest.approx(160 / (0.020 + 0.025 + 0.064 + 0.002))


def test_two_groups_hide_the_shorter_part_on_a_device_and_not_on_shared_cores() -> None:
    # 10 decisions of 3 ms beside 5 steps of 4 ms.
    on_host = Work(**{**vars(WORK), "num_groups": 2})
    on_device = Work(**{**vars(WORK), "num_groups": 2, "shares_cores": False})
    host, there = (predicted(RATES, w).agent_steps_per_second for w in (on_host, on_device))
    assert host == pytest.approx(160 / (0.020 + 0.030 + 0.010 + 0.002))
    assert there == pytest.approx(160 / (0.030 + 0.010 + 0.002))


def test_threads_side_by_side_share_the_cores() -> None:
    # 4 network threads: 20 decisions of 8 environments at 2 ms, 4 updates of 40 steps at 4 ms, each
    # on one of two cores: 28 ms of both; environments keep both busy for 20 ms.
    work = Work(
        **{**vars(WORK), "updates": 4.0, "batch_agent_steps": 40, "side_by_side": 4},
    )
    on_host = Work(**{**vars(work), "num_cores": 2})
    seconds = 0.020 + (0.040 + 0.016) / 2 + 0.002 / 2
    assert predicted(RATES, on_host).agent_steps_per_second == pytest.approx(160 / seconds)
    on_device = Work(**{**vars(work), "shares_cores": False})
    assert predicted(RATES, on_device).agent_steps_per_second == pytest.approx(160 / 0.056)


def test_learners_beside_each_other_multiply() -> None:
    pair = Work(**{**vars(WORK), "num_learners": 2})
    one = predicted(RATES, WORK).agent_steps_per_second
    assert predicted(RATES, pair).agent_steps_per_second == pytest.approx(2 * one)


@pytest.mark.parametrize(
    ("size", "seconds"), [(1, 0.002), (8, 0.002), (12, 0.0025), (24, 0.004), (64, 0.009)]
)
def test_a_curve_is_straight_between_points_and_goes_on(size: float, seconds: float) -> None:
    assert RATES.acting.at(size) == pytest.approx(seconds)


def test_points_join_and_survive_a_file() -> None:
    other = Rates(**{name: Curve(((64.0, 0.1),)) for name in vars(RATES)})
    joined = RATES.joined(other)
    assert joined.acting.points[-1] == (64.0, 0.1) and len(joined.acting.points) == 4
    assert joined.acting.covers(64) and not RATES.acting.covers(64)
    assert Rates.of(joined.record()) == joined


def test_of_two_points_of_one_size_the_shorter_counts() -> None:
    slow, quick = Curve(((8.0, 0.3),)), Curve(((8.0, 0.2), (16.0, 0.4)))
    assert slow.joined(quick) == quick.joined(slow) == quick
