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


def train(out: Path, recipe: str = "paac", **changes: object) -> Path:
    scanline.train(recipe, CATCH, out=out, say=lambda sentence: None, **{**SETTINGS, **changes})
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


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train(tmp_path_factory.mktemp("runs") / "whole")


def test_equal_seeds_give_equal_bytes_whatever_the_number_of_workers(
    whole: Path, tmp_path: Path
) -> None:
    for workers in (0, 1, 2):
        assert_equal_runs(whole, train(tmp_path / f"workers-{workers}", num_workers=workers))


def test_another_seed_gives_another_run(whole: Path, tmp_path: Path) -> None:
    other = train(tmp_path / "other", seed=1)
    assert any(not torch.equal(weights(whole)[n], w) for n, w in weights(other).items())


def test_a_run_stopped_by_its_limit_and_resumed_equals_an_uninterrupted_one(
    whole: Path, tmp_path: Path
) -> None:
    parted = train(tmp_path / "parted", agent_steps=1_320)
    train(parted, resume=True)
    assert_equal_runs(whole, parted)


@pytest.mark.parametrize(
    ("recipe", "changes"),
    [
        ("ppo", {"rollout_agent_steps": 16}),
        ("accelerated-a2c", {"decorrelation_agent_steps": 20}),
        ("accelerated-ppo", {"rollout_samples": 128, "decorrelation_agent_steps": 20}),
        ("cule-a2c", {}),
        ("cule-vtrace", {"num_blocks": 4, "window_agent_steps": 8}),
        ("cule-ppo", {"rollout_agent_steps": 16}),
    ],
)
def test_every_recipe_gives_equal_bytes_and_goes_on_as_if_never_stopped(
    tmp_path: Path, recipe: str, changes: dict[str, object]
) -> None:
    settings = {"agent_steps": 1_600, "anneal": "none", "clip_anneal": "none", **changes}
    if "ppo" not in recipe:
        del settings["clip_anneal"]  # annealing ends with the run, so a shorter run is another one
    first = train(tmp_path / "first", recipe, **settings)
    assert_equal_runs(first, train(tmp_path / "second", recipe, **settings, num_workers=1))
    parted = train(tmp_path / "parted", recipe, **{**settings, "agent_steps": 800})
    train(parted, recipe, resume=True, **settings)
    assert_equal_runs(first, parted)


PROGRAM = """
import sys, scanline
scanline.train("paac", {game!r}, out=sys.argv[1], resume=sys.argv[2] == "resume", **{settings!r})
"""


def start(out: Path, how: str, num_workers: int) -> subprocess.Popen[bytes]:
    settings = {**SETTINGS, "num_workers": num_workers}
    code = PROGRAM.format(game=CATCH, settings=settings)
    return subprocess.Popen(
        [sys.executable, "-c", code, str(out), how], stdout=subprocess.DEVNULL, env=os.environ
    )


@pytest.mark.parametrize("num_workers", [0, 2])
def test_a_run_killed_at_any_moment_and_resumed_equals_an_uninterrupted_one(
    whole: Path, tmp_path: Path, num_workers: int
) -> None:
    out = tmp_path / "killed"
    process = start(out, "new", num_workers)
    deadline = time.monotonic() + 120
    while not list(out.glob("checkpoints/*")) and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait(60)
    assert start(out, "resume", num_workers).wait(120) == 0
    assert_equal_runs(whole, out)
