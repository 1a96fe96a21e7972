"""Files that survive a crash, rows of JSON, and disk errors in one sentence.

Takes paths and bytes; gives files that are either complete or absent, and the objects in them.
Knows nothing of checkpoints, logs or settings.

A rename is atomic only for names; the bytes must be on the disk before it, and the folder's entry
after it. All files of runs, reports and queues are written by these few functions.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from .errors import UserError

UNFINISHED = ".writing-"
"""Start of every name that is not complete yet; what bears it after a crash may be removed."""

_REASONS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "the file exceeds the largest size that the system allows",
    errno.EROFS: "the disk is read-only",
    errno.EACCES: "permission is denied",
    errno.ENOENT: "its folder was removed while the run wrote to it",
}
_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)
"""Errors that only a disk gives, whatever is written."""


class DiskError(UserError):
    """The disk refused to take something; the message says what, why and what to do."""


@contextmanager
def disk_errors(what: str, remedy: str) -> Iterator[None]:
    """Turns any `OSError` inside into one sentence; for a removed folder there is no remedy."""
    try:
        yield
    except OSError as error:
        gone = "start again" if error.errno == errno.ENOENT else remedy
        raise DiskError(f"Could not write {what}: {_reason(error)}; {gone}.") from error


def cache_folder() -> Path:
    """$SCANLINE_CACHE, else `scanline` in $XDG_CACHE_HOME, else in ~/.cache."""
    if named := os.environ.get("SCANLINE_CACHE"):
        return Path(named)
    home = Path(os.environ.get("XDG_CACHE_HOME", ""))
    # A relative path does not count, says the XDG specification.
    return (home if home.is_absolute() else Path.home() / ".cache") / "scanline"


def refusal_of(error: OSError) -> str:
    """One sentence where the disk refused to write, whatever it was; empty for other errors."""
    if error.errno not in _DISK:
        return ""
    where = error.filename or "a file"
    return f"Could not write {where}: {_reason(error)}; free some space and try again."


def _reason(error: OSError) -> str:
    return _REASONS.get(error.errno or 0, error.strerror or str(error).partition("\n")[0])


def refuse_removed(*descriptors: int) -> None:
    """Raises where an open file has lost its name: what is written to it would be lost unseen."""
    if not all(os.fstat(descriptor).st_nlink for descriptor in descriptors):
        raise FileNotFoundError(errno.ENOENT, "the file was removed")


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def write_synced(path: Path, data: bytes) -> None:
    """Writes a file and waits until the disk has it."""
    with open(path, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Waits until the disk has the folder's names; other systems than POSIX cannot be asked."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def replace_file(path: Path, data: bytes) -> None:
    """Puts a complete file in the place of an old one; a failure leaves the old one alone."""
    unfinished = path.with_name(UNFINISHED + path.name)
    try:
        write_synced(unfinished, data)
        os.replace(unfinished, path)
    except BaseException:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def remove_folder(folder: Path) -> None:
    """Removes a folder so that a crash leaves no half of it under its own name."""
    unfinished = folder.with_name(UNFINISHED + folder.name)
    shutil.rmtree(unfinished, ignore_errors=True)
    os.rename(folder, unfinished)
    shutil.rmtree(unfinished)


def remove_unfinished(folder: Path) -> None:
    """Removes what a crash left behind in a folder."""
    for path in folder.glob(UNFINISHED + "*"):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def json_object(text: bytes) -> dict[str, Any] | None:
    """The object that a text is; None for anything else."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def read_json_lines(path: Path) -> list[dict[str, Any]]:
    """The rows of a file up to a line that a crash cut; none where there is no file."""
    rows = []
    for line in path.read_bytes().splitlines(keepends=True) if path.exists() else []:
        row = json_object(line) if line.endswith(b"\n") else None
        if row is None:
            break
        rows.append(row)
    return rows
