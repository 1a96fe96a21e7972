"""A run ends at the limit it reaches first; intervals and saves are due when they should be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import scanline
from scanline.algorithms import Dqn
from scanline.parameters import LocalParameters, OptimiserSettings
from scanline.recipes import Recipe
from scanline.runners.synchronous import Alternate
from scanline.runs.limits import Every, Limits, SaveSchedule, SaveSettings
from scanline.stores import ReplaySettings

CATCH = "scanline/Catch-v0"


def reached(limits: Limits, **values: Any) -> str | None:
    stop = limits.reached(**{"agent_steps": 0, "seconds": 0.0, "score": None, **values})
    return stop and stop.kind


@pytest.mark.parametrize(
    ("limit", "value", "kind"),
    [
        ({"agent_steps": 10}, {"agent_steps": 9}, None),
        ({"agent_steps": 10}, {"agent_steps": 10}, "agent_steps"),
        ({"seconds": 5.0}, {"seconds": 4.9}, None),
        ({"seconds": 5.0}, {"seconds": 5.1}, "seconds"),
        ({"target_score": 18.0}, {"score": 17.9}, None),
        ({"target_score": -18.0}, {"score": None}, None),
        ({"target_score": -18.0}, {"score": -18.0}, "target_score"),
        ({}, {"agent_steps": 10**12, "seconds": 1e9, "score": 1e9}, None),
    ],
)
def test_limits(limit: dict[str, Any], value: dict[str, Any], kind: str | None) -> None:
    assert reached(Limits(**limit), **value) == kind


@pytest.mark.parametrize(("name", "value"), [("agent_steps", 0), ("seconds", float("nan"))])
def test_impossible_limits_are_refused_by_name(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"{name}={value} must be positive"):
        Limits(**{name: value})  # type: ignore[arg-type]


def test_a_machine_that_is_too_slow_is_named_after_the_first_minute() -> None:
    limits = Limits(agent_steps=1_200_000, seconds=1_200.0, stop_if_too_slow=True)
    assert reached(limits, agent_steps=10, seconds=59.0) is None
    assert reached(limits, agent_steps=60_000, seconds=60.0) is None
    stop = limits.reached(agent_steps=30_000, seconds=60.0, score=None)
    assert stop is not None and stop.kind == "too_slow"
    assert "500 agent steps/s" in stop.sentence and "40 minutes" in stop.sentence
    patient = Limits(agent_steps=1_200_000, seconds=1_200.0)
    assert reached(patient, agent_steps=10, seconds=60.0) is None
    with pytest.raises(ValueError, match="needs agent_steps and seconds"):
        Limits(agent_steps=10, stop_if_too_slow=True)


def test_the_first_limit_to_come_gives_the_remaining_time() -> None:
    now = {"agent_steps": 600, "seconds": 10.0}
    assert Limits(agent_steps=1_000).remaining_seconds(**now, steps_per_second=100) == 4.0
    assert Limits(agent_steps=1_000, seconds=12).remaining_seconds(**now, steps_per_second=9) == 2.0
    assert Limits(agent_steps=1_000).remaining_seconds(**now, steps_per_second=0) is None
    assert Limits(agent_steps=500).remaining_seconds(**now, steps_per_second=1) == 0.0
    assert Limits(target_score=1).remaining_seconds(**now, steps_per_second=100) is None


def test_the_options_that_go_on_are_beyond_what_is_done() -> None:
    limits = Limits(agent_steps=1_000, seconds=0.5)
    for done in (1_000, 1_999, 2_000, 70_001):
        (name, value) = limits.longer("agent_steps", agent_steps=done, seconds=0.1).split()
        assert name == "--agent-steps" and int(value) > done
    assert limits.longer("agent_steps", agent_steps=1_040, seconds=0.1) == "--agent-steps 2_000"
    assert limits.longer("seconds", agent_steps=10, seconds=0.6) == "--seconds 2"
    assert limits.longer("seconds", agent_steps=10, seconds=3.4) == "--seconds 6"
    assert limits.longer("signal", agent_steps=10, seconds=3.4) == ""


def test_a_save_is_due_by_steps_and_by_minutes() -> None:
    now = [0.0]
    settings = SaveSettings(save_every_agent_steps=100, save_every_minutes=1)
    schedule = SaveSchedule(settings, agent_steps=150, clock_seconds=lambda: now[0])
    assert not schedule.due(199)
    assert schedule.due(210)
    schedule.saved(210)
    assert not schedule.due(299)
    now[0] = 60.0
    assert schedule.due(211)
    schedule.saved(211)
    assert not schedule.due(212)


def test_a_save_is_never_due_where_both_are_off() -> None:
    never = SaveSettings(save_every_agent_steps=0, save_every_minutes=0)
    schedule = SaveSchedule(never, clock_seconds=lambda: 1e9)
    assert not schedule.due(10**12)
    with pytest.raises(ValueError, match="save_every_minutes=-1"):
        SaveSettings(save_every_minutes=-1)


@pytest.mark.parametrize("rollout", [1, 3, 7, 25])
def test_a_multiple_is_reached_once(rollout: int) -> None:
    counts = range(0, 100, rollout)
    times: list[int] = []
    for now in counts:
        Every(10, lambda at=now: times.append(at)).reached(now, now + rollout)
    assert times == [n for n in counts if any((n < k <= n + rollout) for k in range(10, 200, 10))]


def test_the_target_lags_by_its_period_and_the_updates_follow_the_intensity(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied: list[int] = []
    sync = LocalParameters.sync_target

    def watched(self: LocalParameters) -> None:
        sync(self)
        copied.append(self.target_version)

    monkeypatch.setattr(LocalParameters, "sync_target", watched)
    scanline.train(
        "dqn",
        CATCH,
        out=tmp_path / "run",
        network="mlp",
        agent_steps=200,
        capacity_agent_steps=100,
        batch_size=8,
        training_intensity=2.0,
        learning_starts_agent_steps=40,
        target_agent_steps=50,
        num_workers=0,
        torch_threads=1,
        live=False,
        tensorboard=False,
        say=lambda sentence: None,
    )
    # One update per 4 steps after the first 40; rollouts of 4 reach 50 at 52, 150 at 152.
    assert copied == [3, 15, 28, 40]


@pytest.mark.parametrize(
    ("choices", "words"),
    [
        ({"store": ReplaySettings()}, "needs a target network"),
        ({"pace": Alternate(target_agent_steps=10)}, "store=ReplaySettings"),
    ],
)
def test_a_value_learner_without_replay_or_target_is_refused(
    choices: dict[str, Any], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        Recipe(name="x", summary="", algorithm=Dqn(), optimiser=OptimiserSettings(), **choices)


def test_a_negative_period_is_refused() -> None:
    with pytest.raises(ValueError, match="target_agent_steps=-1"):
        Alternate(target_agent_steps=-1)
