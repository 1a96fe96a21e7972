"""Asynchronous runs end within seconds when a part of them does, with a traceback, a checkpoint,
and nothing left behind."""

from __future__ import annotations

import gc
import os
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import late_nan
import late_trouble
import pytest
import torch

import scanline
from leftovers import children, mapped_blocks, open_blocks
from scanline import networks
from scanline.algorithms import ActorCritic
from scanline.engines import EngineError
from scanline.engines.gymnasium import GymnasiumEngine
from scanline.errors import UserError
from scanline.parameters import NotFiniteGradientError
from scanline.processes import WorkerLost
from scanline.runs.checkpoint import load_latest
from scanline.runs.leader import NotFiniteError
from scanline.threads import StuckError, WorkerThreads

CATCH = "scanline/Catch-v0"
ENDS_WITHIN_SECONDS = 20.0
"""On a machine that does something else too; with idle cores it takes two or three."""
QUIET = {"live": False, "tensorboard": False, "torch_threads": 1, "say": lambda sentence: None}
SMALL = {"network": "mlp", "agent_steps": 10_000_000, "log_every_agent_steps": 200, **QUIET}
RECIPES: dict[str, dict[str, Any]] = {
    "accelerated-a3c": {
        **{"learners": 1, "num_envs": 4, "num_workers": 0, "decorrelation_agent_steps": 0}
    },
    "ga3c": {"num_envs": 8, "num_workers": 0},
}


def shared_memory() -> int:
    """Blocks of shared memory that this process maps or holds open."""
    gc.collect()
    return mapped_blocks() + open_blocks()


@pytest.fixture(autouse=True)
def nothing_left_behind() -> Iterator[None]:
    processes, memory, threads = children(), shared_memory(), threading.active_count()
    yield
    assert children() <= processes
    assert shared_memory() <= memory
    assert threading.active_count() <= threads


def once_it_learns(out: Path, act: Callable[[], None]) -> None:
    """Does something to a run, from another thread, as soon as its log has rows."""

    def wait() -> None:
        deadline = time.monotonic() + 120
        log = out / "progress.jsonl"
        while time.monotonic() < deadline and not (log.exists() and log.stat().st_size):
            time.sleep(0.05)
        moments.append(time.monotonic())
        act()

    threading.Thread(target=wait, daemon=True).start()


moments: list[float] = []


def train(recipe: str, out: Path, **changes: Any) -> scanline.Run:
    return scanline.train(recipe, CATCH, out=out, **{**SMALL, **RECIPES[recipe], **changes})


def assert_usable(out: Path) -> None:
    """The weights are finite and play; the checkpoint says that it is not exact."""
    state = load_latest(out / "checkpoints").state
    assert state["exact"] is False
    assert "do not wait for each other" in state["inexact"][0]
    assert state["progress"]["updates"] > 0
    assert all(torch.isfinite(value).all() for value in state["parameters"]["network"].values())
    assert len(scanline.evaluate(out, episodes=2).scores) == 2


def test_a_killed_learner_ends_the_run_with_its_name_and_a_checkpoint(tmp_path: Path) -> None:
    out, before = tmp_path / "run", children()

    def kill() -> None:
        os.kill(max(children() - before), signal.SIGKILL)

    once_it_learns(out, kill)
    with pytest.raises(WorkerLost, match=r"Learner [01] .*SIGKILL"):
        train("accelerated-a3c", out, learners=2)
    assert time.monotonic() - moments[-1] < ENDS_WITHIN_SECONDS
    assert_usable(out)


@pytest.mark.parametrize(
    ("recipe", "changes"),
    [("accelerated-a3c", {}), ("ga3c", {"num_workers": 0}), ("ga3c", {"num_workers": 2})],
)
def test_an_environment_that_raises_ends_the_run_with_its_traceback(
    tmp_path: Path, recipe: str, changes: dict[str, Any]
) -> None:
    out = tmp_path / "run"
    game = f"late_trouble:{late_trouble.RAISES}"
    given = {**SMALL, **RECIPES[recipe], **changes}
    with pytest.raises(
        (WorkerLost, EngineError), match=r"(?s)the ball is gone.*This was environment"
    ):
        scanline.train(recipe, game, out=out, **given)
    assert load_latest(out / "checkpoints").state["progress"]["updates"] > 0


def test_a_killed_agent_ends_the_run(tmp_path: Path) -> None:
    out = tmp_path / "run"
    game = f"late_trouble:{late_trouble.DIES}"
    with pytest.raises(EngineError, match=r"worker . .*SIGKILL"):
        scanline.train("ga3c", game, out=out, **{**SMALL, "num_envs": 8, "num_workers": 2})
    assert load_latest(out / "checkpoints").state["progress"]["updates"] > 0


@pytest.mark.parametrize(("recipe", "rate"), [("accelerated-a3c", "0.00035"), ("ga3c", "0.0003")])
def test_a_loss_that_is_no_number_ends_the_run_with_what_led_to_it(
    tmp_path: Path, recipe: str, rate: str
) -> None:
    out = tmp_path / "run"
    wanted = rf"(?s)after .* updates.*losses were all=nan, the learning rate {re.escape(rate)}"
    with pytest.raises((UserError, NotFiniteGradientError), match=wanted):
        scanline.train(late_nan.recipe(recipe), CATCH, out=out, **SMALL, **RECIPES[recipe])
    state = load_latest(out / "checkpoints").state["parameters"]["network"]
    assert all(torch.isfinite(value).all() for value in state.values())


