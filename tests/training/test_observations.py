"""One description of what the agent sees: what a loss receives is what `make` gives.

For every protocol the same actions are played twice, by a training run and by the public vector
environment. Actions come from the counters that every sampler draws from, so they name a step: each
observation in a batch is compared with the one that `make` gave before that step, and what follows
a step with what `make` gave after it.
"""

from __future__ import annotations

import dataclasses
import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import scanline
from scanline import engines, evaluation, protocols, random
from scanline.algorithms import ActorCritic, Defaults
from scanline.engines import EngineSettings
from scanline.evaluation import film
from scanline.parameters import OptimiserSettings
from scanline.protocols import Protocol
from scanline.random import SAMPLED
from scanline.recipes import Recipe
from scanline.records import (
    ActContext,
    Acted,
    Batch,
    Column,
    Experience,
    LossResult,
    Outputs,
    PolicyValue,
    Slot,
    Spaces,
    Views,
)
from scanline.runners import concurrent
from scanline.runners.concurrent import Concurrent
from scanline.runners.free_running import FreeRunning
from scanline.samplers import DynamicSettings, LockstepSampler, SamplingSettings
from scanline.stores import ReplaySettings, RolloutSettings, SegmentSettings, WindowSettings
from scanline.training import scoring
from scanline.training.plan import make_plan

GAME, CATCH = "qbert", "scanline/Catch-v0"
# Qbert's picture moves while nothing is pressed, and lives are lost soon.
NUM_ENVS, NUM_STEPS, SEED, LIMIT_FRAMES = 3, 60, 5, 92
ATARI = [name for name in protocols.PRESETS if name != "as-is"]
PADDINGS = ["nature", "baselines", "paac", "ga3c"]
"""A protocol of each `stack_padding`."""
Mark = tuple[float, float]


@dataclass
class Seen:
    """What a run showed to its loss, by the numbers that chose the actions."""

    before: list[tuple[Tensor, Tensor]]
    """Marks [N, 2] and observations [N, S, ...]."""
    after: list[tuple[Tensor, Tensor]]
    """The same of what follows a step."""


SEEN = Seen([], [])


@dataclass(frozen=True, kw_only=True)
class Recorder(Defaults):
    """Plays by chance alone; its loss remembers what it is given."""

    def columns(self, spaces: Spaces) -> dict[str, Column]:
        return {"mark": Column((2,))}

    def act(self, outputs: Outputs, context: ActContext) -> Acted:
        actions = chosen(context.uniforms, outputs.logits.shape[-1])
        return Acted(actions, {"mark": context.uniforms.clone()})

    def prepare(self, views: Views, slot: Slot) -> Experience:
        finals = slot.finals
        marks = slot.columns["mark"][finals.steps, finals.envs]
        SEEN.after.append((marks, finals.frames.clone()))
        goes_on = ~(slot.terminated | slot.truncated)[-1]
        newest = slot.observation(slot.num_steps)[goes_on]
        SEEN.after.append((slot.columns["mark"][-1][goes_on], newest.clone()))
        return Experience(slot)

    def loss(self, views: Views, batch: Batch) -> LossResult:
        marks = batch.columns["mark"].clone()
        SEEN.before.append((marks, batch.observations[: len(marks)].clone()))
        if batch.next_observations is not None:
            lasts = batch.columns["discount"] > 0
            SEEN.after.append((marks[lasts], batch.next_observations[lasts].clone()))
        return LossResult({"all": views.live(batch.observations).value.mean()})


@dataclass(frozen=True, kw_only=True)
class AgentRecorder(ActorCritic):
    """The same for agents that are served in any order."""

    columns = Recorder.columns
    act = Recorder.act
    prepare = Recorder.prepare
    loss = Recorder.loss


