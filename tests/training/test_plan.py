"""A plan is read back from its record as it was, or not at all."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import scanline
from scanline import recipes, settings
from scanline.algorithms import ActorCritic
from scanline.runs.folder import RunFolderError
from scanline.training.plan import Plan, make_plan, plan_from

CATCH = "scanline/Catch-v0"
SHORT: dict[str, Any] = {
    "network": "mlp",
    "num_envs": 4,
    "agent_steps": 40,
    "num_workers": 0,
    "torch_threads": 1,
    "live": False,
    "tensorboard": False,
    "say": lambda sentence: None,
}


@pytest.mark.parametrize("recipe", recipes.RECIPES)
def test_every_recipe_s_plan_is_read_back_as_it_was(recipe: str) -> None:
    changes = {"seed": 7, "mode": 3, "target_score": 18.0}
    plan = make_plan(recipe, "pong", **changes)
    record = json.loads(json.dumps(settings.to_dict(plan)))
    assert plan_from(record, recipes.find(recipe)) == plan
    assert settings.differences(record, settings.to_dict(plan)) == []


def test_a_setting_of_none_is_restored_over_a_recipe_that_has_a_value() -> None:
    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Capped(ActorCritic):
        cap: float | None = 3.0

    recipe = dataclasses.replace(recipes.find("paac"), algorithm=Capped())
    plan = Plan(game="pong", recipe=recipe.replace(cap=None))
    assert plan_from(settings.to_dict(plan), recipe) == plan


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "run"
    scanline.train("a2c", CATCH, out=out, **SHORT)
    return out


def renamed(record: dict[str, Any]) -> None:
    algorithm = record["recipe"]["algorithm"]
    algorithm["entropy_weight"] = algorithm.pop("entropy_coef")


def lacking(record: dict[str, Any]) -> None:
    del record["recipe"]["optimiser"]["centred"]


def unknown(record: dict[str, Any]) -> None:
    record["run"]["turbo"] = None


def of_another_kind(record: dict[str, Any]) -> None:
    record["recipe"]["algorithm"]["type"] = "SoftActorCritic"


@pytest.mark.parametrize(
    ("change", "names"),
    [
        (renamed, ["recipe.algorithm.entropy_weight", "recipe.algorithm.entropy_coef"]),
        (lacking, ["lacks settings that are there now (recipe.optimiser.centred)"]),
        (unknown, ["unknown here (run.turbo)"]),
        (of_another_kind, ["recipe.algorithm.type was 'SoftActorCritic' and is now 'ActorCritic'"]),
    ],
)
def test_a_run_with_other_settings_is_neither_resumed_nor_evaluated(
    run: Path, change: Callable[[dict[str, Any]], None], names: list[str]
) -> None:
    file = run / "settings.json"
    text = file.read_text()
    record = json.loads(text)
    change(record["settings"])
    file.write_text(json.dumps(record))
    try:
        for action in (
            lambda: scanline.train("a2c", CATCH, out=run, resume=True, **SHORT),
            lambda: scanline.evaluate(run, episodes=1),
            lambda: scanline.load_policy(run),
        ):
            with pytest.raises(RunFolderError) as caught:
                action()
            assert all(name in str(caught.value) for name in names)
    finally:
        file.write_text(text)
    assert len(scanline.evaluate(run, episodes=1).scores) == 1
