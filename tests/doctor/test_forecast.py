"""Forecasts from short runs of the toy game: rates are measured once and kept."""

from __future__ import annotations

from typing import Any

import pytest

from scanline import training
from scanline.doctor import forecast, kept_rates, probes
from scanline.doctor.forecast import duration
from scanline.engines import TOY
from scanline.files import cache_folder

SMALL = {"network": "mlp", "num_workers": 0, "live": False, "torch_threads": 1}


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probes, "WARM_UP_SECONDS", 0.02)
    monkeypatch.setattr(probes, "SECONDS", 0.05)


def plan(recipe: str, **changes: Any) -> training.Plan:
    return training.make_plan(recipe, TOY, **SMALL | changes)


@pytest.mark.parametrize("recipe", ["paac", "ppo", "vtrace", "dqn", "ga3c", "fast-dqn", "impala"])
def test_every_kind_of_recipe_has_a_forecast(recipe: str) -> None:
    lines = forecast(plan(recipe), lambda sentence: None).lines()
    assert "agent steps/s" in lines[1] and lines[3].startswith("Memory: ")


def test_rates_are_kept_for_other_lengths_and_for_sizes_between() -> None:
    said: list[str] = []
    for changes in ({}, {"agent_steps": 7_000}, {"num_envs": 64}, {"num_envs": 256}):
        forecast(
            plan("a2c", num_envs=32, **changes)
            if "num_envs" not in changes
            else plan("a2c", **changes),
            said.append,
        )
    assert [line.split(":")[1] for line in said] == [" 2 short runs ...", " 1 short runs ..."]


def test_damaged_and_old_rates_are_measured_again(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    path = cache_folder() / "rates.json"
    forecast(plan("a2c", num_envs=4), said.append)
    path.write_text("[1, 2")
    forecast(plan("a2c", num_envs=4), said.append)
    path.write_text(path.read_text().replace('"measured_at": ', '"measured_at": -'))
    forecast(plan("a2c", num_envs=4), said.append)
    assert len(said) == 3


def test_a_learner_of_several_is_measured_with_its_share() -> None:
    work = probes.work_of(plan("ppo", learners=2))
    assert (work.num_envs, work.num_learners, work.batch_agent_steps) == (4, 2, 128)


def test_probes_take_turns_and_begin_soon() -> None:
    short = probes.in_turns(plan("ga3c"), 8)
    assert "turns" in short.recipe.pace.gives and short.recipe.sampling.num_envs == 8
    replay = probes.in_turns(plan("dqn"), 1).recipe.store
    assert replay.learning_starts_agent_steps == 2_000  # type: ignore[attr-defined]


def test_other_settings_have_other_rates() -> None:
    same = kept_rates.key_of(plan("a2c"))
    assert same == kept_rates.key_of(plan("a2c", seed=3, agent_steps=5, num_envs=4))
    assert same != kept_rates.key_of(plan("a2c", kernels="torch"))


def test_durations_are_in_a_persons_unit() -> None:
    assert [duration(s) for s in (90, 600, 7_200, 2e6)] == [
        *("90 seconds", "10.0 minutes", "2.0 hours", "23.1 days"),
    ]