class OneWeight(nn.Module):
    """Looks at nothing."""

    def __init__(self, spaces: Spaces) -> None:
        super().__init__()
        self.weight, self.num_actions = nn.Parameter(torch.zeros(1)), spaces.num_actions

    def forward(self, observations: Tensor) -> PolicyValue:
        num = len(observations)
        return PolicyValue(self.weight.expand(num, self.num_actions), self.weight.expand(num))


def chosen(uniforms: Tensor, num_actions: int) -> Tensor:
    return (uniforms[:, 1] * num_actions).long()


def recipe_of(**parts: Any) -> Recipe:
    sampling = SamplingSettings(num_envs=NUM_ENVS, rollout_agent_steps=4)
    rest = {"algorithm": Recorder(), "sampling": sampling, "store": RolloutSettings(), **parts}
    optimiser = OptimiserSettings(kind="adam", learning_rate=1e-3)
    return Recipe(name="own", summary="", network=OneWeight, optimiser=optimiser, **rest)


REPLAY = ReplaySettings(
    capacity_agent_steps=NUM_ENVS * 30,
    batch_size=16,
    training_intensity=4.0,
    learning_starts_agent_steps=0,
)
RECIPES = {
    "rollout": recipe_of(),
    "two groups": recipe_of(
        sampling=SamplingSettings(num_envs=4, rollout_agent_steps=3, num_groups=2)
    ),
    "minibatches": recipe_of(store=RolloutSettings(num_minibatches=2)),
    "window": recipe_of(
        sampling=SamplingSettings(num_envs=NUM_ENVS, rollout_agent_steps=2),
        store=WindowSettings(window_agent_steps=6, num_blocks=NUM_ENVS),
    ),
    "replay": recipe_of(store=REPLAY),
    "staged replay": recipe_of(store=REPLAY, pace=Concurrent(target_agent_steps=NUM_ENVS * 12)),
    "segments": recipe_of(
        algorithm=AgentRecorder(),
        sampling=DynamicSettings(num_envs=NUM_ENVS, rollout_agent_steps=4),
        store=SegmentSettings(min_batch_agent_steps=8),
        pace=FreeRunning(num_predictors=1, num_trainers=1),
    ),
}


@pytest.fixture(autouse=True)
def short_games(monkeypatch: pytest.MonkeyPatch) -> None:
    """Games end soon, and a stack has older frames."""
    for name, preset in protocols.PRESETS.items():
        changes: dict[str, Any] = {"episode_limit_frames": LIMIT_FRAMES}
        if name == "as-is":
            changes = {"episode_limit_frames": 9, "stack": 3}
        monkeypatch.setitem(
            protocols.PRESETS,  # type: ignore[arg-type]
            name,
            dataclasses.replace(preset, **changes),
        )


@dataclass
class Made:
    """What `make` gave for the same actions."""

    before: dict[Mark, np.ndarray]
    after: dict[Mark, np.ndarray]
    """A lost life aside, where the game goes on or was truncated: the true last observation."""
    num_ends: int


def marks_of(uniforms: Tensor) -> list[Mark]:
    return [(float(a), float(b)) for a, b in uniforms]


@functools.cache
def made(
    protocol: Protocol,
    *,
    game: str = GAME,
    seed: int = SEED,
    begins_at: tuple[int, ...] = (),
    **options: Any,
) -> Made:
    envs = scanline.make(
        game, protocol=protocol, seed=seed, autoreset_mode="same-step", **{"num_envs": 4, **options}
    )
    draws = random.EnvStream(seed, "act", np.arange(envs.num_envs))
    found = Made({}, {}, 0)
    seen, _ = envs.reset()
    for step in range(2 * NUM_STEPS):
        if step in begins_at:
            seen, _ = envs.reset()
        uniforms = draws.at(step)
        actions = chosen(uniforms, envs.single_action_space.n).numpy()
        following, _, _, truncated, info = envs.step(actions)
        for env, mark in enumerate(marks_of(uniforms)):
            assert mark not in found.before, "two steps have the same mark"
            found.before[mark] = seen[env]
            last = info["final_obs"] if truncated[env] else following
            found.after[mark] = last[env]
        found.num_ends += int(truncated.sum())
        seen = following
    envs.close()
    return found


