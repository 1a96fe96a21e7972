"""A recipe of the user's own runs as a module that meets no other."""

from __future__ import annotations

import importlib
import pickle
import sys
from pathlib import Path

import pytest

from scanline import recipes, settings
from scanline.errors import RefusedError
from scanline.recipes import OwnFile

FILE = '''
from __future__ import annotations

from dataclasses import dataclass

from scanline import Recipe, parameters
from scanline.algorithms import ActorCritic


@dataclass(frozen=True, kw_only=True)
class Own(ActorCritic):
    """One more setting."""

    patience: int = {patience}
    """How long it waits."""


recipe = Recipe(
    name="own",
    summary="Own.",
    algorithm=Own(),
    network="mlp",
    protocol="as-is",
    optimiser=parameters.OptimiserSettings(kind="adam", learning_rate=1e-3),
)
'''


def own(folder: Path, name: str = "mine.py", patience: int = 3) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(FILE.replace("{patience}", str(patience)))
    return path


@pytest.mark.parametrize("name", ["random.py", "json.py", "torch.py"])
def test_a_file_named_like_a_module_hides_none(tmp_path: Path, name: str) -> None:
    module = name.removesuffix(".py")
    before = importlib.import_module(module)
    recipes.find(str(own(tmp_path, name)))
    assert sys.modules[module] is before
    assert importlib.import_module(module) is before


def test_files_of_one_name_keep_their_own_classes_and_sentences(tmp_path: Path) -> None:
    first = recipes.find(str(own(tmp_path / "a", patience=3)))
    second = recipes.find(str(own(tmp_path / "b", patience=4)))
    assert (first.algorithm.patience, second.algorithm.patience) == (3, 4)
    assert type(first.algorithm) is not type(second.algorithm)
    for recipe in (first, second):
        kind = type(recipe.algorithm)
        assert sys.modules[kind.__module__].Own is kind
        found = {leaf.name: leaf for leaf in settings.leaves(recipe)}
        assert found["patience"].help == "How long it waits."
        assert pickle.loads(pickle.dumps(recipe)) == recipe


def test_the_bytes_that_are_hashed_are_those_that_run(tmp_path: Path) -> None:
    """Neither a compiled copy beside the file nor an earlier version of it counts."""
    path = own(tmp_path)
    assert recipes.find(str(path)).algorithm.patience == 3
    assert not (tmp_path / "__pycache__").exists()
    own(tmp_path, patience=5)
    changed = recipes.find(str(path))
    assert changed.algorithm.patience == 5
    assert changed.source_sha256 == OwnFile.read(path).sha256
    assert changed.source == str(path.resolve())


def test_a_file_that_changed_since_is_refused_without_being_run(tmp_path: Path) -> None:
    path = own(tmp_path)
    digest = OwnFile.read(path).sha256
    assert recipes.find(str(path), digest).name == "own"
    path.write_text("raise SystemExit('it ran')")
    with pytest.raises(RefusedError, match="was changed while a run began"):
        recipes.find(str(path), digest)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = 1\nrecipe = unknown\n", r"line 2: NameError: name 'unknown'"),
        ("recipe = (\n", r"line 1: SyntaxError"),
        ("import json\njson.loads('{')\n", r"line 2: JSONDecodeError"),
        ("import no_such_module\n", r"line 1: ModuleNotFoundError"),
        ("recipe = 3\n", r"must define `recipe = scanline.Recipe\(...\)`; it has 3"),
    ],
)
def test_a_file_that_cannot_be_used_is_one_sentence_with_its_line(
    tmp_path: Path, text: str, words: str
) -> None:
    path = tmp_path / "wrong.py"
    path.write_text(text)
    modules = set(sys.modules)
    with pytest.raises(RefusedError, match=words) as caught:
        recipes.find(str(path))
    assert "\n" not in str(caught.value)
    if "must define" not in words:
        assert not {name for name in sys.modules.keys() - modules if "own_recipe" in name}
