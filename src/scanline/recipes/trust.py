"""Which Python files this user has trained from.

Takes the path of a file and the SHA-256 of its bytes; records the pair in the user's own state
directory, and says whether it is recorded. Knows nothing of recipes, games or runs.

A run's folder may come from elsewhere, and a Python file that it names could do anything. It runs
without a question only if this user has named that very file in a training before. Each pair is a
small file of its own that a rename puts in its place: nothing is ever rewritten, so trainings that
start together do not disturb each other.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import tempfile
import warnings
from pathlib import Path

STATE_VARIABLE = "SCANLINE_STATE"
_FOLDER = "trained-from"


def state_folder() -> Path:
    """$SCANLINE_STATE, else `scanline` in $XDG_STATE_HOME, else in ~/.local/state."""
    if named := os.environ.get(STATE_VARIABLE):
        return Path(named)
    home = Path(os.environ.get("XDG_STATE_HOME", ""))
    # A relative path does not count, says the XDG specification.
    return (home if home.is_absolute() else Path.home() / ".local" / "state") / "scanline"


def remember(path: Path, sha256: str) -> None:
    """Records that this user trains from a file; a training does not fail where that fails."""
    try:
        folder = _private_folder()
        handle, unfinished = tempfile.mkstemp(dir=folder, prefix=".writing-")  # mode 0600
        try:
            with os.fdopen(handle, "w") as file:
                json.dump({"path": str(path), "sha256": sha256}, file)
            os.replace(unfinished, folder / _name(path, sha256))
        except BaseException:
            os.unlink(unfinished)
            raise
    except (OSError, RuntimeError) as error:  # RuntimeError: there is no home directory
        warnings.warn(
            f"It could not be recorded in {state_folder_words()} that you train from {path} "
            f"({error}); `scanline evaluate` and `play` will ask for it.",
            stacklevel=2,
        )


def is_remembered(path: Path, sha256: str) -> bool:
    """Whether this user has trained from a file with these bytes at this path."""
    try:
        folder = state_folder() / _FOLDER
        record = folder / _name(path, sha256)
        if not all(map(_is_own, (folder.parent, folder, record))):
            return False
        found = json.loads(record.read_text())
    except (OSError, ValueError, RuntimeError):
        return False
    return bool(found == {"path": str(path), "sha256": sha256})


def state_folder_words() -> str:
    """The folder for a sentence, also where there is none."""
    try:
        return str(state_folder())
    except RuntimeError:
        return "the state directory"


def _private_folder() -> Path:
    state = state_folder()
    state.parent.mkdir(parents=True, exist_ok=True)
    for folder in (state, state / _FOLDER):
        folder.mkdir(mode=0o700, exist_ok=True)
    return state / _FOLDER


def _is_own(path: Path) -> bool:
    """Whether this user alone can write there."""
    found = path.stat()
    others = stat.S_IWGRP | stat.S_IWOTH
    return found.st_uid == os.getuid() and not found.st_mode & others


def _name(path: Path, sha256: str) -> str:
    return hashlib.sha256(bytes(path) + b"\0" + sha256.encode()).hexdigest() + ".json"