def compare(found: list[tuple[Tensor, Tensor]], expected: dict[Mark, np.ndarray]) -> int:
    """Number of comparisons; agents in flight may play more steps than `made` did."""
    num = 0
    for marks, observations in found:
        for mark, observation in zip(marks_of(marks), observations, strict=True):
            if mark in expected:
                np.testing.assert_array_equal(observation.numpy(), expected[mark])
                num += 1
    return num


def train(recipe: Recipe, game: str, out: Path, **options: Any) -> None:
    SEEN.before.clear()
    SEEN.after.clear()
    chosen = {
        "live": False,
        "tensorboard": False,
        "torch_threads": 1,
        "num_threads": 1,
        "agent_steps": recipe.sampling.num_envs * NUM_STEPS,
        **options,
    }
    scanline.train(recipe, game, out=out, seed=SEED, say=lambda sentence: None, **chosen)


def assert_sees_what_make_gives(recipe: Recipe, made_by: Made) -> None:
    steps = recipe.sampling.num_envs * NUM_STEPS
    assert made_by.num_ends > 4
    assert compare(SEEN.before, made_by.before) > steps // 4
    assert compare(SEEN.after, made_by.after) > 4


@pytest.mark.parametrize("name", ATARI)
def test_a_loss_receives_what_make_gives(name: str, tmp_path: Path) -> None:
    recipe = RECIPES["rollout"].replace(protocol=name)
    train(recipe, GAME, tmp_path / "run")
    assert_sees_what_make_gives(recipe, made(protocols.get(name), reset="cached"))


