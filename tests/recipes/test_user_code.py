"""Code of the user's runs as a module that meets no other, and only where the user decided so.

A run's folder is data: what it names is not run because it is named there.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import pickle
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import scanline
from scanline import cli, recipes, settings
from scanline.errors import RefusedError, UserError
from scanline.recipes import SourceFile, trust

CATCH = "scanline/Catch-v0"
ONE_BALL = "one_ball:OneBall-v0"
SHORT: dict[str, Any] = {
    "agent_steps": 160,
    "num_envs": 4,
    "network": "mlp",
    "num_workers": 0,
    "torch_threads": 1,
    "live": False,
    "tensorboard": False,
    "say": lambda sentence: None,
}
FILE = """
from pathlib import Path
from scanline import recipes

with open(Path(__file__).with_name("ran"), "a") as file:
    file.write("x")
recipe = recipes.find("a2c").replace(protocol="as-is")
"""


def own_file(folder: Path, name: str = "json.py") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(FILE)
    return path


def times_run(file: Path) -> int:
    marks = file.with_name("ran")
    return len(marks.read_text()) if marks.exists() else 0


def train(recipe: str | scanline.Recipe, out: Path, game: str = CATCH, **changes: Any) -> Path:
    return scanline.train(recipe, game, out=out, **{**SHORT, **changes}).folder


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A run and the file that it was trained from."""
    folder = tmp_path_factory.mktemp("trained")
    file = own_file(folder)
    return train(str(file), folder / "run"), file


@pytest.fixture
def elsewhere(trained: tuple[Path, Path], tmp_path: Path) -> tuple[Path, Path]:
    """The same run as a folder that somebody else has sent, with a file of his own."""
    run, file = tmp_path / "run", own_file(tmp_path / "theirs")
    shutil.copytree(trained[0], run)
    change(run, source=str(file))
    return run, file


def change(run: Path, game: str | None = None, **of_recipe: Any) -> None:
    path = run / "settings.json"
    record = json.loads(path.read_text())
    record["settings"]["recipe"] |= of_recipe
    record["settings"] |= {"game": game} if game else {}
    path.write_text(json.dumps(record))


READERS: dict[str, Callable[[Path], object]] = {
    "load_policy": scanline.load_policy,
    "evaluate": lambda run: scanline.evaluate(run, episodes=1),
}


@pytest.mark.parametrize("reader", READERS)
def test_a_file_that_a_folder_from_elsewhere_names_is_not_run(
    elsewhere: tuple[Path, Path], reader: str
) -> None:
    run, file = elsewhere
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    with pytest.raises(UserError) as caught:
        READERS[reader](run)
    assert times_run(file) == 0
    for words in (str(file), digest, f"--recipe {file}"):
        assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("command", ["evaluate", "play"])
