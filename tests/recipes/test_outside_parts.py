"""Every part of a recipe may be a user's own, from one file outside of the package.

Each file trains, and a run that is stopped and resumed ends bit for bit like one that was not.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import scanline
from scanline import recipes, training
from scanline.runs.checkpoint import load_chosen

CATCH = "scanline/Catch-v0"
HEAD = """
import dataclasses
import math
from dataclasses import dataclass, field
import torch
from scanline import (
    Recipe, algorithms, networks, paces, parameters, protocols, random, records, samplers, stores
)

SMALL = dict(
    name="outside", summary="A part of its own.", network="mlp", protocol="as-is",
    algorithm=algorithms.ActorCritic(),
    optimiser=parameters.OptimiserSettings(kind="adam", learning_rate=1e-3),
    sampling=samplers.SamplingSettings(num_envs=4, rollout_agent_steps=5),
)
"""
STORE = """
@dataclass(frozen=True, kw_only=True)
class NewestFirst(stores.RolloutSettings):
    num_kept: int = 3

    def build(self, context):
        return Backwards(super().build(context), self.num_kept)

class Backwards:
    keeps_rows = False

    def __init__(self, inner, num_kept):
        self.inner, self.num_kept = inner, num_kept

    def slot(self):
        return self.inner.slot()

    def put(self, experience):
        self.inner.put(experience)

    owes = property(lambda self: self.inner.owes)

    def batches(self):
        for batch in self.inner.batches():
            order = torch.arange(len(batch.actions) - 1, len(batch.actions) - 1 - self.num_kept, -1)
            yield dataclasses.replace(
                batch, observations=batch.observations[order], actions=batch.actions[order],
                columns={name: column[order] for name, column in batch.columns.items()},
            )

    def feedback(self, batch, priorities):
        assert len(batch.actions) == self.num_kept

    def state(self):
        return self.inner.state()

    def load(self, state):
        self.inner.load(state)

recipe = Recipe(**SMALL, store=NewestFirst())
"""
PACE = """
@dataclass(frozen=True, kw_only=True)
class Twice(paces.Alternate):
    def build(self, context):
        return TwiceRuntime(context)

class TwiceRuntime(paces.SynchronousRuntime):
    # Learns from every rollout a second time, with a store that gives it again.
    def run(self, run):
        parts = self._context.surround(self._parts, run)
        while run.goes_on():
            slot = parts.sampler.collect(parts.policy, into=parts.store.slot())
            for _ in range(2):
                parts.store.put(parts.algorithm.prepare(parts.parameters.read(), slot))
                paces.learn(parts, run)
            run.collected(slot)

recipe = Recipe(**SMALL, pace=Twice())
"""
PROTOCOL = """
recipe = Recipe(**SMALL | {"protocol": protocols.get("as-is").replace(stack=2)})
"""
EXCHANGE = """
class Averaged(parameters.LocalParameters):
    # Every update ends halfway between the weights before and after it.
    def apply(self, views, losses, agent_steps):
        before = [each.detach().clone() for each in self.network.parameters()]
        norms = super().apply(views, losses, agent_steps)
        with torch.no_grad():
            for each, old in zip(self.network.parameters(), before, strict=True):
                each.lerp_(old, 0.5)
        return norms

@dataclass(frozen=True, kw_only=True)
class HalfSteps(parameters.Alone):
    def build(self, context):
        return Averaged(context.network, context.optimiser, **context.learning)

recipe = Recipe(**SMALL, exchange=HalfSteps())
"""
NETWORK = """
class Net(torch.nn.Module):
    def __init__(self, spaces):
        super().__init__()
        self.body = torch.nn.Linear(math.prod(spaces.observation_shape), 16)
        self.policy, self.value = torch.nn.Linear(16, spaces.num_actions), torch.nn.Linear(16, 1)

    def forward(self, observations):
        rows = torch.relu(self.body(observations.flatten(1).float() / 255))
        return records.PolicyValue(self.policy(rows), self.value(rows)[:, 0])

recipe = Recipe(**SMALL | {"network": Net})
"""
SCHEDULE = """
@dataclass(frozen=True, kw_only=True)
class Cosine(parameters.OptimiserSettings):
    def schedule(self, total_agent_steps, num_envs=1):
        return lambda done: self.learning_rate * (1 + math.cos(math.pi * done / total_agent_steps))

recipe = Recipe(**SMALL | {"optimiser": Cosine(kind="adam", learning_rate=1e-3)})
"""
OPTIMISER = """
recipe = Recipe(**SMALL | {
    "optimiser": parameters.TorchSettings(factory=torch.optim.RAdam, learning_rate=1e-3),
})
"""
NOISY = """
# Noisy net: no epsilon, normal numbers for every environment and step, a Polyak target.
class NoisyHead(torch.nn.Module):
    def __init__(self, hidden, spaces):
        super().__init__()
        self.stream = hidden.stream()
        self.q = networks.NoisyLinear(hidden.size, spaces.num_actions)

    def forward(self, features):
        return Values(self.stream(features), self.q)