@pytest.mark.parametrize("name", PADDINGS)
@pytest.mark.parametrize("kind", [kind for kind in RECIPES if kind != "rollout"])
def test_every_store_gives_what_make_gives(
    kind: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(concurrent, "RandomPolicy", RecordingPolicy)  # the same, with marks
    abandoned_at = note_abandoned(monkeypatch)
    recipe = RECIPES[kind].replace(protocol=name)
    train(recipe, GAME, tmp_path / "run")
    given = made(protocols.get(name), reset="cached", begins_at=tuple(abandoned_at))
    assert_sees_what_make_gives(recipe, given)


def note_abandoned(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Steps at which a sampler begins new games: after the random steps of concurrent runs."""
    found: list[int] = []
    abandon = LockstepSampler.abandon

    def noted(sampler: LockstepSampler) -> None:
        found.append(sampler.state()["env_steps"])
        abandon(sampler)

    monkeypatch.setattr(LockstepSampler, "abandon", noted)
    return found


@pytest.mark.parametrize("name", PADDINGS)
def test_an_exact_reset_gives_what_make_gives(name: str, tmp_path: Path) -> None:
    recipe = RECIPES["rollout"].replace(protocol=name)
    train(recipe, GAME, tmp_path / "run", reset="ale")
    assert_sees_what_make_gives(recipe, made(protocols.get(name), reset="ale"))


@pytest.mark.parametrize("name", PADDINGS)
@pytest.mark.parametrize("kind", ["rollout", "window", "replay"])
def test_a_resumed_run_sees_what_make_gives(kind: str, name: str, tmp_path: Path) -> None:
    """The first part ends one step after all games began anew: every stack is young."""
    recipe = RECIPES[kind].replace(protocol=name)
    train(recipe, GAME, tmp_path / "run", agent_steps=NUM_ENVS * (LIMIT_FRAMES // 4 + 1))
    train(recipe, GAME, tmp_path / "run", resume=True)
    assert_sees_what_make_gives(recipe, made(protocols.get(name), reset="cached"))


@pytest.mark.parametrize("padding", ["zeros", "repeat"])
@pytest.mark.parametrize(("engine", "name"), [("ale", "ale-vector"), ("gymnasium", "as-is")])
def test_other_engines_give_what_make_gives(
    engine: str, name: str, padding: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = dataclasses.replace(protocols.get(name), stack_padding=padding)
    monkeypatch.setitem(protocols.PRESETS, name, rules)  # type: ignore[arg-type]
    recipe, game = RECIPES["rollout"].replace(protocol=name), CATCH if name == "as-is" else GAME
    train(recipe, game, tmp_path / "run", engine=engine, num_workers=0)
    given = made(rules, game=game, engine=engine, num_workers=0)
    assert_sees_what_make_gives(recipe, given)


class RecordingPolicy:
    """Plays as `Recorder` does."""

    version = agent_steps = 0
    draws_per_step = 2
    choice = SAMPLED

    def __init__(self, num_actions: int) -> None:
        self._num_actions = num_actions
        self.seen: list[tuple[Tensor, Tensor]] = []

    def __call__(self, observations: Tensor, uniforms: Tensor, agent_steps: int) -> Acted:
        self.seen.append((uniforms.clone(), observations.clone()))
        return Acted(chosen(uniforms, self._num_actions), {"mark": uniforms.clone()})


@pytest.mark.parametrize("name", PADDINGS)
def test_evaluation_and_film_see_what_make_gives(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = make_plan(RECIPES["rollout"].replace(protocol=name), GAME, num_threads=1)
    rules = scoring.evaluation_protocol(protocols.get(name))
    given = made(rules, reset="ale", seed=7)
    engine = scoring.evaluation_engine(plan, games=1, seed=7)
    policy = RecordingPolicy(engine.spaces.num_actions)
    scoring.score(plan, policy, games=3, seed=7)
    assert compare(policy.seen, given.before) > 30
    monkeypatch.setattr(film, "_package", MagicMock())
    policy = RecordingPolicy(engine.spaces.num_actions)
    evaluation.make_film(engine, policy, seed=7, most_agent_steps=40, out=tmp_path / "film")
    engine.close()
    assert compare(policy.seen, given.before) > 10


@pytest.mark.parametrize("name", PADDINGS)
def test_random_steps_before_training_leave_the_stacks_of_the_protocol(name: str) -> None:
    """Against `make`, which is reset by mask where a game begins and plays the same actions."""
    rules, most_steps = protocols.get(name), 11
    settings = EngineSettings(
        game=GAME, num_envs=4, num_groups=2, protocol=rules, seed=SEED, num_threads=1
    )
    engine = engines.build("native", settings)
    sampler, policy = LockstepSampler(engine, SEED), RecordingPolicy(engine.spaces.num_actions)
    sampler.reset(most_steps)
    sampler.collect(policy, Slot.allocate(engine.spaces, 1, 4, {}))
    engine.close()
    envs = scanline.make(
        GAME, 4, protocol=rules, seed=SEED, batch_size=2, autoreset_mode="same-step"
    )
    seen, _ = envs.reset()
    chance = random.uniforms(SEED, "decorrelate", np.arange(4), 0)[:, 0]
    starts = most_steps - (chance * (most_steps + 1)).astype(np.int64)
    for step in range(most_steps):
        drawn = random.uniforms(SEED, "decorrelate", np.arange(4), step + 1)[:, 0]
        if (starts == step).any():
            envs.reset(options={"reset_mask": starts == step})
        seen = envs.step((drawn * engine.spaces.num_actions).astype(np.int64))[0]
    envs.close()
    np.testing.assert_array_equal(torch.cat([o for _, o in policy.seen]).numpy(), seen)


@pytest.mark.parametrize("name", PADDINGS)
def test_a_loaded_policy_knows_the_padding_it_learned_from(name: str, tmp_path: Path) -> None:
    recipe = RECIPES["rollout"].replace(protocol=name)
    train(recipe, GAME, tmp_path / "run")
    spaces = scanline.load_policy(tmp_path / "run", recipe=recipe).spaces
    assert spaces.stack_padding == protocols.get(name).stack_padding
