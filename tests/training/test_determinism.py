"""Equal seeds give equal bytes; a run that is killed and resumed ends like one that was not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

import scanline
from scanline.runners.checkpoint import load_latest

CATCH = "scanline/Catch-v0"
SETTINGS = {
    "network": "mlp",
    "num_envs": 8,
    "agent_steps": 4_000,
    "log_every_agent_steps": 400,
    "save_every_agent_steps": 400,
    "torch_threads": 1,
    "live": False,
    "tensorboard": False,
    "num_workers": 0,
}


REPLAY = {
    "capacity_agent_steps": 1_500,
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
STEADY = {"anneal": "none", "clip_anneal": "none"}
"""Annealing ends with the run: a shorter run would be another one."""
RECIPES = {
    "paac": {},
    "paac that holds ended environments": {"reset_mode": "hold"},
    "accelerated-dqn with reserves": REPLAY | {"reset_mode": "reserve", "num_reserves": 2},
    "ppo": {"rollout_agent_steps": 16, **STEADY},
    "accelerated-a2c": {"decorrelation_agent_steps": 20},
    "accelerated-ppo": {"rollout_samples": 128, "decorrelation_agent_steps": 20, **STEADY},
    "cule-a2c": {},
    "cule-vtrace": {"num_blocks": 4, "window_agent_steps": 8},
    "cule-ppo": {"rollout_agent_steps": 16, **STEADY},
    "dqn": REPLAY,
    "accelerated-dqn": REPLAY,
    "accelerated-categorical-dqn": REPLAY,
    "accelerated-rainbow": REPLAY,
    "cule-dqn": REPLAY,
    "fast-dqn": BLOCKS,
    "fast-dqn with threads": BLOCKS | {"synchronised_execution": False},
    "fast-dqn-repo": BLOCKS,
}


def train(recipe: str, out: Path, **changes: object) -> Path:
    settings = {**SETTINGS, **RECIPES[recipe], **changes}
    scanline.train(recipe.split()[0], CATCH, out=out, say=lambda sentence: None, **settings)
    return out


def weights(run: Path) -> dict[str, torch.Tensor]:
    network: dict[str, torch.Tensor] = load_latest(run / "checkpoints").state["parameters"][
        "network"
    ]
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


def test_equal_seeds_give_equal_bytes(recipe: str, whole: Path, tmp_path: Path) -> None:
    assert_equal_runs(whole, train(recipe, tmp_path / "again"))


@pytest.mark.parametrize("recipe", ["paac", "dqn"], indirect=True)
def test_another_seed_gives_another_run(recipe: str, whole: Path, tmp_path: Path) -> None:
    other = train(recipe, tmp_path / "other", seed=1)
    assert any(not torch.equal(weights(whole)[n], w) for n, w in weights(other).items())


def test_a_run_stopped_by_its_limit_and_resumed_equals_an_uninterrupted_one(
    recipe: str, whole: Path, tmp_path: Path
) -> None:
    parted = train(recipe, tmp_path / "parted", agent_steps=1_320)
    train(recipe, parted, resume=True)
    assert_equal_runs(whole, parted)


@pytest.mark.parametrize("recipe", ["paac", "dqn"], indirect=True)
def test_the_number_of_workers_changes_nothing(recipe: str, whole: Path, tmp_path: Path) -> None:
    for workers in (1, 2):
        out = train(recipe, tmp_path / f"workers-{workers}", num_workers=workers)
        assert_equal_runs(whole, out)


PROGRAM = """
import sys, scanline
resume = sys.argv[2] == "resume"
scanline.train({recipe!r}, {game!r}, out=sys.argv[1], resume=resume, **{settings!r})
"""


def start(recipe: str, out: Path, how: str, num_workers: int) -> subprocess.Popen[bytes]:
    settings = {**SETTINGS, **RECIPES[recipe], "num_workers": num_workers}
    code = PROGRAM.format(recipe=recipe.split()[0], game=CATCH, settings=settings)
    return subprocess.Popen(
        [sys.executable, "-c", code, str(out), how], stdout=subprocess.DEVNULL, env=os.environ
    )


@pytest.mark.parametrize("num_workers", [0, 2])
@pytest.mark.parametrize(
    "recipe", ["paac", "accelerated-rainbow", "fast-dqn with threads"], indirect=True
)
def test_a_run_killed_at_any_moment_and_resumed_equals_an_uninterrupted_one(
    recipe: str, whole: Path, tmp_path: Path, num_workers: int
) -> None:
    out = tmp_path / "killed"
    process = start(recipe, out, "new", num_workers)
    deadline = time.monotonic() + 120
    while not list(out.glob("checkpoints/*-agent-steps-*")) and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait(60)
    assert start(recipe, out, "resume", num_workers).wait(120) == 0
    assert_equal_runs(whole, out)


PONG = {
    "num_envs": 4,
    "agent_steps": 400,
    "log_every_agent_steps": 100,
    "torch_threads": 1,
    "live": False,
    "tensorboard": False,
}


@pytest.mark.parametrize("engine", ["native", "ale"])
def test_the_number_of_engine_threads_changes_nothing(tmp_path: Path, engine: str) -> None:
    runs = []
    for num_threads in (1, 2):
        out = tmp_path / f"threads-{num_threads}"
        threads = {"engine": engine, "num_threads": num_threads}
        scanline.train("paac", "pong", out=out, say=lambda sentence: None, **PONG, **threads)
        runs.append(out)
    assert_equal_runs(*runs)


def test_a_run_on_the_own_emulator_goes_on_as_if_never_stopped(tmp_path: Path) -> None:
    quiet = {"say": lambda sentence: None, "engine": "native", **PONG}
    whole, parted = tmp_path / "whole", tmp_path / "parted"
    scanline.train("paac", "pong", out=whole, **quiet)
    scanline.train("paac", "pong", out=parted, **{**quiet, "agent_steps": 180})
    scanline.train("paac", "pong", out=parted, resume=True, **quiet)
    assert_equal_runs(whole, parted)