@dataclass(frozen=True)
class Values:
    rows: torch.Tensor
    layer: torch.nn.Module

    def q(self, normals=None):
        return self.layer(self.rows, normals)

@dataclass(frozen=True, kw_only=True)
class NoisyDqn(algorithms.Defaults):
    num_normals: int = 131
    head = property(lambda self: NoisyHead)
    needs = property(lambda self: frozenset({"pairs", "target"}))
    draws_per_step = property(lambda self: self.num_normals)

    def init(self, spaces, num_envs):
        assert num_envs == 4
        return {}

    def act(self, outputs, context):
        normals = None if context.choice.greedy else random.normals(context.uniforms)
        return records.Acted(outputs.q(normals).argmax(-1), {})

    def loss(self, views, batch):
        normals = torch.randn(2, len(batch.actions), self.num_normals, generator=batch.random)
        q = views.live(batch.observations).q(normals[0]).gather(1, batch.actions[:, None])[:, 0]
        with torch.no_grad():
            best = views.target(batch.next_observations).q(normals[1]).amax(-1)
        target = batch.columns["reward"] + batch.columns["discount"] * best
        return records.LossResult({"all": (q - target).square().mean()})

recipe = Recipe(
    **SMALL | {"algorithm": NoisyDqn()},
    pace=paces.Alternate(target_rate=0.01),
    store=stores.ReplaySettings(
        capacity_agent_steps=400, learning_starts_agent_steps=40, batch_size=8
    ),
)
"""
RANDOM = """
@dataclass(frozen=True, kw_only=True)
class Dithered(algorithms.Ppo):
    def loss(self, views, batch):
        result = super().loss(views, batch)
        dither = torch.rand((), generator=batch.random)
        return dataclasses.replace(result, losses={"all": result.losses["all"] * dither})

recipe = Recipe(**SMALL | {"algorithm": Dithered()})
"""
FILES = {
    "store": STORE,
    "pace": PACE,
    "protocol": PROTOCOL,
    "exchange": EXCHANGE,
    "network": NETWORK,
    "schedule": SCHEDULE,
    "optimiser": OPTIMISER,
    "noisy": NOISY,
    "random": RANDOM,
}
SHORT: dict[str, Any] = {
    "num_workers": 0,
    "torch_threads": 1,
    "live": False,
    "tensorboard": False,
    "say": lambda sentence: None,
}


def weights(run: Path) -> str:
    state = load_chosen(run / "checkpoints", None).state
    tensors = {**state["parameters"]["network"], **state["parameters"]["target"]}
    return json.dumps({name: tensor.tolist() for name, tensor in tensors.items()})


@pytest.mark.parametrize("part", FILES)
def test_a_part_from_outside_trains_and_resumes_bit_for_bit(tmp_path: Path, part: str) -> None:
    file = tmp_path / "outside.py"
    file.write_text(HEAD + FILES[part])
    steps = {"agent_steps": 200, "log_every_agent_steps": 40}
    whole = scanline.train(str(file), CATCH, out=tmp_path / "whole", **SHORT, **steps).folder

    def stop(progress: scanline.TrainingProgress) -> bool:
        return progress.agent_steps < 80

    out = tmp_path / "stopped"
    first = scanline.train(str(file), CATCH, out=out, callback=stop, **SHORT, **steps)
    assert first.agent_steps < 200
    scanline.train(str(file), CATCH, out=out, resume=True, **SHORT, **steps)
    assert weights(out) == weights(whole)
    if part != "noisy":
        return
    assert scanline.evaluate(whole, episodes=2).scores, "greedy, without noise"
    policy = scanline.load_policy(whole)
    assert policy.act(np.zeros(policy.spaces.observation_shape, np.uint8)) in range(3)


def test_a_protocol_of_a_user_s_own_is_played_and_another_one_can_be_named(tmp_path: Path) -> None:
    file = tmp_path / "outside.py"
    file.write_text(HEAD + PROTOCOL)
    plan = training.make_plan(str(file), CATCH)
    assert plan.protocol.stack == 2
    run = scanline.train(
        str(file), CATCH, out=tmp_path / "run", protocol="as-is", agent_steps=40, **SHORT
    )
    assert training.read_plan(run.folder).recipe.protocol == "as-is"


def test_an_optimiser_of_pytorch_s_does_not_go_with_a_central_store() -> None:
    recipe = recipes.find("pqn")
    with pytest.raises(ValueError, match="our own optimisers only"):
        scanline.Recipe(
            **{name: getattr(recipe, name) for name in ("name", "summary", "algorithm")},
            optimiser=recipe.optimiser,
            exchange=scanline.parameters.CentralSettings(),
        )
