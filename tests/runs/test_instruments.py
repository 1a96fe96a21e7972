"""Norms and cosines against their definitions; measuring changes nothing that is learned."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import torch

import scanline
from scanline.parameters import LocalParameters, OptimiserSettings
from scanline.records import Batch, LossResult, Views
from scanline.runs.instruments import Instruments, InstrumentSettings, half_of
from training.test_determinism import RECIPES, SETTINGS, weights

ON = {"norms_every_updates": 1, "cosine_every_updates": 1, "log_intensity": True}


def network() -> torch.nn.Sequential:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Tanh(), torch.nn.Linear(3, 1))


def batch_of(inputs: torch.Tensor, targets: torch.Tensor) -> Batch:
    places = torch.arange(len(inputs))
    return Batch(inputs, places, {"target": targets}, agent_steps=0, update=0, indices=places)


def loss_of(made: torch.nn.Module, batch: Batch) -> LossResult:
    error = made(batch.observations).squeeze(-1) - batch.columns["target"]
    return LossResult({"all": error.square().mean()})


def length(tensors: list[torch.Tensor]) -> float:
    return math.sqrt(sum(float(number) ** 2 for each in tensors for number in each.flatten()))


def test_norms_equal_their_definition_before_the_clip_and_around_the_step() -> None:
    made = network()
    instruments = Instruments(InstrumentSettings(norms_every_updates=2), made)
    learner = LocalParameters(
        made,
        OptimiserSettings(kind="adam"),
        max_grad_norm=1e-3,
        learning_rate=lambda agent_steps: 0.1,
        watch_at=instruments.norms_at,
    )
    first = {name: p.detach().clone() for name, p in made.named_parameters()}
    batch = batch_of(torch.randn(8, 4), torch.randn(8))
    for update in range(3):
        result = loss_of(made, batch)
        raw = torch.autograd.grad(result.losses["all"], list(made.parameters()), retain_graph=True)
        gradients = dict(zip(first, raw, strict=True))
        before = {name: p.detach().clone() for name, p in made.named_parameters()}
        metrics = learner.apply(learner.read(), result.losses, agent_steps=0)
        assert ("norms/gradient" in metrics) == (update % 2 == 0)
        if update % 2:
            continue
        now = {name: p.detach() for name, p in made.named_parameters()}
        parts = {
            "gradient": gradients,
            "parameters": now,
            "step": {name: now[name] - before[name] for name in now},
            "distance": {name: now[name] - first[name] for name in now},
        }
        for what, tensors in parts.items():
            assert metrics[f"norms/{what}"].item() == pytest.approx(
                length(list(tensors.values())), rel=1e-5
            )
            for layer in ("0", "2"):
                own = [tensors[f"{layer}.weight"], tensors[f"{layer}.bias"]]
                measured = metrics[f"norms/{what}/{layer}"].item()
                assert measured == pytest.approx(length(own), rel=1e-5)
        assert {name for name in metrics if name.startswith("norms/")} == {
            f"norms/{what}{layer}" for what in parts for layer in ("", "/0", "/2")
        }


def measured_cosine(made: torch.nn.Module, batch: Batch) -> float:
    instruments = Instruments(InstrumentSettings(cosine_every_updates=1), made)
    result = loss_of(made, batch)
    found = instruments.cosine_at(
        Views(made), batch, result, lambda views, half: loss_of(views.live, half)
    )
    result.losses["all"].backward()  # the graph is still there
    return found["norms/half_batch_cosine"].item()


def test_the_cosine_equals_its_definition() -> None:
    made = network()
    inputs, targets = torch.randn(8, 4), torch.randn(8)
    vectors = []
    for places in (range(8), range(0, 8, 2)):
        error = sum(
            (made(inputs[place]).squeeze() - targets[place]) ** 2 for place in places
        ) / len(places)
        found = torch.autograd.grad(error, list(made.parameters()))
        vectors.append([float(number) for each in found for number in each.flatten()])
    dot = sum(a * b for a, b in zip(*vectors, strict=True))
    lengths = [math.sqrt(sum(a * a for a in vector)) for vector in vectors]
    expected = dot / (lengths[0] * lengths[1])
    assert measured_cosine(made, batch_of(inputs, targets)) == pytest.approx(expected, rel=1e-5)


def test_independent_halves_meet_at_one_over_the_root_of_two() -> None:
    """Gradients of pure noise: the paper's lower limit."""
    torch.manual_seed(1)
    made = torch.nn.Linear(20_000, 1, bias=False)
    torch.nn.init.zeros_(made.weight)
    found = measured_cosine(made, batch_of(torch.randn(256, 20_000), torch.randn(256).sign()))
    assert found == pytest.approx(1 / math.sqrt(2), abs=0.02)  # five deviations


def test_half_a_batch_keeps_what_belongs_together_and_uses_up_no_chance() -> None:
    random = torch.Generator().manual_seed(5)
    whole = batch_of(torch.arange(12.0).view(6, 2), torch.arange(6.0))
    whole = Batch(**{**vars(whole), "random": random, "weights": torch.arange(6.0) + 10})
    half = half_of(whole)
    assert half.actions.tolist() == [0, 2, 4]
    assert half.observations[:, 0].tolist() == [0.0, 4.0, 8.0]
    assert half.columns["target"].tolist() == [0.0, 2.0, 4.0]
    assert half.weights is not None
    assert half.indices is not None
    assert half.weights.tolist() == [10.0, 12.0, 14.0]
    assert half.indices.tolist() == [0, 2, 4]
    before = random.get_state()
    torch.rand(3, generator=half.random)
    assert torch.equal(random.get_state(), before)


@pytest.mark.parametrize(
    ("recipe", "intensity"), [("accelerated-ppo", 4.0), ("cule-vtrace", 2.0), ("dqn", 0.5)]
)
def test_measuring_changes_nothing_that_is_learned(
    tmp_path: Path, recipe: str, intensity: float
) -> None:
    runs = []
    for name, changes in (("off", {}), ("on", ON)):
        settings = {**SETTINGS, **RECIPES[recipe], "agent_steps": 1_600, **changes}
        out = tmp_path / name
        scanline.train(recipe, "scanline/Catch-v0", out=out, say=lambda sentence: None, **settings)
        runs.append(out)
    off, on = (weights(run) for run in runs)
    assert all(torch.equal(off[name], on[name]) for name in off)
    rows = [json.loads(line) for line in (runs[1] / "progress.jsonl").read_text().splitlines()]
    assert rows[-1]["perf/training_intensity"] == pytest.approx(intensity, rel=0.05)
    assert 0.0 < rows[-1]["norms/half_batch_cosine"] <= 1.0
    assert rows[-1]["norms/distance"] >= rows[-1]["norms/step"] > 0.0
    assert not any(
        "norms" in key
        for key in json.loads((runs[0] / "progress.jsonl").read_text().splitlines()[-1])
    )


def test_negative_intervals_are_refused() -> None:
    with pytest.raises(ValueError, match="norms_every_updates=-1"):
        InstrumentSettings(norms_every_updates=-1)
