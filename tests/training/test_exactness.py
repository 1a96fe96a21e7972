"""A run is called exact only where it is: what makes it another run is marked, saved and shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import scanline
from scanline import recipes
from scanline.engines.gymnasium import GymnasiumEngine
from scanline.runs.checkpoint import load_latest
from scanline.runs.folder import read_record
from scanline.stores import Replay
from scanline.training import exact

pytestmark = pytest.mark.usefixtures("pages")
CATCH = "scanline/Catch-v0"
SHORT: dict[str, Any] = {
    "network": "mlp",
    "num_envs": 4,
    "agent_steps": 200,
    "save_every_agent_steps": 80,
    "num_workers": 0,
    "torch_threads": 1,
    "live": False,
    "tensorboard": False,
}
HEAD = "This run is not exact"


def train(recipe: str, out: Path, game: str = CATCH, **changes: Any) -> tuple[scanline.Run, str]:
    """The run, and what it said of its exactness."""
    said: list[str] = []
    run = scanline.train(recipe, game, out=out, say=said.append, **{**SHORT, **changes})
    return run, "\n".join(sentence for sentence in said if HEAD in sentence)


def saved_reasons(out: Path) -> list[str]:
    """Of the newest checkpoint; the run's record and its page say the same."""
    state = load_latest(out / "checkpoints").state
    reasons: list[str] = state["inexact"]
    assert state["exact"] is not bool(reasons)
    assert read_record(out)["inexact"] == reasons
    page = (out / "report.html").read_text()
    assert ("is not exact" in page) is bool(reasons)
    assert all(reason.split("(")[0].replace("'", "&#x27;") in page for reason in reasons)
    return reasons


def test_a_synchronous_run_with_snapshots_is_exact(tmp_path: Path) -> None:
    run, said = train("paac", tmp_path / "run")
    assert saved_reasons(run.folder) == [] == list(run.inexact)
    run, said = train("paac", tmp_path / "run", resume=True, agent_steps=300)
    assert saved_reasons(run.folder) == [] == list(run.inexact)
    assert said == ""


@pytest.mark.parametrize(("recipe", "game"), [("paac", "CartPole-v1"), ("dqn", "CartPole-v1")])
def test_an_engine_without_snapshots_marks_the_run(tmp_path: Path, recipe: str, game: str) -> None:
    run, said = train(recipe, tmp_path / "run", game)
    reason = "the engine 'gymnasium' has no snapshots of this game and begins new games"
    assert saved_reasons(run.folder) == [reason] == list(run.inexact)
    assert said.count(HEAD) == said.count(reason) == 1, "shown once, not at every checkpoint"
    assert train(recipe, tmp_path / "run", game, resume=True, agent_steps=300)[1].count(HEAD) == 1


def test_environments_that_cannot_be_saved_mark_the_run_and_the_replay_is_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(self: GymnasiumEngine) -> list[bytes]:
        raise RuntimeError("out of memory")

    cuts, cut = list[int](), Replay.cut

    def counted(self: Replay) -> None:
        cuts.append(1)
        cut(self)

    monkeypatch.setattr(Replay, "cut", counted)
    with monkeypatch.context() as patch:
        patch.setattr(GymnasiumEngine, "snapshot", failing)
        run, said = train("dqn", tmp_path / "run")
    assert saved_reasons(run.folder) == ["environments could not be saved (out of memory)"]
    assert said.count(HEAD) == 1
    run, said = train("dqn", tmp_path / "run", resume=True, agent_steps=300)
    assert saved_reasons(run.folder) == ["environments could not be saved (out of memory)"]
    assert said.count(HEAD) == 1
    assert cuts == [1], "rows of games that will never end must not be joined to new games"


PPO = {"rollout_agent_steps": 20, "epochs": 1, "num_minibatches": 1}
LENGTH = "the span of its schedules in agent steps was 200 and is now 300"


@pytest.mark.parametrize(
    ("recipe", "changes", "is_exact"),
    [
        ("a2c", {}, False),
        ("a2c", {"anneal": "none"}, True),
        ("ppo", {**PPO, "anneal": "none"}, True),
        ("ppo", {**PPO, "anneal": "none", "clip_anneal": "linear"}, False),
        ("dqn", {}, True),
    ],
)
def test_another_length_marks_a_run_whose_schedules_span_it(
    tmp_path: Path, recipe: str, changes: dict[str, Any], is_exact: bool
) -> None:
    out = tmp_path / "run"
    at = train(recipe, out, **changes)[0].agent_steps
    assert saved_reasons(out) == []
    run, said = train(recipe, out, resume=True, agent_steps=300, **changes)
    wanted = [] if is_exact else [f"resumed after {at} agent steps, {LENGTH}"]
    assert saved_reasons(out) == wanted == list(run.inexact)
    assert said.count(HEAD) == len(wanted)
    assert recipes.find(recipe).replace(**changes).span_agent_steps is None or not is_exact


def test_another_length_is_seen_even_where_the_first_resume_saved_nothing(tmp_path: Path) -> None:
    out = tmp_path / "run"
    train("a2c", out)
    record = json.loads((out / "settings.json").read_text())
    record["settings"]["recipe"]["agent_steps"] = 300
    (out / "settings.json").write_text(json.dumps(record))
    train("a2c", out, resume=True, agent_steps=300)
    assert LENGTH in saved_reasons(out)[0]


def test_a_run_that_never_saved_begins_anew_and_is_exact(tmp_path: Path) -> None:
    out = tmp_path / "run"
    train("a2c", out, save_at_end=False, save_every_agent_steps=0)
    train("a2c", out, resume=True, agent_steps=300)
    assert saved_reasons(out) == []


def test_another_core_marks_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, versions = tmp_path / "run", exact.versions
    train("paac", out)

    def other(plan: Any) -> dict[str, str]:
        return versions(plan) | {"engine": "native core 0123456789ab"}

    monkeypatch.setattr(exact, "versions", other)
    train("paac", out, resume=True, agent_steps=300)
    (reason,) = saved_reasons(out)
    assert "versions.engine was 'gymnasium " in reason
    assert reason.endswith("is now 'native core 0123456789ab'")


def test_a_run_that_failed_says_so_when_it_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, recv, calls = tmp_path / "run", GymnasiumEngine.recv, list[int]()

    def failing(self: GymnasiumEngine, *given: Any) -> None:
        calls.append(1)
        if len(calls) == 30:
            raise KeyError("the ball is gone")
        recv(self, *given)

    with monkeypatch.context() as patch:
        patch.setattr(GymnasiumEngine, "recv", failing)
        with pytest.raises(KeyError):
            train("paac", out)
    said = train("paac", out, resume=True)[1]
    reasons = saved_reasons(out)
    assert any("saved when it failed after" in reason for reason in reasons)
    assert said.count(HEAD) == 1


def test_parts_that_do_not_wait_for_each_other_are_never_exact(tmp_path: Path) -> None:
    run, said = train("ga3c", tmp_path / "run")
    (reason,) = saved_reasons(run.folder)
    assert "do not wait for each other" in reason and said.count(HEAD) == 1


def test_a_device_whose_sums_change_order_is_not_exact() -> None:
    plan = scanline.training.make_plan("paac", "pong", device="simulated")

    class Snapshots:
        name, can_snapshot = "native", True

    assert exact.reasons(plan, Snapshots()) == [  # type: ignore[arg-type]
        "sums on the device 'simulated' may come in another order"
    ]
