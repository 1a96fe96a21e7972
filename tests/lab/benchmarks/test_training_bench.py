"""`bench training`: contenders do the same work, and its table fits a terminal."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from scanline import recipes
from scanline_lab.benchmarks import comparisons, own, rows, training
from scanline_lab.benchmarks.work import Work

ROW = {
    "recipe": "accelerated-categorical-dqn",
    "peer": "sb3-vector",
    "num_envs": 128,
    "batch_size": 2048,
    "agent_sps": 12345.6,
    "agent_sps_spread": 0.1234,
    "ups": 1234.5,
    "limit_sps": 23456.7,
    "times_peer": 12.34,
}


def test_the_table_is_never_cut_at_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    training.show([ROW, {**ROW, "peer": None}])
    lines = capsys.readouterr().out.strip().splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[2].split() == [
        *("accelerated-categorical-dqn", "sb3-vector", "128", "2048"),
        *("12,346", "12%", "1,234", "23,457", "12.3"),
    ]


def test_value_recipes_get_a_replay_that_peers_can_hold_and_blocks_that_come_out_even() -> None:
    assert training.settings_of("a2c", {}) == {}
    assert training.settings_of("dqn", {}) == training.REPLAY_SETTINGS
    for num_envs in (2, 8, 16, 64):
        changes = {"num_envs": num_envs}
        found = training.settings_of("fast-dqn", changes)
        recipe = recipes.find("fast-dqn").replace(**changes, **found)
        assert recipe.pace.target_agent_steps % (num_envs * 50) == 0


def test_asynchronous_recipes_are_measured_once_more_with_the_work_of_others() -> None:
    bench = training.TrainingBench(recipes=("ga3c", "a3c-agents", "paac"), uneven_seconds=0.002)
    works = training.contenders(bench)
    assert [(work.recipe, work.like) for work in works] == [
        *(("ga3c", None), ("a3c-agents", None), ("paac", None)),
        *(("ga3c", "paac"), ("a3c-agents", "ga3c")),
    ]
    assert all(work.uneven_seconds == 0.002 for work in works)
    like_paac, paac = (recipes.find(w.recipe).replace(**w.settings) for w in (works[3], works[2]))
    assert comparisons.batch_size(like_paac) == comparisons.batch_size(paac) == 160
    assert (like_paac.network, like_paac.protocol) == (paac.network, paac.protocol)
    assert like_paac.sampling.num_envs == paac.sampling.num_envs
    assert like_paac.sampling.envs_per_agent == 1
    even = training.contenders(dataclasses.replace(bench, uneven_seconds=0.0))
    assert even[3].settings["envs_per_agent"] == 8
    assert (like_paac.pace.num_predictors, like_paac.pace.num_trainers) == (2, 2)
    assert works[4].settings == {"network": "ga3c"}
    on_ale = training.contenders(dataclasses.replace(bench, engine="ale"))
    assert "protocol" not in on_ale[3].settings


def test_networks_are_measured_by_every_recipe_and_peers_have_their_own() -> None:
    networks = ("ga3c", "ga3c-large-4")
    bench = training.TrainingBench(recipes=("ga3c", "a3c-agents"), networks=networks)
    found = [(w.recipe, w.settings["network"], w.like) for w in training.contenders(bench)]
    assert found == [(recipe, n, None) for n in networks for recipe in ("ga3c", "a3c-agents")]
    for more in ({"networks": networks}, {"uneven_seconds": 0.1}):
        with pytest.raises(ValueError, match="of their own"):
            training.TrainingBench(peers=("sb3",), **more)
    with pytest.raises(ValueError, match="'rlpyt' is no peer of this bench; use sb3"):
        training.TrainingBench(peers=("rlpyt",))


def row(recipe: str, sps: float, network: str, batch: int, **more: Any) -> dict[str, Any]:
    figures = {"agent_sps": sps, "agent_sps_spread": 0.0, "ups": 1.0, "limit_sps": sps}
    found = {"recipe": recipe, "peer": None, "network": network, "batch_size": batch, **figures}
    return {**found, "num_envs": 32, "times_peer": None, "settings": {}, **more}


def test_factors_compare_equal_work_and_are_printed_with_their_sign(
    capsys: pytest.CaptureFixture[str],
) -> None:
    note = {
        **{"agents": 32, "predictors": 2, "trainers": 2, "controller": []},
        **{"prediction_batch": {"1": 1, "4": 3}, "policy_lag": {"0": 10, "7": 30}},
    }
    rows = [
        row("ga3c", 900.0, "ga3c", 40, note=note, uneven_seconds=0.002),
        row("paac", 1000.0, "nips", 160),
        row("a3c-agents", 300.0, "nips", 5),
        row("ga3c", 850.0, "nips", 160, like="paac"),
        row("a3c-agents", 600.0, "ga3c", 5, like="ga3c", note={"learners": 2, "policy_lag": {}}),
    ]
    for each in rows:
        each["factors"] = comparisons.factors(each, rows)
    assert rows[0]["factors"] == {"a3c-agents": 1.5}
    assert rows[3]["factors"] == {"paac": 0.85, "a3c-agents": 2.833}
    assert not any(rows[place]["factors"] for place in (1, 2, 4))
    training.show(rows)
    shown = capsys.readouterr().out
    assert "ga3c like paac, network nips, batch 160: 0.85 times paac (slower)" in shown
    assert "ga3c, network ga3c, batch 40: 1.50 times a3c-agents (faster)" in shown
    assert "agents 32, predictors 2, trainers 2; environments per inference: mean 3.2" in shown
    assert "lag in updates: mean 5.2, median 7, 95% 7, most 7" in shown
    assert "SIMULATED" in shown


def test_every_contender_shares_the_settings() -> None:
    bench = training.TrainingBench(recipes=("dqn",), peers=("sb3",), num_envs=2)
    works = training.contenders(bench)
    assert [work.peer for work in works] == [None, "sb3", "sb3-vector"]
    assert all(work.settings == works[0].settings for work in works)
    assert works[0].settings["num_envs"] == 2


def test_a_limit_is_the_best_of_all_repeats_and_a_rate_the_one_in_the_middle() -> None:
    rates = ((10.0, 13.0), (14.0, 11.0), (11.0, 12.0))
    repeats = [{"agent_sps": rate, "limit_sps": limit} for rate, limit in rates]
    row = rows.summary(repeats, bounds=("limit_sps",))
    assert (row["agent_sps"], row["limit_sps"], row["repeats"]) == (11.0, 13.0, 3)
    assert row["limit_sps_spread"] == round(2 / 13, 4)
    work = Work(recipe="a2c", game="pong", engine="native", seconds=1.0)
    assert training._row(work, repeats)["limit_sps"] == 13.0


def test_a_stretch_is_long_enough_for_every_learner_to_tell_of_a_turn() -> None:
    assert own.turn_agent_steps(recipes.find("accelerated-appo")) == 8 * 2048
    assert own.turn_agent_steps(recipes.find("accelerated-a3c")) == 3 * 80
    assert (
        own.turn_agent_steps(recipes.find("ga3c")) == own.turn_agent_steps(recipes.find("a2c")) == 0
    )


def test_run_and_limit_take_turns_of_which_nothing_is_left_for_the_other() -> None:
    alone, queued, several = (
        own.limit_of(recipes.find(name), 10.0) for name in ("a2c", "ga3c", "accelerated-appo")
    )
    assert (alone.turn.seconds, alone.settle.agent_steps, alone.settle.seconds) == (2.0, 0, 0.0)
    assert (queued.turn.seconds, queued.settle.agent_steps) == (10.0, 2 * 100 * 5)
    assert several.turn.agent_steps == several.settle.agent_steps == 8 * 2048
    assert several.settle.seconds > 0


@pytest.mark.parametrize("recipe", ["a2c", "ppo", "dqn", "fast-dqn", "ga3c"])
def test_our_own_work_is_timed_with_its_limit(recipe: str) -> None:
    small = {"network": "nips"}
    if recipe in ("dqn", "fast-dqn"):
        small |= {**training.settings_of(recipe, {}), "learning_starts_agent_steps": 100}
    if recipe == "fast-dqn":
        small |= {"target_agent_steps": 160, "rollout_agent_steps": 5}
    work = Work(
        recipe=recipe,
        game="pong",
        engine="native",
        seconds=0.3,
        warm_up_seconds=0.0,
        torch_threads=1,
        settings=small,
    )
    figures = own.run(work)
    assert figures["raw_fps"] == pytest.approx(4 * figures["agent_sps"])
    assert figures["limit_sps"] > 0 and figures["ups"] > 0


@pytest.mark.parametrize(
    ("recipe", "kind", "updates_per_count"),
    [("a2c", "A2C", 1), ("ppo", "PPO", 4), ("dqn", "DQN", 1)],
)
def test_sb3_is_given_the_recipes_work(recipe: str, kind: str, updates_per_count: int) -> None:
    pytest.importorskip("stable_baselines3")
    pytest.importorskip("ale_py")
    from scanline_lab.benchmarks.peers import sb3

    changes = training.settings_of(recipe, {})
    row = recipes.find(recipe).replace(**changes)
    envs = sb3.VectorAdapter("pong", row.sampling.num_envs)
    try:
        model, first, per_count = sb3.matched(row, envs)
        assert (type(model).__name__, per_count) == (kind, updates_per_count)
        if kind == "DQN":
            assert (model.batch_size, model.buffer_size, first) == (32, 20_000, 2_000)
            assert (model.train_freq.frequency, model.gradient_steps) == (4, 1)
            assert model.policy.optimizer.defaults["centered"]
        if kind == "PPO":
            assert (model.n_steps, model.batch_size, model.n_epochs) == (128, 256, 4)
        extractor = model.q_net if kind == "DQN" else model.policy
        size = sum(p.numel() for p in extractor.features_extractor.parameters())
        assert size == 1_684_128  # the layers of `nature`, their 512 units included
    finally:
        envs.close()


def test_a_recipe_that_sb3_does_not_have_is_refused() -> None:
    pytest.importorskip("stable_baselines3")
    from scanline_lab.benchmarks.peers import sb3

    with pytest.raises(ValueError, match="sb3 has no Vtrace"):
        sb3.matched(recipes.find("cule-vtrace"), None)
