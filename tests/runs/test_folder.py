"""The run folder: refused when occupied, resumed only as the same run."""

from __future__ import annotations

import functools
import json
import os
from pathlib import Path
from typing import Any

import pytest

from scanline.runs.folder import RunFolder, RunFolderError, default_folder, read_record, versions
from scanline.runs.lock import LockedError

SETTINGS: dict[str, Any] = {
    "game": "pong",
    "seed": 1,
    "protocol": {"name": "baselines", "frame_skip": 4},
    "limits": {"agent_steps": 100},
    "shape": (84, 84),
    "make": functools.partial(int, 3),
}
VERSIONS = versions(engine="ale 0.11")


def test_the_settings_hold_everything(tmp_path: Path) -> None:
    with RunFolder.create(tmp_path / "a" / "run", SETTINGS, VERSIONS) as run:
        record = read_record(run.path)
        assert record == run.record
    assert record["settings"]["protocol"] == {"name": "baselines", "frame_skip": 4}
    assert record["versions"]["engine"] == "ale 0.11"
    assert {"scanline", "torch", "numpy", "python"} <= set(record["versions"])
    assert record["machine"]["num_cores"] >= 1
    assert os.listdir(run.path) == ["settings.json"]


def test_an_existing_run_is_refused_with_both_remedies(tmp_path: Path) -> None:
    RunFolder.create(tmp_path, SETTINGS, VERSIONS).close()
    with pytest.raises(RunFolderError, match=r"exists already; continue it with --resume, .*--out"):
        RunFolder.create(tmp_path, SETTINGS, VERSIONS)


def test_a_folder_with_other_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(RunFolderError, match="holds files but no run"):
        RunFolder.create(tmp_path, SETTINGS, VERSIONS)
    with pytest.raises(RunFolderError, match="is a file"):
        RunFolder.create(tmp_path / "thesis.tex", SETTINGS, VERSIONS)


def test_a_start_that_was_killed_can_be_repeated(tmp_path: Path) -> None:
    (tmp_path / "run.lock").write_text("")
    (tmp_path / ".writing-settings.json").write_text("{")
    RunFolder.create(tmp_path, SETTINGS, VERSIONS).close()
    assert read_record(tmp_path)["settings"]["seed"] == 1


def test_resume_needs_a_run(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match=r"no run in .*give the folder of one"):
        RunFolder.resume(tmp_path, SETTINGS, VERSIONS)
    (tmp_path / "settings.json").write_text("{")
    with pytest.raises(RunFolderError, match=r"settings\.json cannot be read"):
        RunFolder.resume(tmp_path, SETTINGS, VERSIONS)


def test_resume_takes_new_limits_and_remembers_itself(tmp_path: Path) -> None:
    RunFolder.create(tmp_path, SETTINGS, VERSIONS).close()
    longer = {**SETTINGS, "limits": {"agent_steps": 999}}
    with RunFolder.resume(tmp_path, longer, VERSIONS):
        record = read_record(tmp_path)
    assert record["settings"]["limits"]["agent_steps"] == 999
    assert len(record["resumed"]) == 1


def test_resume_says_which_settings_differ(tmp_path: Path) -> None:
    RunFolder.create(tmp_path, SETTINGS, VERSIONS).close()
    other = {**SETTINGS, "seed": 2, "protocol": {"name": "nature", "frame_skip": 4}}
    with pytest.raises(RunFolderError) as caught:
        RunFolder.resume(tmp_path, other, VERSIONS)
    assert "protocol.name was 'baselines' and is now 'nature'" in str(caught.value)
    assert "seed was 1 and is now 2" in str(caught.value)
    assert "frame_skip" not in str(caught.value)
    assert read_record(tmp_path)["settings"]["seed"] == 1
    RunFolder.resume(tmp_path, SETTINGS, VERSIONS).close()  # the refusal holds no lock


def recorded(path: Path, **changes: Any) -> Path:
    """A run whose record holds other settings; `...` for one that it lacks."""
    RunFolder.create(path, SETTINGS, VERSIONS).close()
    record = json.loads((path / "settings.json").read_text())
    for name, value in changes.items():
        record["settings"][name] = value
        if value is ...:
            del record["settings"][name]
    (path / "settings.json").write_text(json.dumps(record))
    return path


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"old_name": None}, r"settings that are unknown here \(old_name\), so"),
        ({"inner": {"a": 1, "b": 2}}, r"are unknown here \(inner.a, inner.b\), so"),
        ({"seed": ...}, r"lacks settings that are there now \(seed\), so"),
        (
            {"seed": ..., "random_seed": 1},
            r"unknown here \(random_seed\) and lacks settings that are there now \(seed\), so",
        ),
    ],
)
def test_resume_refuses_settings_that_were_renamed_and_names_them(
    tmp_path: Path, changes: dict[str, Any], sentence: str
) -> None:
    path = recorded(tmp_path / "run", **changes)
    with pytest.raises(RunFolderError, match=sentence) as caught:
        RunFolder.resume(path, SETTINGS, VERSIONS)
    assert f"use the scanline and the recipe that wrote it (version {VERSIONS['scanline']})" in str(
        caught.value
    )


def test_a_setting_that_touches_no_learning_may_lack(tmp_path: Path) -> None:
    path = recorded(tmp_path / "run", limits={})
    RunFolder.resume(path, {**SETTINGS, "limits": {}, "live": True}, VERSIONS).close()


def test_a_run_is_marked_with_reasons_until_it_is_resumed(tmp_path: Path) -> None:
    with RunFolder.create(tmp_path, SETTINGS, VERSIONS) as run:
        assert read_record(tmp_path)["inexact"] == []
        run.mark_inexact(["no snapshots"])
    assert read_record(tmp_path)["inexact"] == ["no snapshots"]
    with RunFolder.resume(tmp_path, SETTINGS, VERSIONS):
        assert read_record(tmp_path)["inexact"] == []


def test_two_writers_are_refused(tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path, SETTINGS, VERSIONS)
    with pytest.raises(LockedError):
        RunFolder.resume(tmp_path, SETTINGS, VERSIONS)
    run.close()


def test_the_default_name_has_game_recipe_seed_and_time() -> None:
    path = default_folder("ALE/Pong-v5", "paac", 3, clock_seconds=0)
    parts = path.name.split("__")
    assert path.parent == Path("runs")
    assert parts[:3] == ["ALE-Pong-v5", "paac", "3"]
    assert len(parts[3]) == len("19700101-000000")
