"""Fast DQN's pace: equal bytes however threads are scheduled, and blocks that come out even."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

import pytest
import torch

import scanline
from scanline.acting import NetworkPolicy, RandomPolicy
from scanline.parameters import LocalParameters
from scanline.records import EpisodeEnd
from scanline.runs.checkpoint import load_latest
from scanline.samplers import GameNumbers, LockstepSampler
from scanline.stores import Replay
from scanline.stores.batches import Gather
from scanline.stores.ring import Ring

CATCH = "scanline/Catch-v0"
SMALL = {
    "network": "mlp",
    "agent_steps": 480,
    "target_agent_steps": 160,
    "rollout_agent_steps": 5,
    "capacity_agent_steps": 400,
    "batch_size": 8,
    "training_intensity": 0.5,
    "learning_starts_agent_steps": 80,
    "epsilon_agent_steps": 300,
    "log_every_agent_steps": 160,
    "torch_threads": 1,
    "num_workers": 0,
    "live": False,
    "tensorboard": False,
}
STANDARD = [(num, False) for num in (1, 2, 4, 8)]
SYNCHRONISED = [(num, True) for num in (2, 4, 8)]


def train(out: Path, game: str = CATCH, **changes: Any) -> Path:
    scanline.train("fast-dqn", game, out=out, say=lambda sentence: None, **{**SMALL, **changes})
    return out


def assert_equal_runs(first: Path, second: Path) -> None:
    mine, other = (load_latest(run / "checkpoints").state["parameters"] for run in (first, second))
    for view in ("network", "target"):
        assert all(torch.equal(mine[view][name], other[view][name]) for name in mine[view])
    assert (first / "progress.jsonl").read_bytes() == (second / "progress.jsonl").read_bytes()
    assert (first / "progress.jsonl").stat().st_size > 0


def delay(monkeypatch: pytest.MonkeyPatch, owner: type, name: str, most_seconds: float) -> None:
    """Every call of a method first waits for a random while."""
    method = getattr(owner, name)

    def delayed(self: Any, *args: Any, **kwargs: Any) -> Any:
        time.sleep(random.random() * most_seconds)
        return method(self, *args, **kwargs)

    monkeypatch.setattr(owner, name, delayed)


@pytest.mark.parametrize(("num_envs", "synchronised"), STANDARD + SYNCHRONISED)
def test_neither_the_schedule_of_threads_nor_concurrent_training_changes_a_byte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, num_envs: int, synchronised: bool
) -> None:
    """Both forms of training, so all fourteen variants, one of them twice."""
    form = {"num_envs": num_envs, "synchronised_execution": synchronised}
    plain = train(tmp_path / "plain", **form)
    after = train(tmp_path / "after", concurrent_training=False, **form)
    assert_equal_runs(plain, after)
    delay(monkeypatch, LockstepSampler, "collect", 0.004)
    delay(monkeypatch, LocalParameters, "apply", 0.004)
    assert_equal_runs(plain, train(tmp_path / "delayed", **form))


def test_threads_that_meet_inside_of_a_step_change_no_byte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Samplers and learner read the target's convolutions and touch the ring at any moment."""
    form: dict[str, Any] = {"game": "pong", "network": "nips", "torch_threads": 2, "num_envs": 4}
    form |= {"agent_steps": 320, "capacity_agent_steps": 160}
    plain = train(tmp_path / "plain", **form)
    for owner, name in [
        *((NetworkPolicy, "__call__"), (Ring, "write")),
        *((Gather, "_address_planes"), (Gather, "_sent"), (LocalParameters, "step")),
    ]:
        delay(monkeypatch, owner, name, 0.002)
    form |= {"synchronised_execution": False}
    assert_equal_runs(plain, train(tmp_path / "met", **form))


def test_the_replay_is_frozen_while_a_block_is_played_and_the_target_acts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawable: list[int] = []
    versions: list[int] = []
    sample, put = Replay.sample, Replay.put

    def watched_sample(self: Replay) -> Any:
        drawable.append(self.num_drawable)
        return sample(self)

    def watched_put(self: Replay, experience: Any) -> None:
        versions.extend(experience.slot.version.unique().tolist())
        put(self, experience)

    monkeypatch.setattr(Replay, "sample", watched_sample)
    monkeypatch.setattr(Replay, "put", watched_put)
    train(tmp_path / "run", num_envs=2, synchronised_execution=False)
    updates = 10  # 160 steps x 0.5 / 8
    assert drawable == [80] * updates + [240] * updates + [400] * updates
    assert sorted(set(versions)) == [0, updates, 2 * updates]


@pytest.mark.parametrize("flush", ["full", "completed"])
@pytest.mark.parametrize("synchronised", [True, False])
def test_training_begins_new_games_and_may_draw_every_random_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flush: str, synchronised: bool
) -> None:
    """Algorithm 1 creates its environments after the replay was filled with random steps."""
    lengths: list[list[int]] = []
    drawable: list[int] = []
    collect, sample = LockstepSampler.collect, Replay.sample

    def watched_collect(self: LockstepSampler, policy: Any, into: Any) -> Any:
        if not isinstance(policy, RandomPolicy) and into.agent_steps == 0:
            lengths.append(self.state()["episodes"]["length"].tolist())
        return collect(self, policy, into=into)

    def watched_sample(self: Replay) -> Any:
        drawable.append(self.num_drawable)
        return sample(self)

    monkeypatch.setattr(LockstepSampler, "collect", watched_collect)
    monkeypatch.setattr(Replay, "sample", watched_sample)
    form = {"num_envs": 4, "synchronised_execution": synchronised, "flush": flush}
    train(tmp_path / "run", agent_steps=160, **form)
    assert lengths == ([[0] * 4] if synchronised else [[0]] * 4)
    assert set(drawable) == {80}


@pytest.mark.parametrize(
    ("owner", "method"), [(LockstepSampler, "collect"), (LocalParameters, "apply")]
)
def test_a_thread_that_raises_ends_the_run_with_its_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: type, method: str
) -> None:
    original, calls = getattr(owner, method), []

    def failing(self: Any, *args: Any, **kwargs: Any) -> Any:
        calls.append(1)
        if len(calls) > 50:
            raise ZeroDivisionError("broken on purpose")
        return original(self, *args, **kwargs)

    monkeypatch.setattr(owner, method, failing)
    with pytest.raises(ZeroDivisionError, match="broken on purpose") as caught:
        train(tmp_path / "run", num_envs=2, synchronised_execution=False, agent_steps=4_800)
    assert any(entry.name == "failing" for entry in caught.traceback)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"num_envs": 6}, "multiple of num_envs=6"),
        ({"rollout_agent_steps": 0, "rollout_samples": 120}, "rollout_agent_steps=15"),
        ({"batch_size": 32}, "whole updates"),
        ({"num_envs": 1}, "synchronised_execution=False"),
        ({"num_groups": 2}, "one group"),
        ({"target_agent_steps": 0}, "at least 1"),
    ],
)
def test_blocks_that_do_not_come_out_even_are_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        scanline.train("fast-dqn", CATCH, **{**SMALL, "training_intensity": 0.5, **changes})


def test_games_are_numbered_in_the_order_of_their_start_each_once() -> None:
    numbers = GameNumbers(2)
    ends = [EpisodeEnd(env, 0.0, 1, 0) for env in (1, 1, 0)]
    assert [end.started_at for end in numbers.give(ends)] == [1, 2, 0]
    continued = GameNumbers(2)
    continued.load(numbers.state())
    assert [end.started_at for end in continued.give(ends[1:])] == [3, 4]
