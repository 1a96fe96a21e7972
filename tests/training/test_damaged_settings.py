"""Settings that are not what a run writes: one sentence, or accepted, never a traceback."""

from __future__ import annotations

import copy
import itertools
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import scanline
from scanline import reports, settings, training
from scanline.errors import UserError
from scanline.runs.folder import RunFolder, read_record

CATCH = "scanline/Catch-v0"
OTHERS = (None, True, -1, 10**400, 0.5, float("inf"), "text", ["x"], {"a": 1})
"""Values of every kind that JSON has."""
DEEP = '{"a": ' * 500 + "1" + "}" * 500
TEXTS = [
    "",
    "{",
    "null",
    "3",
    '"text"',
    "[]",
    "{}",
    '{"settings": {}}',
    "\x00",
    "[" * 100_000,
    DEEP,
]
RECIPES = {
    "accelerated-rainbow": {"num_envs": 2, "capacity_agent_steps": 1_000, "agent_steps": 40},
    "ga3c": {"num_envs": 2, "agent_steps": 40},
}


@pytest.fixture(scope="module", params=RECIPES)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    quiet = {"live": False, "tensorboard": False, "say": lambda sentence: None}
    small = {"network": "mlp", "num_workers": 0, "torch_threads": 1, "log_every_agent_steps": 20}
    changes = {**quiet, **small, "decorrelation_agent_steps": 0, **RECIPES[request.param]}
    if request.param == "ga3c":
        changes.pop("decorrelation_agent_steps")
    out = tmp_path_factory.mktemp("runs") / "run"
    return scanline.train(request.param, CATCH, out=out, **changes).folder


one_run = pytest.mark.parametrize("run", ["ga3c"], indirect=True)


@pytest.fixture
def copied(run: Path, tmp_path: Path) -> Path:
    shutil.copytree(run, tmp_path / "run")
    return tmp_path / "run"


def places(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where every value stands, inner ones included."""
    if path:
        yield path
    if isinstance(tree, dict | list):
        for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
            yield from places(value, (*path, key))


def damaged(record: Any) -> Iterator[Any]:
    """The record with each value replaced by four of the others in turn, and with each left out."""
    others = itertools.cycle(OTHERS)
    for path in list(places(record)):
        parent, before = _parent(record, path), copy.copy(_parent(record, path))
        for other in itertools.islice(others, 4):
            parent[path[-1]] = other
            yield record
        del parent[path[-1]]
        yield record
        parent.clear()
        parent.update(before) if isinstance(parent, dict) else parent.extend(before)


def _parent(tree: Any, path: tuple[Any, ...]) -> Any:
    for key in path[:-1]:
        tree = tree[key]
    return tree


def sentence_of(act: Any, *given: Any) -> str | None:
    """What is said when it is refused; None where it is accepted. Other errors go on."""
    try:
        act(*given)
    except UserError as error:
        return str(error)
    return None


def test_any_value_in_any_place_is_accepted_or_refused_with_a_sentence(copied: Path) -> None:
    path = copied / "settings.json"
    record = json.loads(path.read_text())
    assert training.read_plan(copied).game == CATCH
    refused = 0
    for changed in damaged(record):
        path.write_text(json.dumps(changed))
        sentence = sentence_of(training.read_plan, copied)
        if sentence is not None:
            assert "\n" not in sentence
            refused += 1
    assert refused > 500


@one_run
def test_a_report_of_damaged_settings_is_a_page_or_a_sentence(copied: Path) -> None:
    path = copied / "settings.json"
    record = json.loads(path.read_text())
    plan = record["settings"]
    plan["recipe"] = {"name": plan["recipe"]["name"]}
    plan["run"] = {"seed": plan["run"]["seed"]}
    for changed in damaged(record):
        path.write_text(json.dumps(changed))
        sentence_of(reports.write, [copied])


@one_run
@pytest.mark.parametrize("name", ["progress.jsonl", "rates.jsonl", "evaluations.jsonl"])
def test_a_report_of_damaged_rows_is_a_page(copied: Path, name: str) -> None:
    path = copied / name
    rows = path.read_text().splitlines() if path.exists() else ['{"agent_steps": 3, "mean": 1.5}']
    for changed in damaged(json.loads(rows[-1])):
        path.write_text("\n".join([*rows, json.dumps(changed)]) + "\n")
        reports.write([copied])


@pytest.mark.parametrize("text", TEXTS)
def test_a_file_that_is_no_record_is_one_sentence_for_every_reader(
    tmp_path: Path, text: str
) -> None:
    (tmp_path / "settings.json").write_text(text)
    for read in (read_record, training.read_plan, scanline.load_policy, scanline.evaluate):
        sentence = sentence_of(read, tmp_path)
        assert sentence is not None and "settings.json" in sentence and "\n" not in sentence
    assert sentence_of(reports.write, [tmp_path])
    assert sentence_of(RunFolder.resume, tmp_path, {}, {})


@one_run
@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        (("recipe", "optimiser", "learning_rate"), "fast", "learning_rate='fast' must be a number"),
        (("run", "seed"), 1.5, "seed=1.5 must be a whole number"),
        (("run", "seed"), None, "seed=None must be a whole number"),
        (("run", "reset"), "never", "reset='never' must be one of 'ale', 'cached'"),
        (("run", "mode"), [1], r"mode=\(1,\) must be a whole number .* or None"),
        (("run", "output"), 3, r"unknown here \(run\.output\)"),
        (("recipe", "source"), 3, "names no recipe or no game"),
        (("game",), {}, "names no recipe or no game"),
        (("recipe", "sampling", "num_envs"), 0, "num_envs"),
    ],
)
def test_a_sentence_names_the_setting_and_what_it_must_be(
    copied: Path, place: tuple[str, ...], value: Any, words: str
) -> None:
    path = copied / "settings.json"
    record = json.loads(path.read_text())
    _parent(record["settings"], place)[place[-1]] = value
    path.write_text(json.dumps(record))
    with pytest.raises(UserError, match=words):
        training.read_plan(copied)


@one_run
def test_weights_of_another_network_are_one_sentence(copied: Path) -> None:
    path = copied / "settings.json"
    record = json.loads(path.read_text())
    record["settings"]["game"] = "CartPole-v1"
    path.write_text(json.dumps(record))
    with pytest.raises(UserError, match="weights do not fit the settings of this run") as caught:
        scanline.load_policy(copied)
    assert "\n" not in str(caught.value)


def test_a_setting_that_a_run_had_switched_off_stays_off() -> None:
    """None where the recipe's own value is not None."""
    plan = training.make_plan("paac", CATCH, engine="gymnasium")
    assert settings.restore(plan, {"run": {"engine": None}}).run.engine is None
