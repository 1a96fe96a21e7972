"""The model of scale: the slowest resource sets the rate."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scanline_lab.scale import ScaleRates, limits, most_actors, predict, publishing

RATES = ScaleRates(
    actor_steps_per_second=1_000.0,
    rollout_steps=320,
    bytes_per_step=300.0,
    weight_bytes=2_700_000.0,
    batch_steps=640,
    learner_batch_seconds=0.064,
    bandwidth_bytes_per_second=125e6,
    actors_per_node=4,
)


def test_actors_add_up_until_another_resource_is_full() -> None:
    assert predict(RATES, 1).steps_per_second == pytest.approx(1_000.0)
    assert predict(RATES, 1).limit == "actors"
    slow = predict(RATES, 100)
    assert slow.limit == "learner"
    assert slow.steps_per_second == pytest.approx(640 / 0.064)
    most = most_actors(RATES)
    assert predict(RATES, most.num_actors - 1).limit == "actors" != most.limit
    assert most.num_actors == 10


def test_a_slow_network_carries_weights_or_rollouts() -> None:
    slow = replace(RATES, bandwidth_bytes_per_second=2.5e6)
    assert predict(slow, 8).limit == "down"
    assert predict(slow, 8).steps_per_second == pytest.approx(2.5e6 / (2.7e6 / 320))
    # A node of four actors fetches each version once: fewer copies than rollouts.
    assert limits(slow, 1)["down"] == pytest.approx(2.5e6 / (2.7e6 / 640))
    # 640 steps take 0.64 s, and then new weights 1.08 s, of which one rollout hides 0.32.
    assert limits(slow, 1)["actors"] == pytest.approx(640 / (0.64 + 1.08 - 0.32))
    assert predict(publishing(slow, 100), 10).limit == "up"
    assert predict(publishing(slow, 100), 10).steps_per_second == pytest.approx(2.5e6 / 300)


def test_calls_ahead_hide_latency() -> None:
    far = replace(RATES, latency_seconds=0.32)
    assert limits(far, 1)["actors"] == pytest.approx(1_000.0)
    assert limits(replace(far, rollouts_ahead=1), 1)["actors"] < 510.0
    assert limits(replace(far, latency_seconds=0.64), 1)["actors"] == pytest.approx(500.0)
