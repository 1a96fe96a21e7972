"""Every recipe on a simulated device: losses as on the CPU, and what may cross and wait."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch

import scanline
from scanline import random, recipes, simulated, training
from scanline.devices import HOST, download
from scanline.engines.lanes import NUMBERS
from scanline.errors import RefusedError
from scanline.interfaces import Parts
from scanline.recipes import Recipe
from scanline.runs.loggers import PROGRESS
from scanline.stores import UniformSampling

GAME = "scanline/Catch-v0"
NUM_ENVS = 4
COMMON: dict[str, Any] = {
    "protocol": "as-is",
    "engine": "gymnasium",
    "num_workers": 0,
    "network": "mlp",
    "kernels": "torch",
    "torch_threads": 1,
    "num_envs": NUM_ENVS,
    "agent_steps": 120,
    "log_every_agent_steps": 60,
    "tensorboard": False,
    "seed": 3,
}
TOLERANCE = 1e-4
"""Of losses, relative: the CPU's own loss and norm are native code with other sums."""


def small(recipe: Recipe) -> dict[str, Any]:
    """Settings of a run of a second that has learned a few times."""
    names = {leaf.name for leaf in scanline.settings.leaves(recipe)}
    changes = dict(COMMON)
    if "decorrelation_agent_steps" in names:
        changes["decorrelation_agent_steps"] = 0
    if "num_blocks" in names:
        rollout, envs = recipe.sampling.horizon_agent_steps, max(4, recipe.store.num_blocks)
        changes |= {"num_envs": envs, "window_agent_steps": 2 * rollout}
        changes |= {"agent_steps": 4 * rollout * envs}
    if "epochs" in names and recipe.store.epochs > 1:
        long = recipe.sampling.rollout_agent_steps == 0
        changes |= {"rollout_samples": 32} if long else {"rollout_agent_steps": 8}
        changes |= {"num_minibatches": 2, "agent_steps": 64}
    if "batch_trajectories" in names:
        changes |= {"batch_trajectories": 4, "rollout_agent_steps": 5}
    if "capacity_agent_steps" in names:
        changes |= {"capacity_agent_steps": 100, "batch_size": 8, "training_intensity": 0.5}
        changes |= {"learning_starts_agent_steps": 20, "target_agent_steps": 40}
        changes |= {"evaluate_every_agent_steps": 0}
    if "concurrent_training" in names:
        changes |= {"rollout_agent_steps": 5, "training_intensity": 0.8}
    if recipe.exchange.is_central:
        changes |= {"learners": 1}
    return changes


def losses(folder: Path) -> list[dict[str, float]]:
    rows = [json.loads(line) for line in (folder / PROGRESS).read_text().splitlines()]
    return [{n: v for n, v in row.items() if n.startswith("losses/")} for row in rows]


def train(recipe: str, out: Path, device: str, **more: Any) -> list[dict[str, float]]:
    changes = small(recipes.find(recipe)) | more
    scanline.train(
        recipe, GAME, out=out, device=device, live=False, say=lambda sentence: None, **changes
    )
    return losses(out)


def assert_near(mine: list[dict[str, float]], theirs: list[dict[str, float]], near: float) -> None:
    assert len(mine) == len(theirs) > 0
    assert any(row for row in mine)
    for row, other in zip(mine, theirs, strict=True):
        assert row.keys() == other.keys()
        for name, value in row.items():
            assert value == pytest.approx(other[name], rel=near, abs=near), name


@pytest.mark.parametrize("recipe", sorted(recipes.RECIPES))
def test_a_recipe_learns_on_a_simulated_device_as_on_the_cpu(recipe: str, tmp_path: Path) -> None:
    there = train(recipe, tmp_path / "there", "simulated")
    if not takes_turns(recipes.find(recipe)):
        assert any(each for each in there)  # whose steps meet depends on the clock
        return
    assert_near(there, train(recipe, tmp_path / "here", "cpu"), TOLERANCE)


def parts_of(recipe: str, **more: Any) -> tuple[training.PreparedRun, Parts]:
    """The parts of a run on a simulated device, its games begun."""
    changes = small(recipes.find(recipe)) | {"device": "simulated"} | more
    plan = training.make_plan(recipe, GAME, live=False, **changes)
    made = training.prepared(plan, lambda part: None, lambda sentence: None)
    parts = made.context.parts
    parts.sampler.begin()
    return made, parts


def play(parts: Parts) -> None:
    slot = parts.sampler.collect(parts.policy, into=parts.store.slot())
    with torch.no_grad():
        experience = parts.algorithm.prepare(parts.parameters.read(), slot)
    parts.parameters.keep(experience.state)
    parts.store.put(experience)


