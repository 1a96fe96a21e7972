"""`bench learners`: rates from rows, and a whole run of it in small."""

from __future__ import annotations

import pytest

from scanline.processes import granted_core_ids
from scanline_lab.benchmarks import learners
from scanline_lab.benchmarks.learners import LearnersBench, Scaling
from scanline_lab.benchmarks.work import WorkError


def row(seconds: float, agent_steps: int, ups: float) -> dict[str, float]:
    return {
        "training_seconds": seconds,
        "agent_steps": agent_steps,
        "perf/updates_per_second": ups,
    }


def test_rates_leave_the_warm_up_out() -> None:
    rows = [row(1.0, 100, 50.0), row(2.0, 300, 7.0), row(4.0, 900, 2.0), row(5.0, 1_500, 8.0)]
    assert learners.rates_of(rows, 1.5) == {"agent_sps": 400.0, "ups": 4.0}
    with pytest.raises(WorkError, match="time it longer"):
        learners.rates_of(rows, 4.5)


def test_weak_scaling_gives_each_learner_what_one_has() -> None:
    ppo, dqn = LearnersBench(recipe="accelerated-ppo"), LearnersBench(recipe="accelerated-dqn")
    assert learners.settings_of(ppo, Scaling(4, "weak")) == {
        "num_envs": 32,
        "rollout_samples": 8_192,
    }
    assert learners.settings_of(ppo, Scaling(4, "strong")) == {
        "num_envs": 8,
        "rollout_samples": 2_048,
    }
    assert learners.settings_of(dqn, Scaling(2, "weak")) == {"num_envs": 64, "batch_size": 1_024}


def test_learners_apart_have_the_work_that_each_has_together() -> None:
    bench = LearnersBench(recipe="accelerated-dqn")
    halves = learners.settings_of(bench, Scaling(2, "strong", exchange=False))
    wholes = learners.settings_of(bench, Scaling(2, "weak", exchange=False))
    assert halves == {"num_envs": 16, "batch_size": 256}
    assert wholes == {"num_envs": 32, "batch_size": 512}


needs_two_cores = pytest.mark.skipif(
    len(granted_core_ids()) < 2, reason="two learners need two cores"
)


@needs_two_cores
@pytest.mark.parametrize("case", [Scaling(2, "strong", exchange=False), Scaling(2, "weak")])
def test_two_learners_are_measured_apart_and_together(case: Scaling) -> None:
    bench = LearnersBench(
        recipe="paac",
        game="scanline/Catch-v0",
        seconds=0.6,
        warm_up_seconds=0.2,
        settings={"network": "mlp"},
    )
    found = learners.measure(bench, case)
    assert found["agent_sps"] > 0 and found["ups"] > 0


@needs_two_cores
def test_several_learners_stand_beside_one_and_beside_learners_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def measured(bench: LearnersBench, case: Scaling) -> dict[str, float]:
        rate = 100.0 * case.learners * (0.8 if case.exchange and case.learners > 1 else 1.0)
        return {"agent_sps": rate, "ups": rate / 10}

    monkeypatch.setattr(learners, "measure", measured)
    bench = LearnersBench(recipe="paac", game="scanline/Catch-v0", repeats=2)
    rows = learners.run(bench, say=lambda sentence: None)
    assert [(r["learners"], r["scaling"], r["exchange"], r["num_envs"]) for r in rows] == [
        (1, "one", True, 32),
        (2, "strong", False, 16),
        (2, "strong", True, 32),
        (2, "weak", False, 32),
        (2, "weak", True, 64),
    ]
    assert [r["efficiency"] for r in rows] == [1.0, 1.0, 0.8, 1.0, 0.8]
    assert [r.get("of_independent") for r in rows] == [None, None, 0.8, None, 0.8]


def test_more_learners_than_cores_are_refused() -> None:
    with pytest.raises(ValueError, match="each learner gets a core of its own"):
        learners.run(LearnersBench(learners=(2, 10_000)))
