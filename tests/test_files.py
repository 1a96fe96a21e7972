"""Files are complete or absent, and disk errors are sentences."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import pytest

from scanline.files import (
    DiskError,
    disk_errors,
    remove_folder,
    remove_unfinished,
    replace_file,
)


def test_a_failed_replacement_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace_file(tmp_path / "a", b"old")

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "no space")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        replace_file(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a"]


@pytest.mark.parametrize(
    ("code", "reason"), [(errno.ENOSPC, "disk is full"), (errno.EIO, "Input/output error")]
)
def test_disk_errors_are_one_sentence(code: int, reason: str) -> None:
    with (
        pytest.raises(DiskError, match=f"Could not write the log: .*{reason}; free space."),
        disk_errors("the log", "free space"),
    ):
        raise OSError(code, os.strerror(code))


def test_a_removal_that_is_cut_short_leaves_nothing_under_the_old_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "file").write_bytes(b"x")

    def dies(path: Path, ignore_errors: bool = False) -> None:
        if not ignore_errors:
            raise KeyboardInterrupt

    monkeypatch.setattr(shutil, "rmtree", dies)
    with pytest.raises(KeyboardInterrupt):
        remove_folder(tmp_path / "one")
    assert os.listdir(tmp_path) == [".writing-one"]


def test_folders_vanish_whole_and_what_a_crash_left_is_removed(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "file").write_bytes(b"x")
    (tmp_path / ".writing-one").mkdir()  # an earlier removal was cut short
    remove_folder(tmp_path / "one")
    (tmp_path / ".writing-two").mkdir()
    (tmp_path / ".writing-three").write_bytes(b"x")
    remove_unfinished(tmp_path)
    assert os.listdir(tmp_path) == []
