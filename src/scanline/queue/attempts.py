"""The run folder of one claim: begun from the claim before, and stripped when it is finished.

Takes folders of runs; gives folders. Knows neither tickets nor leases.

A suspended worker may wake at any instruction and go on writing through files that it has open. So
no claim writes where another has written: a new claim begins with a folder of its own. Checkpoints
and segments are never changed once they have their names, so they are shared by hard links; files
that a run appends to are copied.
"""

from __future__ import annotations

import os
import shutil
import time
from contextlib import suppress
from pathlib import Path

from ..files import UNFINISHED, sync_folder, write_synced
from ..runs.lock import LOCK

_CHECKPOINTS, _SEGMENTS = "checkpoints", "segments"
_MOST_TRIES = 50
_BETWEEN_TRIES_SECONDS = 0.1


def begin(folder: Path) -> None:
    """Makes a run folder, empty or as the newest earlier attempt beside it has left it.

    The earlier one may still be written by a process that does not know of its end. A copy counts
    only if no checkpoint came or went meanwhile; its logs then have every row that a checkpoint
    counts, and a resumed run cuts the others. The folder gets its name when it is complete.
    """
    unfinished = folder.with_name(UNFINISHED + folder.name)
    for _ in range(_MOST_TRIES):
        shutil.rmtree(unfinished, ignore_errors=True)
        if not (earlier := _earlier(folder)):
            unfinished.mkdir(parents=True)
            break
        if _copied(earlier[-1], unfinished):
            break
        time.sleep(_BETWEEN_TRIES_SECONDS)
    os.rename(unfinished, folder)
    sync_folder(folder.parent)
    for path in _earlier(folder):
        remove(path)


def _earlier(folder: Path) -> list[Path]:
    """Complete attempts with a smaller number, oldest first."""
    if not folder.parent.exists():
        return []
    names = [p.name for p in folder.parent.iterdir() if not p.name.startswith(UNFINISHED)]
    return [
        folder.with_name(n) for n in sorted(names, key=_number) if _number(n) < _number(folder.name)
    ]


def _number(name: str) -> int:
    return int(name.partition("-")[0])


def _copied(source: Path, target: Path) -> bool:
    """Whether a copy was made of which every part belongs to the same moment."""
    with suppress(FileNotFoundError):
        before = _checkpoints(source)
        _copy(source, target)
        return _checkpoints(source) == before
    return False


def _checkpoints(run: Path) -> set[str]:
    """Names of all that checkpoints consist of."""
    names = {path.name for path in (run / _CHECKPOINTS).glob("[!.]*")}
    return names | {path.name for path in (run / _CHECKPOINTS / _SEGMENTS).glob("[!.]*")}


def _copy(source: Path, target: Path, is_final: bool = False) -> None:
    """`is_final`: files here are never changed again."""
    target.mkdir()
    for path in sorted(source.iterdir()):
        place = target / path.name
        if path.name == LOCK or path.name.startswith(UNFINISHED):
            continue
        if path.is_dir():
            _copy(path, place, is_final or path.name == _CHECKPOINTS)
        elif is_final:
            _link(path, place)
        else:
            write_synced(place, path.read_bytes())
    sync_folder(target)


def _link(path: Path, place: Path) -> None:
    try:
        os.link(path, place)
    except FileNotFoundError:
        raise
    except OSError:  # a file system without hard links
        write_synced(place, path.read_bytes())


def remove(folder: Path) -> None:
    """Removes an attempt; a process that still writes to it finds its files gone and ends."""
    unfinished = folder.with_name(UNFINISHED + folder.name)
    with suppress(FileNotFoundError):
        os.rename(folder, unfinished)
    shutil.rmtree(unfinished, ignore_errors=True)


def drop_replay(run: Path) -> None:
    """Leaves the newest checkpoint without the segments of its replay: weights can be used."""
    checkpoints = sorted((run / _CHECKPOINTS).glob("[0-9]*-agent-steps-*"))
    for old in checkpoints[:-1]:
        shutil.rmtree(old, ignore_errors=True)
    for segment in (run / _CHECKPOINTS / _SEGMENTS).glob("*"):
        segment.unlink(missing_ok=True)
