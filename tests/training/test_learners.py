"""Several learners: they equal one, equal seeds give equal bytes, and a dead one ends the run.

Most runs share one second learner (`standing_pair.py`); that `--learners` and torchrun give the
same runs is tested once each.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import torch

import scanline
from scanline import training
from scanline.parameters import LocalParameters
from scanline.runs.checkpoint import MANIFEST, DamagedCheckpointWarning, load_latest
from scanline.runs.folder import read_record
from training.standing_pair import StandingPair
from training.test_determinism import MEMORY, PLAIN, REPLAY, SETTINGS, STEADY, assert_equal_runs
from training.test_interruptions import at_call

CATCH = "scanline/Catch-v0"
RECIPES: dict[str, dict[str, Any]] = {
    "accelerated-ppo": {"rollout_samples": 128, "decorrelation_agent_steps": 20, **STEADY},
    "ppo-lstm": {
        **{"rollout_agent_steps": 16, "normalise_advantages": "none", "epochs": 2},
        **{"learning_rate": 1e-3, "num_minibatches": 2},
        **MEMORY,
        **STEADY,
    },
    "accelerated-dqn": REPLAY | {"replay_segment_agent_steps": 160},
    "accelerated-rainbow": REPLAY,
    "cule-vtrace": {"num_blocks": 4, "window_agent_steps": 8},
}
SHORT: dict[str, dict[str, Any]] = {
    "paac": {},
    "paac-repo": PLAIN,
    "a2c": PLAIN,
    "accelerated-a2c": {"decorrelation_agent_steps": 20},
    "cule-a2c": {},
    "ppo": {"rollout_agent_steps": 16, **STEADY},
    "cule-ppo": {"rollout_agent_steps": 16, **STEADY},
    "impala": {"rollout_agent_steps": 5, "batch_trajectories": 8, **PLAIN},
}
"""The other policy gradients: what is theirs alone is tested with one learner."""
NUM_AGENT_STEPS = 1_920
LONGEST_END_SECONDS = 30.0


def changes_of(recipe: str, **changes: Any) -> dict[str, Any]:
    own = (RECIPES | SHORT)[recipe]
    return {**SETTINGS, "agent_steps": NUM_AGENT_STEPS, **own, **changes}


def train(recipe: str, out: Path, learners: int = 2, **changes: Any) -> Path:
    said: list[str] = []
    given = changes_of(recipe, learners=learners, **changes)
    scanline.train(recipe, CATCH, out=out, say=said.append, **given)
    return out


def first_weights(recipe: str) -> dict[str, torch.Tensor]:
    """Those of a run that has not begun."""
    plan = training.make_plan(recipe, CATCH, **changes_of(recipe))
    prepared = training.prepared(plan, lambda part: None, say=lambda sentence: None)
    prepared.runtime.close()
    return prepared.context.network.state_dict()


@pytest.fixture(scope="module", params=list(RECIPES))
def recipe(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def pair() -> Iterator[StandingPair]:
    with closing(StandingPair()) as made:
        yield made


def train_pair(
    pair: StandingPair, recipe: str, out: Path, *, resume: bool = False, **changes: Any
) -> Path:
    """The same run as `train`, by learners that are there already."""
    plan = training.make_plan(recipe, CATCH, **changes_of(recipe, learners=2, **changes))
    pair.train(plan, out, resume)
    return out


@pytest.fixture(scope="module")
def whole(recipe: str, pair: StandingPair, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_pair(pair, recipe, tmp_path_factory.mktemp("runs") / "whole")


@pytest.mark.parametrize(
    "recipe", ["accelerated-ppo", "ppo-lstm", "accelerated-dqn"], indirect=True
)
def test_two_learners_equal_one_with_twice_the_environments_and_batch(
    recipe: str, whole: Path, tmp_path: Path
) -> None:
    """Sums over half batches round differently: that is all, over 50 updates and more."""
    alone = train(recipe, tmp_path / "alone", learners=1)
    states = [load_latest(run / "checkpoints").state for run in (whole, alone)]
    assert states[0]["parameters"]["version"] == states[1]["parameters"]["version"] >= 50
    assert states[0]["progress"]["episodes"] == states[1]["progress"]["episodes"]
    mine, other = (state["parameters"]["network"] for state in states)
    for name, before in first_weights(recipe).items():
        torch.testing.assert_close(mine[name], other[name], rtol=0.0, atol=2e-5)
        assert (mine[name] - before).abs().max() > 1e-3, name  # and they have moved


def test_a_run_stopped_and_resumed_equals_an_uninterrupted_one(
    recipe: str, whole: Path, pair: StandingPair, tmp_path: Path
) -> None:
    parted = train_pair(pair, recipe, tmp_path / "parted", agent_steps=700)
    train_pair(pair, recipe, parted, resume=True)
    assert_equal_runs(whole, parted)


@pytest.mark.parametrize("recipe", ["accelerated-dqn"], indirect=True)
def test_a_checkpoint_of_which_one_learner_has_lost_its_rows_is_not_used(
    recipe: str, whole: Path, pair: StandingPair, tmp_path: Path
) -> None:
    parted = train_pair(pair, recipe, tmp_path / "parted", agent_steps=1_200)
    before, newest = sorted((parted / "checkpoints").glob("*-agent-steps-*"))[-2:]
    rows = [
        {file["name"] for file in json.loads((path / MANIFEST).read_text())["segments"]}
        for path in (before, newest)
    ]
    lost = min(name for name in rows[1] - rows[0] if name.startswith("replay-1-"))
    (parted / "checkpoints/segments" / lost).unlink()
    with pytest.warns(DamagedCheckpointWarning, match="learner 1 cannot use its rows"):
        train_pair(pair, recipe, parted, resume=True)
    assert_equal_runs(whole, parted)


@pytest.mark.parametrize("name", SHORT)
def test_policy_gradients_of_two_learners_repeat_and_resume_bit_for_bit(
    name: str, pair: StandingPair, tmp_path: Path
) -> None:
    quick: dict[str, Any] = {"agent_steps": 960, "save_every_agent_steps": 0}
    whole = train_pair(pair, name, tmp_path / "whole", **quick)
    parted = train_pair(pair, name, tmp_path / "parted", **quick | {"agent_steps": 500})
    train_pair(pair, name, parted, resume=True, **quick)
    assert_equal_runs(whole, parted)
    assert load_latest(whole / "checkpoints").state["parameters"]["version"] >= 24


def test_a_run_that_saves_nothing_at_its_end_ends_for_all(
    pair: StandingPair, tmp_path: Path
) -> None:
    quick = {"agent_steps": 256, "save_at_end": False, "save_every_agent_steps": 0}
    out = train_pair(pair, "accelerated-ppo", tmp_path / "run", **quick)
    assert not list((out / "checkpoints").glob("*-agent-steps-*"))


@pytest.mark.skipif(sys.platform != "linux", reason="pinning needs Linux")
@pytest.mark.parametrize("recipe", ["accelerated-ppo"], indirect=True)
def test_pinned_learners_learn_the_same_and_let_go(
    recipe: str, whole: Path, tmp_path: Path
) -> None:
    granted = os.sched_getaffinity(0)
    assert_equal_runs(whole, train(recipe, tmp_path / "pinned", pin_cores=True))
    assert os.sched_getaffinity(0) == granted


@pytest.mark.parametrize("recipe", ["cule-vtrace"], indirect=True)
def test_pixel_statistics_are_those_of_all_frames(recipe: str, whole: Path, tmp_path: Path) -> None:
    alone = train(recipe, tmp_path / "alone", learners=1)
    runs = [load_latest(run / "checkpoints").state for run in (whole, alone)]
    mine, other = (run["parameters"]["algorithm"] for run in runs)
    # States are means over learners: half of what one learner counts.
    assert mine["pixel_count"] * 2 == other["pixel_count"] > 0
    assert (mine["pixel_sum"] > 0).any()


PROGRAM = """
import sys, scanline
scanline.train({recipe!r}, {game!r}, out=sys.argv[1], **{settings!r})
"""


def start(recipe: str, out: Path, **changes: Any) -> subprocess.Popen[str]:
    settings = changes_of(recipe, learners=2, **changes)
    code = PROGRAM.format(recipe=recipe, game=CATCH, settings=settings)
    return subprocess.Popen(
        [sys.executable, "-c", code, str(out)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def follower_of(process: subprocess.Popen[str]) -> int:
    """The process that the leading learner has started."""
    (child,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return int(child)


def wait_for(out: Path, pattern: str) -> None:
    deadline = time.monotonic() + 120
    while not list(out.glob(pattern)):
        assert time.monotonic() < deadline, f"no {pattern} in {out}"
        time.sleep(0.01)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"


needs_proc = pytest.mark.skipif(sys.platform != "linux", reason="finds processes by /proc")


@needs_proc
@pytest.mark.parametrize("recipe", ["accelerated-rainbow"], indirect=True)
def test_a_killed_follower_ends_the_run_which_resumes_as_if_it_had_not_died(
    recipe: str, whole: Path, pair: StandingPair, tmp_path: Path
) -> None:
    out = tmp_path / "killed"
    process = start(recipe, out)
    wait_for(out, "checkpoints/*-agent-steps-*")
    os.kill(follower_of(process), signal.SIGKILL)
    _, words = process.communicate(timeout=LONGEST_END_SECONDS)
    assert process.returncode not in (0, None)
    assert "Learner 0 of 2 lost another learner: Learner 1" in words
    assert "ended by SIGKILL without a word. The run ends; continue it with --resume." in words
    train_pair(pair, recipe, out, resume=True)
    assert_equal_runs(whole, out)


@needs_proc
@pytest.mark.parametrize("recipe", ["accelerated-ppo"], indirect=True)
def test_a_follower_killed_before_the_first_checkpoint_leaves_one(
    recipe: str, pair: StandingPair, tmp_path: Path
) -> None:
    out = tmp_path / "killed"
    process = start(recipe, out, save_every_agent_steps=0, agent_steps=10**6)
    wait_for(out, "progress.csv")
    while not (out / "progress.csv").stat().st_size:
        time.sleep(0.01)
    os.kill(follower_of(process), signal.SIGKILL)
    process.communicate(timeout=LONGEST_END_SECONDS)
    saved = load_latest(out / "checkpoints")
    assert saved.agent_steps > 0
    assert not saved.state["exact"]
    train_pair(pair, recipe, out, resume=True, agent_steps=saved.agent_steps + 512)
    assert any("saved when it failed" in reason for reason in read_record(out)["inexact"])
    after = load_latest(out / "checkpoints").state
    assert after["progress"]["agent_steps"] >= saved.agent_steps + 512
    assert after["parameters"]["version"] > saved.state["parameters"]["version"]


@needs_proc
@pytest.mark.parametrize("recipe", ["accelerated-ppo"], indirect=True)
def test_a_killed_leader_leaves_no_follower(recipe: str, tmp_path: Path) -> None:
    process = start(recipe, tmp_path / "killed", agent_steps=10**6)
    wait_for(tmp_path / "killed", "checkpoints/*-agent-steps-*")
    follower = follower_of(process)
    process.kill()
    process.communicate(timeout=LONGEST_END_SECONDS)
    deadline = time.monotonic() + LONGEST_END_SECONDS
    while is_alive(follower):
        assert time.monotonic() < deadline, "the follower lives on"
        time.sleep(0.1)


@pytest.mark.parametrize("recipe", ["accelerated-ppo"], indirect=True)
def test_torchrun_gives_the_same_run(recipe: str, whole: Path, tmp_path: Path) -> None:
    out = tmp_path / "torchrun"
    options = [
        f"--{'' if value is not False else 'no-'}{name.replace('_', '-')}"
        + ("" if isinstance(value, bool) else f"={value}")
        for name, value in changes_of(recipe).items()
    ]
    launcher = ["-m", "torch.distributed.run", "--nproc-per-node=2", "--standalone"]
    command = [sys.executable, *launcher, "-m", "scanline", "train", recipe, CATCH]
    done = subprocess.run(
        [*command, "--out", str(out), *options],
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert_equal_runs(whole, out)


@pytest.mark.parametrize(
    ("recipe", "changes", "words"),
    [
        ("paac", {"num_envs": 7}, "num_envs=7 do not divide among 2 learners"),
        ("accelerated-ppo", {"num_envs": 2}, "use a multiple of 4"),
        ("accelerated-dqn", {"batch_size": 33}, "batch_size=33 does not divide among 2"),
        ("fast-dqn", {}, "learns while it plays"),
        ("paac", {"learners": 0}, "learners=0 must be at least 1"),
    ],
)
def test_what_cannot_be_divided_is_refused(
    tmp_path: Path, recipe: str, changes: dict[str, Any], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        scanline.train(recipe, CATCH, out=tmp_path / "run", **{"learners": 2, **changes})
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("recipe", ["accelerated-ppo"], indirect=True)
def test_a_turn_of_two_learners_that_is_broken_off_goes_on_after_a_resume(
    recipe: str,
    whole: Path,
    pair: StandingPair,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parted = tmp_path / "parted"
    with monkeypatch.context() as patched:
        at_call(patched, LocalParameters, "apply", 10, lambda: os.kill(os.getpid(), signal.SIGTERM))
        train_pair(pair, recipe, parted)
    progress = load_latest(parted / "checkpoints").state["progress"]
    assert progress["updates"] == 10 and progress["turn"] is not None
    train_pair(pair, recipe, parted, resume=True)
    assert_equal_runs(whole, parted)
