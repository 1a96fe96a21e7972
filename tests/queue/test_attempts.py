"""A claim's folder: begun as the one before was left, and out of reach of whoever wrote that."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from scanline.queue import attempts


def run_folder(path: Path) -> Path:
    saved = path / "checkpoints" / "000001-agent-steps-100"
    saved.mkdir(parents=True)
    (saved / "tensors.safetensors").write_text("weights")
    (path / "checkpoints" / "segments").mkdir()
    (path / "checkpoints" / "segments" / "replay-0").write_text("rows")
    (path / "checkpoints" / ".writing-000002-agent-steps-200").mkdir()
    (path / "progress.jsonl").write_text("1\n")
    (path / "run.lock").write_text("{}")
    return path


def files(path: Path) -> set[str]:
    return {str(p.relative_to(path)) for p in path.rglob("*") if p.is_file()}


def test_the_first_attempt_is_empty(tmp_path: Path) -> None:
    attempts.begin(tmp_path / "cell" / "001-a")
    assert not list((tmp_path / "cell" / "001-a").iterdir())


def test_an_attempt_begins_with_what_the_newest_one_before_has_left(tmp_path: Path) -> None:
    attempts.begin(tmp_path / "009-z")
    run_folder(tmp_path / "010-b")
    attempts.begin(tmp_path / "0011-a")
    assert files(tmp_path / "0011-a") == {
        "checkpoints/000001-agent-steps-100/tensors.safetensors",
        "checkpoints/segments/replay-0",
        "progress.jsonl",
    }
    assert [path.name for path in tmp_path.iterdir()] == ["0011-a"]


def test_files_that_an_old_writer_has_open_are_not_those_of_the_new_attempt(
    tmp_path: Path,
) -> None:
    old = run_folder(tmp_path / "001-a")
    with open(old / "progress.jsonl", "a") as log:
        attempts.begin(tmp_path / "002-b")
        log.write("2\n")
        log.flush()
    assert (tmp_path / "002-b" / "progress.jsonl").read_text() == "1\n"
    with pytest.raises(FileNotFoundError):
        (old / "checkpoints" / "000002-agent-steps-200").mkdir()


def test_a_copy_during_which_a_checkpoint_comes_or_goes_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = run_folder(tmp_path / "001-a")
    link, saves = os.link, iter(("000002-agent-steps-200", "000003-agent-steps-300"))

    def linked(source: Path, target: Path) -> None:
        link(source, target)
        if name := next(saves, None):
            (old / "checkpoints" / name).mkdir()
            (old / "progress.jsonl").write_text(f"{name}\n")

    monkeypatch.setattr(os, "link", linked)
    monkeypatch.setattr(attempts, "_BETWEEN_TRIES_SECONDS", 0.0)
    attempts.begin(tmp_path / "002-b")
    new = tmp_path / "002-b"
    assert (new / "checkpoints" / "000003-agent-steps-300").exists()
    assert (new / "progress.jsonl").read_text() == "000003-agent-steps-300\n"


def test_an_attempt_that_was_killed_while_it_began_leaves_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_folder(tmp_path / "001-a")

    def killed(*given: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(attempts, "_copy", killed)
        with pytest.raises(KeyboardInterrupt):
            attempts.begin(tmp_path / "002-b")
    attempts.begin(tmp_path / "003-c")
    assert "progress.jsonl" in files(tmp_path / "003-c")


def test_a_file_system_without_hard_links_gets_copies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*given: object) -> None:
        raise PermissionError

    run_folder(tmp_path / "001-a")
    monkeypatch.setattr(os, "link", refused)
    attempts.begin(tmp_path / "002-b")
    assert (tmp_path / "002-b" / "checkpoints/segments/replay-0").read_text() == "rows"


def test_a_finished_run_keeps_its_newest_weights_only(tmp_path: Path) -> None:
    run = run_folder(tmp_path / "run")
    newest = run / "checkpoints" / "000002-agent-steps-200"
    newest.mkdir()
    attempts.drop_replay(run)
    attempts.drop_replay(run)
    assert sorted(p.name for p in (run / "checkpoints").glob("0*")) == [newest.name]
    assert not list((run / "checkpoints" / "segments").iterdir())