@pytest.mark.parametrize("recipe", ["a2c", "dqn"])
@pytest.mark.parametrize("where", ["trunk.convs.0.weight", "trunk.convs.2.bias"])
def test_a_weight_that_is_no_number_ends_the_run_with_its_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recipe: str, where: str
) -> None:
    pytest.importorskip("ale_py", reason="ale-py brings the ROMs")
    build = networks.build

    def spoilt(*args: Any, **options: Any) -> torch.nn.Module:
        network = build(*args, **options)
        with torch.no_grad():
            network.get_parameter(where)[0] = float("nan")  # one filter
        return network

    monkeypatch.setattr(networks, "build", spoilt)
    small = {"num_envs": 2, "num_threads": 1} if recipe == "a2c" else {}
    if recipe == "dqn":
        small = {"learning_starts_agent_steps": 40, "capacity_agent_steps": 1000}
    with pytest.raises(NotFiniteError, match="is no finite number after"):
        scanline.train(
            recipe,
            "pong",
            out=tmp_path / "run",
            agent_steps=200,
            log_every_agent_steps=50,
            **small,
            **QUIET,
        )


def test_a_predictor_that_raises_ends_the_run_with_its_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, calls, act = tmp_path / "run", list[int](), ActorCritic.act

    def failing(self: ActorCritic, outputs: Any, context: Any) -> Any:
        calls.append(1)
        if len(calls) == 200:
            raise KeyError("no action comes to mind")
        return act(self, outputs, context)

    monkeypatch.setattr(ActorCritic, "act", failing)
    with pytest.raises(KeyError, match="no action comes to mind") as caught:
        train("ga3c", out)
    assert "serve" in [entry.name for entry in caught.traceback]
    monkeypatch.undo()
    assert_usable(out)


def test_a_run_that_stands_still_ends_and_names_what_it_waits_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where trainers have a part of their batch: they wait, they are not stuck."""
    out, calls, poll = tmp_path / "run", list[int](), GymnasiumEngine.poll

    def losing(self: GymnasiumEngine, timeout_seconds: float) -> list[int]:
        calls.append(1)
        return poll(self, timeout_seconds) if len(calls) < 200 else []

    monkeypatch.setattr(GymnasiumEngine, "poll", losing)
    wanted = (
        r"Neither a step nor an update for 2 seconds: the engine finishes no step of the 8 agents "
        r"that it has\. Of 8 agents 8 are in the engine and 0 wait for a decision; of the 8 "
        r"segments that an update needs [0-7] are there\."
    )
    with pytest.raises(StuckError, match=wanted):
        train("ga3c", out, silent_seconds=2.0)
    monkeypatch.undo()
    assert_usable(out)


def test_a_trainer_that_hangs_is_named_and_the_predictors_that_wait_for_it_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls, loss, close, closing = (
        list[int](),
        ActorCritic.loss,
        WorkerThreads.close,
        threading.Event(),
    )

    def hanging(self: ActorCritic, views: Any, batch: Any) -> Any:
        calls.append(1)
        if len(calls) == 20:
            closing.wait(ENDS_WITHIN_SECONDS)
        return loss(self, views, batch)

    monkeypatch.setattr(ActorCritic, "loss", hanging)
    monkeypatch.setattr(WorkerThreads, "close", lambda self: (closing.set(), close(self)))
    few = {"num_trainers": 1, "queue_segments": 1, "min_batch_agent_steps": 0}
    with pytest.raises(StuckError, match=r"trainer-0:\n(.|\n)*in hanging") as caught:
        train("ga3c", tmp_path / "run", silent_seconds=1.0, **few)
    assert "predictor" not in str(caught.value)


@pytest.mark.parametrize("torn_reads", [False, True])
def test_trainers_never_wait_for_the_segments_of_other_trainers(
    tmp_path: Path, torn_reads: bool
) -> None:
    """Twelve segments in all, and eight trainers that need eight of them each."""
    few = {"num_envs": 2, "queue_segments": 8, "num_trainers": 8, "torn_reads": torn_reads}
    begun = time.monotonic()
    run = train("ga3c", tmp_path / "run", agent_steps=2_000, silent_seconds=3.0, **few)
    assert run.agent_steps >= 2_000
    assert time.monotonic() - begun < ENDS_WITHIN_SECONDS


@pytest.mark.parametrize(
    ("recipe", "number"),
    [("accelerated-a3c", signal.SIGTERM), ("ga3c", signal.SIGTERM), ("ga3c", signal.SIGINT)],
)
def test_a_signal_saves_and_ends_the_run(tmp_path: Path, recipe: str, number: int) -> None:
    out = tmp_path / "run"
    once_it_learns(out, lambda: os.kill(os.getpid(), number))
    run = train(recipe, out)
    assert run.stop.kind == "signal"
    assert time.monotonic() - moments[-1] < ENDS_WITHIN_SECONDS
    assert_usable(out)


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_resumed_run_goes_on_with_weights_counts_and_other_games(
    tmp_path: Path, recipe: str
) -> None:
    out = tmp_path / "run"
    first = train(recipe, out, agent_steps=1_000)
    saved = load_latest(out / "checkpoints").state
    second = train(recipe, out, agent_steps=2_000, resume=True)
    state = load_latest(out / "checkpoints").state
    assert second.agent_steps >= 2_000 > first.agent_steps >= 1_000
    assert state["progress"]["updates"] > saved["progress"]["updates"]
    assert state["parameters"]["version"] > saved["parameters"]["version"]
    assert state["exact"] is False
    assert "do not wait for each other" in state["inexact"][0]
