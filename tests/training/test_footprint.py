"""The memory of a run: one sum over engine, store, network and processes, before it is taken."""

from __future__ import annotations

from pathlib import Path

import pytest

from scanline import memory, simulated, training
from scanline.engines import TOY
from scanline.errors import RefusedError
from scanline.training import footprint

SMALL = {"num_workers": 0, "live": False}


def sizes(recipe: str, **changes: object) -> dict[str, float]:
    plan = training.make_plan(recipe, TOY, **SMALL | {"network": "mlp"} | changes)
    return {share.what: share.num_bytes for share in footprint.shares(plan)}


def test_a_run_has_one_share_of_each_kind() -> None:
    found = sizes("paac")
    assert list(found) == [
        "32 environments of the engine 'gymnasium'",
        "Rollouts of 5 steps of 32 environments",
        "The network with its optimiser and 160 rows of activations",
        "Libraries and threads of 1 process",
    ]


def test_every_kind_of_store_says_what_it_takes() -> None:
    whats = {recipe: list(sizes(recipe))[1] for recipe in ("dqn", "vtrace", "ga3c")}
    assert whats == {
        "dqn": "A replay of 1,000,000 steps as it fills",
        "vtrace": "Windows of 40 steps of 24 environments",
        "ga3c": "356 segments of 5 steps",
    }


def test_learners_that_divide_the_work_are_counted_with_their_processes() -> None:
    one, two = sizes("paac"), sizes("paac", learners=2)
    assert "Rollouts of 5 steps of 16 environments in each of 2 learners" in two
    more = two["Libraries and threads of 2 processes"]
    assert more > 2 * one["Libraries and threads of 1 process"]


def test_too_much_in_sum_is_refused_before_anything_is_taken(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    large = {"network": "mlp", "capacity_agent_steps": 10_000_000}
    needed = sum(sizes("dqn", **large).values())
    monkeypatch.setattr(memory, "available_bytes", lambda: needed - 1.0)
    with pytest.raises(
        RefusedError, match=r"is a replay of 10,000,000 .*: set capacity_agent_steps"
    ):
        training.train("dqn", TOY, out=tmp_path / "run", **SMALL, **large)
    assert not (tmp_path / "run").exists()


def test_a_run_tells_its_sum(tmp_path: Path) -> None:
    said: list[str] = []
    training.train(
        "paac", TOY, network="mlp", agent_steps=160, out=tmp_path / "run", say=said.append, **SMALL
    )
    assert any(line.startswith("Memory: ") and "32 environments" in line for line in said)


def test_too_little_memory_of_a_simulated_device_is_one_sentence(tmp_path: Path) -> None:
    with simulated.memory(1e4), pytest.raises(RefusedError, match=r"the device 'simulated:0' has"):
        training.train("paac", TOY, network="mlp", device="simulated", out=tmp_path / "x", **SMALL)
