"""Every example that is a recipe learns its toy game, and a stopped run goes on bit for bit."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

import scanline
from scanline import recipes
from scanline.authoring import templates
from scanline.recipes import SourceFile
from scanline.runs.checkpoint import load_chosen
from scanline.runs.state_files import encode

CATCH, CORRIDOR = "scanline/Catch-v0", "scanline/Corridor-v0"
FOLDER = Path(__file__).parents[2] / "examples"
REPLAY = {
    "network": "mlp",
    "capacity_agent_steps": 8_000,
    "learning_starts_agent_steps": 500,
    "learning_rate": 1e-3,
}
EXPLORED = REPLAY | {"epsilon_agent_steps": 5_000, "target_agent_steps": 400}
SETTINGS: dict[str, tuple[str, float, dict[str, Any]]] = {
    "qr_dqn": (CATCH, 3.0, EXPLORED | {"num_quantiles": 20}),
    "iqn": (CATCH, 3.0, EXPLORED),
    "munchausen_dqn": (CATCH, 3.0, EXPLORED),
    "discrete_sac": (CATCH, 2.0, REPLAY | {"target_rate": 0.02}),
    "pqn": (
        CATCH,
        3.0,
        {"num_envs": 16, "rollout_agent_steps": 8, "num_minibatches": 4, "learning_rate": 1e-3},
    ),
    "impala_ppo": (
        CATCH,
        2.0,
        {"num_envs": 16, "rollout_agent_steps": 32, "learning_rate": 2.5e-3},
    ),
    "rnd": (CORRIDOR, 0.5, {}),
    "recurrent_ppo": (
        "scanline/Recall-v0",
        2.0,
        {"num_envs": 32, "rollout_agent_steps": 16, "learning_rate": 5e-3, "anneal": "none"},
    ),
}
"""Game, score that is learned, settings. Random play has -3 on Catch and 0 in the corridor."""
QUIET: dict[str, Any] = {
    "num_workers": 0,
    "torch_threads": 1,
    "live": False,
    "tensorboard": False,
    "say": lambda sentence: None,
}
PUBLIC = set(scanline.__all__)


def train(name: str, out: Path, **changes: Any) -> scanline.Run:
    game, _, settings = SETTINGS[name]
    return scanline.train(str(FOLDER / f"{name}.py"), game, out=out, **QUIET | settings | changes)


@pytest.mark.parametrize("name", SETTINGS)
def test_an_example_learns_its_toy_game(tmp_path: Path, name: str) -> None:
    wanted = SETTINGS[name][1]
    run = train(name, tmp_path / "run", agent_steps=80_000, target_score=wanted, evaluation_games=1)
    assert run.stop.kind == "target_score", run.score


def test_without_curiosity_the_hidden_reward_is_never_found(tmp_path: Path) -> None:
    run = train("rnd", tmp_path / "run", agent_steps=15_000, novelty_coef=0.0)
    assert run.score == 0.0


@pytest.mark.parametrize("name", SETTINGS)
def test_an_example_resumes_bit_for_bit(tmp_path: Path, name: str) -> None:
    is_replay = "capacity_agent_steps" in SETTINGS[name][2]
    last, cut = (800, 640) if is_replay else (3_072, 1_500)
    steps = {"agent_steps": last, "log_every_agent_steps": 64}
    train(name, tmp_path / "whole", **steps)
    train(name, tmp_path / "cut", callback=lambda seen: seen.agent_steps < cut, **steps)
    train(name, tmp_path / "cut", resume=True, **steps)
    states = [
        encode(load_chosen(tmp_path / run / "checkpoints", None).state["parameters"])
        for run in ("whole", "cut")
    ]
    assert states[0].tree == states[1].tree
    for tensor, other in zip(*(state.tensors.values() for state in states), strict=True):
        assert tensor.equal(other)


@pytest.mark.parametrize("name", SETTINGS)
def test_an_example_is_short_and_imports_public_names_only(name: str) -> None:
    text = (FOLDER / f"{name}.py").read_text()
    assert len(text.splitlines()) <= 140
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("scanline"):
            assert node.module == "scanline" and {each.name for each in node.names} <= PUBLIC
        if isinstance(node, ast.Import):
            assert not any(each.name.startswith("scanline.") for each in node.names)


def test_every_example_is_tested_documented_and_has_a_name_of_its_own() -> None:
    files = {path.stem: path for path in templates().values()}
    assert set(files) == {*SETTINGS, "own_recipe"}
    names = [SourceFile.read(path).recipe().name for path in files.values()]
    assert len(set(names)) == len(names) and not set(names) & set(recipes.RECIPES)
    for name in SETTINGS:
        assert (FOLDER.parent / "docs" / "examples" / f"{name}.md").exists()