def learn(parts: Parts) -> int:
    """Gives the number of updates; no metric is read."""
    updates = 0
    for batch in parts.store.batches():
        views = parts.parameters.read()
        result = parts.algorithm.loss(views, batch)
        parts.parameters.apply(views, result.losses, batch.agent_steps)
        parts.store.feedback(batch, result.priorities)
        updates += 1
    return updates


class Budget:
    """What some turns of a recipe have moved, waited for and launched."""

    def __init__(self, recipe: str, turns: int = 6, **more: Any) -> None:
        made, parts = parts_of(recipe, **more)
        for _ in range(40):  # until the store gives batches
            play(parts)
            if learn(parts):
                break
        self.acting, self.learning = simulated.Traffic(), simulated.Traffic()
        self.updates = 0
        for _ in range(turns):
            with simulated.measured(self.acting):
                play(parts)
            with simulated.measured(self.learning):
                self.updates += learn(parts)
        sampling = made.plan.recipe.sampling
        self.group_steps = turns * sampling.horizon_agent_steps * sampling.num_groups
        self.group_envs = sampling.num_envs // sampling.num_groups
        self.frame_bytes = made.context.spaces.frame_bytes
        made.context.close()


OPERATIONS = {"paac": (20, 86), "ppo": (23, 151), "cule-vtrace": (56, 140), "dqn": (16, 55)}
"""Launches per step of a group, and per update, at most."""


def takes_turns(recipe: Recipe) -> bool:
    """Whether one thread plays and learns by turns, so that a test can count them apart."""
    return not recipe.exchange.is_central and "free threads" not in recipe.pace.gives


def driven() -> list[str]:
    """Recipes that `play` and `learn` of this file can drive: fast DQN commits at its own times."""
    turns = (name for name, row in recipes.RECIPES.items() if takes_turns(row))
    return sorted(name for name in turns if not name.startswith("fast-dqn"))


@pytest.mark.parametrize("recipe", driven())
def test_the_budget_of_a_simulated_run(recipe: str) -> None:
    budget = Budget(recipe)
    acting, learning, steps = budget.acting, budget.learning, budget.group_steps
    # One wait per step of a group, for its actions; learning waits for nothing but priorities,
    # which the host's tree of a prioritised replay gets back.
    assert acting.downloads == acting.waits == steps
    assert acting.downloaded_bytes == steps * budget.group_envs * 8
    assert learning.waits == (budget.updates if recipe == "accelerated-rainbow" else 0)
    # Each frame goes up once, 12 bytes per step follow; young stacks add tables of their planes.
    frames = budget.group_envs * budget.frame_bytes
    assert acting.upload_sizes[frames] == steps
    tables = acting.uploaded_bytes - steps * (frames + 12 * budget.group_envs)
    assert 0 <= tables < steps * frames
    assert acting.operations > 0 and learning.operations > 0
    if recipe in OPERATIONS:
        most_acting, most_learning = OPERATIONS[recipe]
        assert acting.operations <= most_acting * steps
        assert learning.operations <= most_learning * budget.updates


def test_the_budget_of_simulated_replays() -> None:
    host = Budget("dqn", replay_place="host")
    there = Budget("dqn", replay_place="device")
    # A batch is one upload: with its frames, or with their addresses.
    assert host.learning.uploads == host.updates == there.learning.uploads == there.updates
    assert there.learning.uploaded_bytes < host.learning.uploaded_bytes
    prioritised = Budget("accelerated-rainbow")
    assert prioritised.learning.waits == prioritised.learning.downloads == prioritised.updates


def weights_and_traffic(recipe: str, engine: str) -> tuple[list[Any], simulated.Traffic]:
    """Of a short run on Atari, after its games have begun."""
    small = {"num_envs": 20, "decorrelation_agent_steps": 3, "network": "nature"}
    atari = {"engine": engine, "protocol": "baselines", "kernels": "torch", "torch_threads": 1}
    plan = training.make_plan(recipe, "pong", live=False, device="simulated", **small, **atari)
    made = training.prepared(plan, lambda part: None, lambda sentence: None)
    parts = made.context.parts
    parts.sampler.begin()
    with simulated.measured() as traffic:
        for _ in range(5):
            play(parts)
            updates = learn(parts)
    assert updates
    made.context.close()
    return [download(each).copy() for each in parts.parameters.read().live.parameters()], traffic


