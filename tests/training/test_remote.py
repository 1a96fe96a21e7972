"""Remote actors: rollouts from other processes and nodes, lost ones included."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import scanline
from scanline import engines, settings
from scanline.errors import MissingPackageError, RefusedError
from scanline.records import EpisodeEnd, Experience, Slot
from scanline.samplers import RemoteSampler, RemoteSettings
from scanline.stores.ring import TRUNCATED
from scanline.training import make_plan
from scanline.training.actors import RemoteActor, refuse_remote
from scanline.training.attachments import Attachments
from scanline.training.context import open_context, probe_context

CATCH = "scanline/Catch-v0"
SMALL: dict[str, Any] = {"network": "mlp", "protocol": "as-is", "num_envs": 4, "remote_actors": 2}
PROGRAM = Path(__file__).parent / "two_nodes.py"


def rows_of(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "progress.jsonl").read_text().splitlines()]


def test_two_nodes_one_of_which_is_killed(tmp_path: Path) -> None:
    """The short form of a cluster; one process, so that Ray starts as seldom as can be."""
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=400,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
    )
    assert done.returncode == 0, done.stderr[-4_000:]
    seen = json.loads(done.stdout.splitlines()[-1])

    replay = seen["replay"]
    assert replay["listens_on"] == ["127.0.0.1"]
    assert replay["left"] == []
    assert replay["has_token"] and not [name for name in replay["changed"] if "AUTH" in name]
    assert any("remote actors" in reason for reason in replay["inexact"])
    rows = rows_of(tmp_path / "dqn")
    assert rows[-1]["agent_steps"] >= 2_500
    for row in rows[1:]:
        owed = (row["agent_steps"] - 500) * 4.0 / 32
        assert abs(row["updates"] - owed) <= 1  # of hundreds: within 1 % from both sides

    impala = seen["impala"]
    assert impala["stop"] == "target_score", impala
    assert impala["agent_steps"] > impala["killed_at"][0]
    assert any("another one takes its place" in sentence for sentence in impala["said"])
    assert max(row["perf/policy_lag"] for row in rows_of(tmp_path / "impala")) > 0


class HereActors:
    """Actors of this process, in the order of their calls: the transport alone is left out."""

    def __init__(self, plan: Any) -> None:
        self._record, self._engine = (
            json.dumps(settings.to_dict(plan)),
            engines.version(plan.engine),
        )
        self.generations = [0] * plan.run.remote.remote_actors
        self._actors: list[Any] = [None] * len(self.generations)
        self.calls: list[tuple[int, Any]] = []
        self.weights: list[int] = []
        self.lose: set[int] = set()

    def __len__(self) -> int:
        return len(self.generations)

    def begin(self, number: int) -> None:
        self._actors[number] = RemoteActor(
            self._record, self._engine, number, self.generations[number]
        )

    def wait(self) -> None:
        """They are ready when they have begun."""

    def share(self, value: Any) -> Any:
        return value

    def ask(self, number: int, method: str, weights: Any, *args: Any) -> None:
        self.weights += [] if weights is None else [args[0]]
        self.calls.append((number, (weights, *args)))

    def answer(self) -> tuple[int, Any]:
        number, args = self.calls.pop(0)
        if number in self.lose:
            self.lose.remove(number)
            self.generations[number] += 1
            self.calls = [call for call in self.calls if call[0] != number]
            self.begin(number)
            return number, None
        return number, self._actors[number].play(*args)


def remote(recipe: str, **changes: Any) -> tuple[RemoteSampler, HereActors, Any]:
    plan = make_plan(recipe, CATCH, **{**SMALL, **changes})
    context = probe_context(plan, lambda sentence: None, Attachments())
    actors: Any = HereActors(context.plan)
    arguments: Any = (context.plan.run.remote, context.store, context.acting_weights)
    return RemoteSampler(actors, *arguments, context.spaces), actors, context


def test_rollouts_carry_the_version_of_their_weights_which_are_sent_when_they_change() -> None:
    sampler, actors, context = remote("impala", rollout_agent_steps=3, batch_trajectories=2)
    sampler.begin()
    slots = []
    for _ in range(4):
        into = context.store.slot()
        slot = sampler.collect(None, into)  # type: ignore[arg-type]
        slots.append(slot.version.tolist())
        context.parameters.version += 1
    # Two calls of each of the two actors came before the first update; then one per answer.
    assert slots == [[0] * 3] * 4
    assert actors.weights == [0, 0, 1, 2, 3]
    later = sampler.collect(None, context.store.slot())  # type: ignore[arg-type]
    assert later.version.tolist() == [1] * 3


def test_a_rollout_is_that_of_a_local_sampler_with_the_same_weights() -> None:
    """Actor 1 of 2 plays environments 2 and 3 with their own random numbers."""
    sampler, _, context = remote("impala", rollout_agent_steps=6, batch_trajectories=2)
    sampler.begin()
    sampler.collect(None, context.store.slot())  # type: ignore[arg-type]
    got = sampler.collect(None, context.store.slot())  # type: ignore[arg-type]
    local = make_plan("impala", CATCH, **{**SMALL, "remote_actors": 0, "rollout_agent_steps": 6})
    whole = open_context(local, announce=lambda sentence: None)
    slot = Slot.allocate(whole.spaces, 6, 4, whole.columns)
    whole.parts.sampler.begin()
    whole.parts.sampler.collect(whole.parts.policy, slot)
    whole.close()
    assert torch.equal(got.frames, slot.frames[:, 2:])
    assert torch.equal(got.actions, slot.actions[:, 2:])
    assert torch.equal(got.reward, slot.reward[:, 2:])


@pytest.mark.parametrize("recipe", ["impala", "dqn"])
def test_a_lost_actor_s_games_are_abandoned_and_others_begin(recipe: str) -> None:
    changes = {"rollout_agent_steps": 4} | ({"batch_trajectories": 2} if recipe == "impala" else {})
    sampler, actors, context = remote(recipe, **changes)
    sampler.begin()

    def collect() -> Slot:
        slot = sampler.collect(None, context.store.slot())  # type: ignore[arg-type]
        context.store.put(Experience(slot))
        list(context.store.batches())
        return slot

    for _ in range(2):
        collect()
    sampler.drain_episodes()
    actors.lose = {0}
    slots = [collect() for _ in range(4)]
    ends = sampler.drain_episodes()
    lost = [end.env for end in ends if end.score != end.score]
    assert lost == [0, 1]
    assert actors.generations == [1, 0]
    assert any(slot.depth[0].max() == 1 for slot in slots)  # new games
    if recipe == "dqn":
        ends_of_rows = context.store.rows(0, context.store.next_row(0), 0)["end"]
        assert (ends_of_rows == TRUNCATED).sum() == 2  # once for each of its environments
    state = sampler.state()
    sampler.load(state)
    assert not sampler.games_go_on
    assert actors.generations == [2, 2]
    again: list[EpisodeEnd] = sampler.drain_episodes()
    assert len(again) == 4 and all(end.score != end.score for end in again)


@pytest.mark.parametrize(
    ("recipe", "changes", "sentence"),
    [
        ("ppo", {}, "use the recipe impala"),
        ("ga3c", {}, "use the recipe impala"),
        ("accelerated-dqn", {"num_envs": 16}, "spread='steps'"),
        ("impala", {"num_envs": 5}, "multiple of 2"),
        ("impala", {"learners": 2}, "serve one learner"),
        ("fast-dqn", {"num_envs": 8}, "takes turns"),
        ("a3c-agents", {}, "use the recipe impala"),
    ],
)
def test_what_cannot_have_remote_actors_is_refused(
    recipe: str, changes: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence):
        refuse_remote(make_plan(recipe, "pong", **{"remote_actors": 2, **changes}))


def test_impossible_settings_are_refused() -> None:
    for wrong in ({"remote_actors": -1}, {"rollouts_ahead": 0}, {"actor_wait_seconds": 0.0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            RemoteSettings(**wrong)


def test_without_ray_one_sentence_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    before = dict(os.environ)
    with pytest.raises(MissingPackageError, match=r"install the extra `cluster`"):
        scanline.train("impala", CATCH, out=tmp_path / "run", live=False, **SMALL)
    assert not (tmp_path / "run").exists()
    assert dict(os.environ) == before


def test_another_engine_is_refused_by_the_actor() -> None:
    plan = make_plan("impala", CATCH, **SMALL)
    with pytest.raises(RefusedError, match="install the same version"):
        RemoteActor(json.dumps(settings.to_dict(plan)), "gymnasium 0.0", 0, 0)
