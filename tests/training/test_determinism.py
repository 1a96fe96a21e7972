"""Equal seeds give equal bytes; a run that is killed and resumed ends like one that was not."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

import scanline
from scanline.runs.checkpoint import load_chosen, load_latest

CATCH = "scanline/Catch-v0"
SETTINGS = {
    "network": "mlp",
    "num_envs": 8,
    "agent_steps": 1_600,
    "log_every_agent_steps": 400,
    "save_every_agent_steps": 400,
    "torch_threads": 1,
    "live": False,
    "tensorboard": False,
    "num_workers": 0,
}


REPLAY = {
    "capacity_agent_steps": 1_000,
    "batch_size": 16,
    "training_intensity": 0.5,
    "learning_starts_agent_steps": 200,
    "target_agent_steps": 240,
    "epsilon_agent_steps": 2_000,
    "decorrelation_agent_steps": 10,
}
"""A replay that wraps between two checkpoints."""
BLOCKS = REPLAY | {
    "target_agent_steps": 400,
    "rollout_agent_steps": 5,
    "training_intensity": 0.8,
}
PLAIN = {"anneal": "none"}
STEADY = {"anneal": "none", "clip_anneal": "none"}
"""Annealing ends with the run: a shorter run would be another one."""
MEMORY = {"network": "mlp-lstm"}
SEQUENCES = {"sequence_agent_steps": 8, "burn_in_agent_steps": 4}
LONG = {"agent_steps": 4_000}
"""Of runs that are killed: they must not end before."""
RECIPES = {
    "paac": LONG,
    "paac-repo": PLAIN,
    "a2c": PLAIN,
    "paac that holds ended environments": {"reset_mode": "hold"},
    "accelerated-dqn with reserves": REPLAY | {"reset_mode": "reserve", "num_reserves": 2},
    "ppo": {"rollout_agent_steps": 16, **STEADY},
    "accelerated-a2c": {"decorrelation_agent_steps": 20},
    "accelerated-ppo": {"rollout_samples": 128, "decorrelation_agent_steps": 20, **STEADY},
    "cule-a2c": {},
    "cule-vtrace": {"num_blocks": 4, "window_agent_steps": 8},
    "impala": {"rollout_agent_steps": 5, "batch_trajectories": 16, **PLAIN},
    "cule-ppo": {"rollout_agent_steps": 16, **STEADY},
    "ppo-lstm": {"rollout_agent_steps": 16, **MEMORY, **STEADY},
    "ppo-lstm that holds ended environments": {
        **{"rollout_agent_steps": 16, "reset_mode": "hold", "decorrelation_agent_steps": 10},
        **MEMORY,
        **STEADY,
    },
    "paac with a memory": MEMORY,
    "cule-vtrace with a memory": {"num_blocks": 4, "window_agent_steps": 8, **MEMORY},
    "dqn": REPLAY,
    "accelerated-rainbow with a memory": REPLAY | MEMORY | SEQUENCES,
    "accelerated-dqn": REPLAY,
    "accelerated-categorical-dqn": REPLAY,
    "accelerated-rainbow": REPLAY | LONG,
    "cule-dqn": REPLAY,
    "fast-dqn": BLOCKS,
    "fast-dqn with threads": BLOCKS | LONG | {"synchronised_execution": False},
    "fast-dqn-repo": BLOCKS,
}


def train(recipe: str, out: Path, **changes: object) -> Path:
    settings = {**SETTINGS, **RECIPES[recipe], **changes}
    scanline.train(recipe.split()[0], CATCH, out=out, say=lambda sentence: None, **settings)
    return out


def weights(run: Path) -> dict[str, torch.Tensor]:
    state = load_chosen(run / "checkpoints", None).state  # rows may be another host's
    network: dict[str, torch.Tensor] = state["parameters"]["network"]
    return network


def assert_equal_runs(first: Path, second: Path) -> None:
    mine, other = weights(first), weights(second)
    assert mine.keys() == other.keys()
    assert all(torch.equal(mine[name], other[name]) for name in mine)
    for name in ("progress.jsonl", "progress.csv"):
        assert (first / name).read_bytes() == (second / name).read_bytes()
        assert (first / name).stat().st_size > 0


@pytest.fixture(scope="module", params=list(RECIPES))
def recipe(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def whole(recipe: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train(recipe, tmp_path_factory.mktemp("runs") / "whole")


@pytest.mark.parametrize("recipe", ["paac", "dqn", "fast-dqn with threads"], indirect=True)
def test_equal_seeds_give_equal_bytes(recipe: str, whole: Path, tmp_path: Path) -> None:
    assert_equal_runs(whole, train(recipe, tmp_path / "again"))


def test_nothing_lags_in_a_synchronous_recipe(recipe: str, whole: Path) -> None:
    rows = [json.loads(line) for line in (whole / "progress.jsonl").read_text().splitlines()]
    lags = [row["perf/policy_lag"] for row in rows]
    assert lags
    if recipe.startswith("fast-dqn"):  # plays with the target while it learns
        assert max(lags) > 0
    else:
        assert set(lags) == {0.0}


@pytest.mark.parametrize("recipe", ["paac", "dqn"], indirect=True)
def test_another_seed_gives_another_run(recipe: str, whole: Path, tmp_path: Path) -> None:
    other = train(recipe, tmp_path / "other", seed=1)
    assert any(not torch.equal(weights(whole)[n], w) for n, w in weights(other).items())


def test_a_run_stopped_by_its_limit_and_resumed_equals_an_uninterrupted_one(
    recipe: str, whole: Path, tmp_path: Path
) -> None:
    """So equal seeds give equal bytes, too: it is another run of the same seed."""
    parted = train(recipe, tmp_path / "parted", agent_steps=920)
    train(recipe, parted, resume=True)
    assert_equal_runs(whole, parted)
    assert load_latest(parted / "checkpoints").state["inexact"] == []


@pytest.mark.parametrize("recipe", ["paac", "dqn"], indirect=True)
def test_the_number_of_workers_changes_nothing(recipe: str, whole: Path, tmp_path: Path) -> None:
    for workers in (1, 2):
        out = train(recipe, tmp_path / f"workers-{workers}", num_workers=workers)
        assert_equal_runs(whole, out)


PROGRAM = """
import sys, scanline
scanline.train({recipe!r}, {game!r}, out=sys.argv[1], **{settings!r})
"""


def train_and_kill_once(recipe: str, game: str, settings: dict[str, object], out: Path) -> None:
    """A run that SIGKILL ends soon after its first checkpoint, resumed to its end."""
    code = PROGRAM.format(recipe=recipe, game=game, settings=settings)
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(out)], stdout=subprocess.DEVNULL, env=os.environ
    )
    deadline = time.monotonic() + 120
    while not list(out.glob("checkpoints/*-agent-steps-*")) and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    assert process.wait(60) == -signal.SIGKILL, "it ended before it was killed"
    scanline.train(recipe, game, out=out, resume=True, say=lambda sentence: None, **settings)


@pytest.mark.parametrize(
    ("recipe", "num_workers"),
    [("paac", 0), ("paac", 2), ("accelerated-rainbow", 2), ("fast-dqn with threads", 0)],
    indirect=["recipe"],
)
def test_a_run_killed_at_any_moment_and_resumed_equals_an_uninterrupted_one(
    recipe: str, whole: Path, tmp_path: Path, num_workers: int
) -> None:
    settings = {**SETTINGS, **RECIPES[recipe], "num_workers": num_workers}
    train_and_kill_once(recipe.split()[0], CATCH, settings, tmp_path / "killed")
    assert_equal_runs(whole, tmp_path / "killed")


PONG = {
    "num_envs": 4,
    "agent_steps": 400,
    "log_every_agent_steps": 100,
    "torch_threads": 1,
    "live": False,
    "tensorboard": False,
}
NATIVE_PONG = {**PONG, "engine": "native", "agent_steps": 1_200, "save_every_agent_steps": 100}


@pytest.mark.parametrize("engine", ["native", "ale"])
def test_the_number_of_engine_threads_changes_nothing(tmp_path: Path, engine: str) -> None:
    runs = []
    for num_threads in (1, 2):
        out = tmp_path / f"threads-{num_threads}"
        threads = {"engine": engine, "num_threads": num_threads}
        scanline.train("paac", "pong", out=out, say=lambda sentence: None, **PONG, **threads)
        runs.append(out)
    assert_equal_runs(*runs)


@pytest.fixture(scope="module")
def whole_pong(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("pong") / "whole"
    scanline.train("paac", "pong", out=out, say=lambda sentence: None, **NATIVE_PONG)
    return out


def test_a_run_on_the_own_emulator_goes_on_as_if_never_stopped(
    whole_pong: Path, tmp_path: Path
) -> None:
    quiet = {"say": lambda sentence: None, **NATIVE_PONG}
    parted = tmp_path / "parted"
    scanline.train("paac", "pong", out=parted, **{**quiet, "agent_steps": 180})
    scanline.train("paac", "pong", out=parted, resume=True, **quiet)
    assert_equal_runs(whole_pong, parted)


def test_a_run_on_the_own_emulator_that_was_killed_goes_on_as_if_it_had_not_been(
    whole_pong: Path, tmp_path: Path
) -> None:
    train_and_kill_once("paac", "pong", NATIVE_PONG, tmp_path / "killed")
    assert_equal_runs(whole_pong, tmp_path / "killed")