def test_the_command_line_refuses_it_until_it_is_named(
    elsewhere: tuple[Path, Path], command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run, file = elsewhere
    few = ["--episodes", "1"] if command == "evaluate" else ["--most-agent-steps", "5"]
    assert cli.main([command, str(run), *few]) == 2
    assert f"--recipe {file}" in capsys.readouterr().err
    assert times_run(file) == 0
    assert cli.main([command, str(run), *few, "--recipe", str(file)]) == 0
    assert times_run(file) == 1
    assert cli.main([command, str(run), *few]) == 2, "naming it once records nothing"


def test_a_report_runs_nothing(
    elsewhere: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    run, file = elsewhere
    assert cli.main(["report", str(run)]) == 0
    assert times_run(file) == 0


def test_a_file_that_this_user_has_trained_from_needs_no_name(trained: tuple[Path, Path]) -> None:
    assert len(scanline.evaluate(trained[0], episodes=1).scores) == 1


def test_another_user_or_other_bytes_or_another_place_do(
    trained: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, file = tmp_path / "run", tmp_path / "json.py"
    shutil.copytree(trained[0], run)
    shutil.copy(trained[1], file)
    change(run, source=str(file))
    with pytest.raises(UserError, match="have not trained"):
        scanline.load_policy(run)
    trust.remember(file, SourceFile.read(file).sha256)
    scanline.load_policy(run)
    file.write_text(FILE + "# edited\n")
    with pytest.raises(UserError, match="have not trained"):
        scanline.load_policy(run)
    monkeypatch.setenv(trust.STATE_VARIABLE, str(tmp_path / "another"))
    with pytest.raises(UserError, match="have not trained"):
        scanline.load_policy(trained[0])


def test_python_names_it_by_its_path_or_gives_the_recipe(elsewhere: tuple[Path, Path]) -> None:
    run, file = elsewhere
    scanline.load_policy(run, recipe=str(file))
    assert times_run(file) == 1
    scanline.load_policy(run, recipe=recipes.find("a2c"))
    assert len(scanline.evaluate(run, 1, recipe=recipes.find(str(file))).scores) == 1


def test_a_file_that_is_not_here_is_asked_for(elsewhere: tuple[Path, Path]) -> None:
    run, file = elsewhere
    file.unlink()
    with pytest.raises(UserError, match=r"which is not here; name a copy of it: --recipe FILE"):
        scanline.load_policy(run)


def test_a_run_that_is_resumed_names_its_file_and_notices_that_it_was_edited(
    tmp_path: Path,
) -> None:
    file = own_file(tmp_path)
    run = train(str(file), tmp_path / "run")
    train(str(file), run, resume=True, agent_steps=320)
    moved = own_file(tmp_path / "moved")
    moved.write_text(FILE + "# edited\n")
    said: list[str] = []
    train(str(moved), run, resume=True, agent_steps=480, say=said.append)
    assert any("recipe_sha256 was" in sentence for sentence in said)
    assert scanline.load_policy(run).plan.recipe.source == str(moved)


def test_a_run_is_filmed_where_its_file_could_not_be_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "state").write_text("a file in its place")
    monkeypatch.setenv(trust.STATE_VARIABLE, str(tmp_path / "state"))
    words = ["--agent-steps=40", "--num-workers=0", "--torch-threads=1", "--no-live", "--film"]
    names = [str(own_file(tmp_path)), CATCH, "--network=mlp", "--out", str(tmp_path / "run")]
    with pytest.warns(UserWarning, match="could not be recorded"):
        assert cli.main(["train", *names, *words]) == 0
    assert list((tmp_path / "run").glob("*.gif"))


def test_a_module_that_a_folder_from_elsewhere_names_is_not_imported(
    elsewhere: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, _ = elsewhere
    module = tmp_path / "their_games.py"
    module.write_text("open(__file__ + '.ran', 'w')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    change(run, game="their_games:Any-v0", source="a2c")
    digest = hashlib.sha256(module.read_bytes()).hexdigest()
    with pytest.raises(UserError) as caught:
        scanline.load_policy(run)
    for words in (str(module), digest, "--game their_games:Any-v0"):
        assert words in str(caught.value)
    assert not Path(f"{module}.ran").exists()
    assert "their_games" not in sys.modules
    change(run, game="no_such_games.inner:Any-v0")
    with pytest.raises(UserError, match="no module 'no_such_games' here"):
        scanline.load_policy(run)


def test_a_module_that_this_user_has_trained_with_needs_no_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = train("a2c", tmp_path / "run", game=ONE_BALL)
    scanline.load_policy(run)
    monkeypatch.setenv(trust.STATE_VARIABLE, str(tmp_path / "another"))
    with pytest.raises(UserError, match=f"--game {ONE_BALL}"):
        scanline.load_policy(run)
    scanline.load_policy(run, game=ONE_BALL)
    with pytest.raises(UserError, match="plays one_ball:OneBall-v0, not pong"):
        scanline.load_policy(run, game="pong")


OWN_CLASS = '''
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
    path.write_text(OWN_CLASS.replace("{patience}", str(patience)))
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
    assert changed.source_sha256 == SourceFile.read(path).sha256
    assert changed.source == str(path.resolve())


def test_a_file_that_changed_since_is_refused_without_being_run(tmp_path: Path) -> None:
    path = own(tmp_path)
    digest = SourceFile.read(path).sha256
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