@pytest.mark.parametrize("recipe", ["paac", "vtrace"])
def test_no_frame_crosses_to_a_simulated_device_that_an_engine_plays_on(recipe: str) -> None:
    copied, across = weights_and_traffic(recipe, "native")
    written, in_place = weights_and_traffic(recipe, "gpu-host")
    for mine, theirs in zip(written, copied, strict=True):
        assert np.array_equal(mine, theirs)
    frame, envs, steps = 84 * 84, 20, 25
    assert across.upload_sizes[envs * frame] == steps
    # Up: actions, 12 bytes a step once per rollout, tables of young stacks. Down: actions, numbers.
    assert max(in_place.upload_sizes) <= 5 * envs * 12
    assert in_place.upload_sizes[envs * 4] >= steps
    assert in_place.download_sizes == {envs * 8: steps, envs * NUMBERS.itemsize: steps}


def to_host(parts: Parts, kind: str) -> None:
    """Forgets one move."""
    sampler, parameters = cast(Any, parts.sampler), cast(Any, parts.parameters)
    if kind == "observation":
        act = cast(Any, parts.policy)
        object.__setattr__(parts, "policy", HostObservations(act))
    elif kind == "draw":
        sampler._draws = [
            random.EnvStream(0, "act", each._env_ids, HOST) for each in sampler._draws
        ]
    elif kind == "batch":
        store = cast(Any, parts.store)
        readers = dataclasses.replace(store._readers, device=HOST)
        store._reader = readers.of_steps(8, UniformSampling())
    elif kind == "state":
        parameters._replace_state({n: v.cpu() for n, v in parameters.views.state.items()})
    else:
        parameters.views.target.to("cpu")


class HostObservations:
    """A policy whose observations were left on the host."""

    def __init__(self, policy: Any) -> None:
        self._policy, self.version = policy, 0
        self.draws_per_step = policy.draws_per_step

    def __call__(self, observations: torch.Tensor, uniforms: torch.Tensor, steps: int) -> Any:
        return self._policy(observations.cpu(), uniforms, steps)


@pytest.mark.parametrize(
    ("kind", "recipe", "changes"),
    [
        ("observation", "paac", {}),
        ("draw", "paac", {}),
        ("batch", "dqn", {"replay_place": "host"}),
        ("state", "cule-vtrace", {"normalise_pixels": True}),
        ("target", "dqn", {}),
    ],
)
def test_a_forgotten_move_fails_on_a_simulated_device(
    kind: str, recipe: str, changes: dict[str, Any]
) -> None:
    made, parts = parts_of(recipe, **changes)
    play(parts)
    to_host(parts, kind)

    def turns() -> None:
        for _ in range(40):
            play(parts)
            learn(parts)

    with pytest.raises(RuntimeError, match="several devices: cpu, simulated:0"):
        turns()
    made.context.close()


def test_a_run_goes_on_from_cpu_to_simulated_to_cpu(tmp_path: Path) -> None:
    out, said = tmp_path / "run", list[str]()
    devices = ("cpu", "simulated", "cpu")
    for number, device in enumerate(devices):
        changes = small(recipes.find("paac")) | {"agent_steps": 60 * (number + 1)}
        run = scanline.train(
            "paac", GAME, out=out, resume=number > 0, device=device, live=False,
            say=said.append, **changes
        )  # fmt: skip
    assert run.agent_steps == 180
    assert any("the kind of device" in reason for reason in run.inexact)
    here = train("paac", tmp_path / "here", "cpu", agent_steps=180)
    assert_near(losses(out), here, TOLERANCE)


def test_two_learners_with_a_simulated_device_each(tmp_path: Path) -> None:
    """Of both together; other metrics are those of the leading one's half of a batch."""
    name = "losses/gradient_norm"
    there = train("accelerated-ppo", tmp_path / "there", "simulated", learners=2)
    here = train("accelerated-ppo", tmp_path / "here", "cpu")
    assert_near([{name: r[name]} for r in there], [{name: r[name]} for r in here], 1e-3)


@pytest.mark.parametrize("recipe", ["paac", "ppo", "dqn"])
def test_bfloat16_learns_nearly_as_float32(recipe: str, tmp_path: Path) -> None:
    low = train(recipe, tmp_path / "low", "cpu", precision="bfloat16")
    assert_near(low, train(recipe, tmp_path / "full", "cpu"), 0.05)


def test_too_little_simulated_memory_is_one_sentence(tmp_path: Path) -> None:
    with simulated.memory(10_000), pytest.raises(RefusedError) as refused:
        train("paac", tmp_path / "run", "simulated")
    assert "but the device 'simulated:0' has 10.00 kB left; the largest share" in str(refused.value)
    assert not (tmp_path / "run").exists()
