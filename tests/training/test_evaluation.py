"""An evaluation acts where the run's schedules stand, and every score says how it was made."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import scanline
from scanline import cli, engines, recipes
from scanline.algorithms import ActorCritic
from scanline.records import ActContext, Acted, Outputs
from scanline.training import scoring

CATCH = "scanline/Catch-v0"
SHORT: dict[str, Any] = {
    "network": "mlp",
    "num_envs": 8,
    "agent_steps": 400,
    "save_every_agent_steps": 0,
    "num_workers": 0,
    "torch_threads": 1,
    "live": False,
    "tensorboard": False,
    "say": lambda sentence: None,
}
PAUSES = {"evaluate_every_agent_steps": 200, "pause_games": 2}
CHOICES = {
    "paac": "sampled as in training",
    "ppo": "sampled as in training",
    "cule-vtrace": "sampled as in training",
    "dqn": "greedy with epsilon 0.05",
    "accelerated-categorical-dqn": "greedy with epsilon 0.001",
}
ENGINE = engines.version("gymnasium")

seen: set[int] = set()
"""Agent steps at which `Scheduled` acted."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Scheduled(ActorCritic):
    """Acts by a schedule of its own, as an exploring algorithm does."""

    def act(self, outputs: Outputs, context: ActContext) -> Acted:
        seen.add(context.agent_steps)
        return super().act(outputs, context)


SCHEDULED = dataclasses.replace(recipes.find("paac"), algorithm=Scheduled(), source="")


@pytest.fixture(autouse=True)
def nothing_seen() -> None:
    seen.clear()


def train(recipe: str | scanline.Recipe, out: Path, **changes: Any) -> scanline.Run:
    return scanline.train(recipe, CATCH, out=out, **{**SHORT, **changes})


def test_an_evaluation_acts_at_the_agent_steps_of_the_checkpoint(tmp_path: Path) -> None:
    run = train(SCHEDULED, tmp_path / "run")
    seen.clear()
    scores = scanline.evaluate(run.folder, episodes=2, recipe=SCHEDULED)
    assert seen == {scores.agent_steps} == {run.agent_steps}
    seen.clear()
    policy = scanline.load_policy(run.folder, recipe=SCHEDULED)
    policy.act(np.zeros(policy.spaces.observation_shape, "uint8"))
    assert seen == {run.agent_steps}


def test_a_pause_and_a_confirmation_act_at_the_agent_steps_of_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at, play_games = list[set[int]](), scoring.evaluation.play_games

    def watched(*given: Any, **limits: Any) -> Any:
        seen.clear()
        found = play_games(*given, **limits)
        at.append(set(seen))
        return found

    monkeypatch.setattr(scoring.evaluation, "play_games", watched)
    run = train(SCHEDULED, tmp_path / "run", target_score=-100.0, agent_steps=4_000, **PAUSES)
    lines = (tmp_path / "run" / "evaluations.jsonl").read_text().splitlines()
    pauses = [json.loads(line)["agent_steps"] for line in lines]
    assert run.stop.kind == "target_score" and run.confirmation is not None
    assert pauses and at == [{steps} for steps in (*pauses, run.agent_steps)]
    assert run.confirmation.agent_steps == run.agent_steps


def test_a_schedule_that_spans_the_run_is_known_in_evaluation(tmp_path: Path) -> None:
    steps = {"rollout_samples": 64, "decorrelation_agent_steps": 0}
    run = train("accelerated-ppo", tmp_path / "run", **steps)
    policy = scanline.load_policy(run.folder).policy
    algorithm = policy._algorithm
    assert algorithm.clip_at(policy.agent_steps) == pytest.approx(
        0.2 * max(0, 1 - run.agent_steps / 400)
    )


@pytest.mark.parametrize("recipe", CHOICES)
def test_every_algorithm_declares_how_it_is_evaluated(recipe: str) -> None:
    assert str(recipes.find(recipe).algorithm.evaluation_choice) == CHOICES[recipe]


@pytest.mark.parametrize("recipe", ["paac", "dqn"])
def test_every_score_says_how_actions_were_chosen_and_by_which_core(
    recipe: str, tmp_path: Path
) -> None:
    out, words = tmp_path / "run", list[str]()
    run = train(recipe, out, say=words.append, target_score=-100.0, agent_steps=40_000, **PAUSES)
    rows = [json.loads(line) for line in (out / "evaluations.jsonl").read_text().splitlines()]
    assert {row["actions"] for row in rows} == {CHOICES[recipe]}
    assert {row["engine"] for row in rows} == {ENGINE}
    spoken = [sentence for sentence in words if sentence.startswith("Evaluation")]
    assert all(f"actions {CHOICES[recipe]}, engine {ENGINE}" in each for each in spoken)
    assert len(spoken) == len(rows) > 0
    assert run.confirmation is not None
    for scores in (run.confirmation, scanline.evaluate(out, episodes=2)):
        assert (scores.actions, scores.engine) == (CHOICES[recipe], ENGINE)
        assert f"after {run.agent_steps:,} agent steps, actions {CHOICES[recipe]}, engine " in (
            scores.sentence()
        )
    assert scanline.evaluate(out, episodes=2, greedy=True).actions == "greedy"
    assert scanline.evaluate(out, episodes=2, greedy=False).actions == "sampled as in training"


def test_the_user_s_choice_of_actions_on_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = train("dqn", tmp_path / "run").folder
    for words, actions in [
        ([], "greedy with epsilon 0.05"),
        (["--greedy"], "greedy"),
        (["--sampled"], "sampled as in training"),
    ]:
        assert cli.main(["evaluate", str(out), "--episodes", "2", *words]) == 0
        assert f"actions {actions}, engine {ENGINE}" in capsys.readouterr().out
    for command in ("evaluate", "play"):
        assert cli.main([command, str(out), "--greedy", "--sampled"]) == 2
        assert "--greedy and --sampled exclude each other" in capsys.readouterr().err
    assert cli.main(["play", str(out), "--most-agent-steps", "4", "--sampled"]) == 0


def test_a_greedy_policy_takes_the_best_action_and_a_sampled_one_explores(tmp_path: Path) -> None:
    """Of a value learner whose schedule stands at a chance of one."""
    exploring = {"epsilon_start": 1.0, "epsilon_end": 1.0}
    out = train("dqn", tmp_path / "run", **exploring).folder
    actions = {}
    for greedy in (True, False):
        policy = scanline.load_policy(out, greedy=greedy)
        zeros = np.zeros((200, *policy.spaces.observation_shape), "uint8")
        actions[greedy] = set(policy.act(zeros).tolist())
    assert len(actions[True]) == 1
    assert actions[False] == {0, 1, 2}
