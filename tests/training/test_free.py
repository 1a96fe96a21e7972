"""Free-running recipes: on the native engine, and what a measurement of them notes."""

from __future__ import annotations

import pytest

from scanline import training
from scanline.engines.native import NativeEngine
from scanline.timing import Stretch, timed


def test_ga3c_plays_pong_on_the_native_engine_with_an_agent_per_environment() -> None:
    plan = training.make_plan(
        "ga3c", "pong", engine="native", num_envs=6, torch_threads=1, tensorboard=False, live=False
    )
    parts = training.prepared(plan, lambda part: None, say=lambda sentence: None)
    try:
        engine = parts.context.engine
        assert isinstance(engine, NativeEngine)
        assert (engine.settings.num_groups, engine.settings.group_size) == (6, 1)
    finally:
        parts.runtime.close()
    timing = timed(
        plan,
        warm_up=Stretch(agent_steps=50),
        measured=Stretch(agent_steps=600),
    )
    assert timing.agent_steps >= 600 and timing.updates >= 5
    note = timing.note
    assert (note["agents"], note["predictors"], note["trainers"]) == (6, 2, 2)
    served = sum(size * count for size, count in note["prediction_batch"].items())
    assert served == pytest.approx(timing.agent_steps, abs=40)  # some are under way at both ends
    assert max(note["prediction_batch"]) <= 6
    learned = sum(note["policy_lag"].values())
    assert learned == 40 * timing.updates
    assert min(note["policy_lag"]) >= 0 and sum(note["training_queue"].values()) > 0
