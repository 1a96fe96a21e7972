"""The user's own record of files that he has trained from."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from scanline.recipes import trust

FIRST, SECOND = "a" * 64, "b" * 64


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "some" / "state"
    monkeypatch.setenv(trust.STATE_VARIABLE, str(folder))
    return folder


def test_a_pair_of_path_and_hash_is_remembered(state: Path) -> None:
    path = Path("/home/me/mine.py")
    assert not trust.is_remembered(path, FIRST)
    trust.remember(path, FIRST)
    trust.remember(path, FIRST)
    trust.remember(path, SECOND)
    assert trust.is_remembered(path, FIRST)
    assert trust.is_remembered(path, SECOND)
    assert not trust.is_remembered(Path("/home/me/other.py"), FIRST)
    assert not trust.is_remembered(path, "c" * 64)


def test_only_the_user_reads_and_writes_it(state: Path) -> None:
    before = os.umask(0)
    try:
        trust.remember(Path("/mine.py"), FIRST)
    finally:
        os.umask(before)
    folders = [state, state / "trained-from"]
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in folders} == {0o700}
    (record,) = folders[1].iterdir()
    assert stat.S_IMODE(record.stat().st_mode) == 0o600


def test_what_others_could_have_written_does_not_count(state: Path) -> None:
    path = Path("/mine.py")
    trust.remember(path, FIRST)
    (record,) = (state / "trained-from").iterdir()
    for place in (record, state / "trained-from", state):
        mode = stat.S_IMODE(place.stat().st_mode)
        place.chmod(mode | stat.S_IWOTH)
        assert not trust.is_remembered(path, FIRST)
        place.chmod(mode)
    assert trust.is_remembered(path, FIRST)
    record.write_text('{"path": "/other.py"}')
    assert not trust.is_remembered(path, FIRST)
    record.write_text("{")
    assert not trust.is_remembered(path, FIRST)


def test_the_folder_is_the_named_one_or_xdg_s_or_in_the_home(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv(trust.STATE_VARIABLE)
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    assert trust.state_folder() == tmp_path / ".local" / "state" / "scanline"
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    assert trust.state_folder() == tmp_path / ".local" / "state" / "scanline"
    monkeypatch.setenv("XDG_STATE_HOME", "/var/state")
    assert trust.state_folder() == Path("/var/state/scanline")
    monkeypatch.setenv(trust.STATE_VARIABLE, "/elsewhere")
    assert trust.state_folder() == Path("/elsewhere")


def test_a_folder_that_cannot_be_written_costs_no_training(state: Path) -> None:
    state.parent.mkdir(parents=True)
    state.write_text("a file in its place")
    with pytest.warns(UserWarning, match=r"could not be recorded .*/mine\.py"):
        trust.remember(Path("/mine.py"), FIRST)
    assert not trust.is_remembered(Path("/mine.py"), FIRST)


def test_trainings_that_start_together_do_not_disturb_each_other(state: Path) -> None:
    code = (
        "import importlib.util\nfrom pathlib import Path\n"
        f"spec = importlib.util.spec_from_file_location('trust', {trust.__file__!r})\n"
        "trust = importlib.util.module_from_spec(spec)\nspec.loader.exec_module(trust)\n"
        "for n in range(200):\n"
        "    trust.remember(Path('/mine.py'), f'{n:064d}')\n"
        "    assert trust.is_remembered(Path('/mine.py'), f'{n:064d}')\n"
    )
    together = [subprocess.Popen([sys.executable, "-W", "error", "-c", code]) for _ in range(2)]
    assert [process.wait(60) for process in together] == [0, 0]
    names = sorted(path.name for path in (state / "trained-from").iterdir())
    assert len(names) == 200
    assert all(name.endswith(".json") for name in names)
