"""What belongs to the caller's process is as it was after a call, however the call ended."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import scanline
from scanline import cli, training
from scanline._native import layer_threads
from scanline.networks import kernels
from scanline.runs.leader import LeaderRun
from scanline.timing import Stretch, timed

CATCH = "scanline/Catch-v0"
SMALL: dict[str, Any] = {
    "network": "mlp",
    "num_envs": 4,
    "agent_steps": 80,
    "num_workers": 0,
    "torch_threads": 1,
    "live": False,
    "tensorboard": False,
    "say": lambda sentence: None,
}
Act = Callable[[Path, pytest.MonkeyPatch], object]


def train(out: Path, **changes: Any) -> scanline.Run:
    return scanline.train("a2c", CATCH, out=out, **{**SMALL, **changes})


def fail(out: Path, patch: pytest.MonkeyPatch) -> None:
    def broken(self: LeaderRun) -> bool:
        raise RuntimeError("inside")

    patch.setattr(LeaderRun, "goes_on", broken)
    with pytest.raises(RuntimeError, match="inside"):
        train(out / "failed")


def refuse(out: Path, patch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="num_envs"):
        train(out / "refused", num_envs=0)


def measure(out: Path, patch: pytest.MonkeyPatch) -> None:
    plan = training.make_plan("a2c", CATCH, network="mlp", num_workers=0, torch_threads=1)
    few = Stretch(agent_steps=80)
    timed(plan, warm_up=few, measured=few)


ACTS: dict[str, Act] = {
    "train": lambda out, patch: train(out / "again"),
    "train with PyTorch's kernels": lambda out, patch: train(out / "again", kernels="torch"),
    "a training that fails": fail,
    "a training that is refused": refuse,
    "a timed run": measure,
    "evaluate": lambda out, patch: scanline.evaluate(out / "run", episodes=1),
    "load_policy": lambda out, patch: scanline.load_policy(out / "run"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs")
    train(path / "run")
    return path


def belongings() -> dict[str, Any]:
    return {
        "torch threads": torch.get_num_threads(),
        "layer threads": layer_threads(),
        "environment": dict(os.environ),
        "cores": os.sched_getaffinity(0) if sys.platform == "linux" else None,
        "search path": list(sys.path),
        "random numbers": torch.random.get_rng_state().tolist(),
    }


@pytest.mark.parametrize("act", ACTS)
def test_threads_variables_and_cores_are_as_they_were(
    folder: Path, tmp_path: Path, act: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "runs"
    out.mkdir()
    (out / "run").symlink_to(folder / "run")
    threads = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        before = belongings()
        ACTS[act](out, monkeypatch)
        assert belongings() == before
    finally:
        torch.set_num_threads(threads)


def test_a_caller_s_memory_is_allocated_as_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its limits cannot be put back: only a process of our own changes them."""
    kept: list[int] = []
    monkeypatch.setattr(kernels, "keep_freed_memory", lambda: kept.append(1))
    train(tmp_path / "caller")
    assert not kept
    monkeypatch.setattr(kernels, "_is_own_process", True)
    monkeypatch.setenv("THP_MEM_ALLOC_ENABLE", "1")
    train(tmp_path / "own")
    assert kept


def test_a_command_s_process_is_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """But not one that calls the command line as a function."""
    monkeypatch.setattr(kernels, "_is_own_process", False)
    monkeypatch.setattr(sys, "argv", ["scanline", "train"])
    assert cli.main(["train"]) == 2
    assert not kernels._is_own_process
    assert cli.main() == 2
    assert kernels._is_own_process
