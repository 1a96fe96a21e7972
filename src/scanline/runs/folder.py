"""The folder of a run: its name, its settings, its lock.

Takes the settings of a run as nested dictionaries; gives the folder in which the run may write.
Knows no recipe and no engine: settings are names and plain values.

A run is refused rather than overwritten, and a resumed run must be the same run: a setting that
differs would silently give a curve of two halves.
"""

from __future__ import annotations

import importlib.metadata
import json
import platform
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import UserError
from ..files import UNFINISHED, disk_errors, replace_file
from ..machine import machine_record
from ..settings import ABSENT, Difference, differences, nested_deeper, plain
from .lock import LOCK, Lock, released_on_error

SETTINGS, CHECKPOINTS = "settings.json", "checkpoints"
FORMAT_VERSION = 1
_MOST_LEVELS = 32
_SHAPE = {"format_version": int, "settings": dict, "versions": dict, "resumed": list}
"""What every record has."""

MAY_DIFFER = frozenset(
    {
        *("agent_steps", "seconds", "target_score", "stop_if_too_slow", "evaluation_games"),
        *("save_every_agent_steps", "save_every_minutes", "save_at_end"),
        *("keep_checkpoints", "milestone_every_agent_steps", "replay_segment_agent_steps"),
        *("tensorboard", "track", "stuck_seconds", "live", "refresh_seconds", "plain_seconds"),
        *("norms_every_updates", "cosine_every_updates", "log_intensity"),
        *("out", "resume", "wait_seconds", "num_threads", "num_workers", "pin_cores"),
        *("source", "source_sha256", "learner_address", "lost_learner_seconds", "device"),
    }
)
"""Last parts of the names of settings that a resumed run may change: none touches learning. An
edited recipe file shows in the versions, another device in what a checkpoint depends on."""

_ADDED = (
    Difference("run.init", ABSENT, None),
    Difference("run.precision", ABSENT, "float32"),
    Difference("run.compile", ABSENT, False),
    Difference("recipe.store.replay_place", ABSENT, "auto"),
)
"""Settings that older records lack and whose present value changes nothing."""


class RunFolderError(UserError):
    """A folder cannot be used as asked."""


def default_folder(game: str, recipe: str, seed: int, clock_seconds: float | None = None) -> Path:
    """`runs/game__recipe__seed__time`, with nothing in it that a file system dislikes."""
    at = time.strftime("%Y%m%d-%H%M%S", time.localtime(clock_seconds))
    name = "__".join((game, recipe, str(seed), at))
    return Path("runs") / "".join(c if c.isalnum() or c in "._-" else "-" for c in name)


def versions(**parts: str) -> dict[str, str]:
    """Versions that a result may depend on, with those of parts that the caller knows."""
    names = ("scanline", "torch", "numpy", "gymnasium")
    return {
        **{name: _version(name) for name in names},
        "python": platform.python_version(),
        **parts,
    }


class RunFolder:
    """A folder that this process alone writes, until it is closed."""

    def __init__(self, path: Path, lock: Lock, record: dict[str, Any]) -> None:
        self.path, self.record, self._lock = path, record, lock

    @classmethod
    def create(
        cls, path: Path, settings: Mapping[str, Any], versions: Mapping[str, str]
    ) -> RunFolder:
        """Begins a run in a folder that is new or empty."""
        _refuse_occupied(path)
        record = {
            "format_version": FORMAT_VERSION,
            "settings": plain(settings),
            "versions": dict(versions),
            "machine": machine_record(),
            "started": _now(),
            "resumed": [],
            "inexact": [],
        }
        with disk_errors(f"the run folder {path}", "choose another folder with --out"):
            path.mkdir(parents=True, exist_ok=True)
            with released_on_error(Lock(path)) as lock:
                _refuse_occupied(path)
                _write_record(path, record)
        return cls(path, lock, record)

    @classmethod
    def resume(
        cls, path: Path, settings: Mapping[str, Any], versions: Mapping[str, str]
    ) -> RunFolder:
        """Goes on with a run, if these settings are those of the run."""
        record = read_record(path)
        with (
            disk_errors(f"the run folder {path}", "free some space and try again"),
            released_on_error(Lock(path)) as lock,
        ):
            _refuse_different(path, record, settings)
            record |= {"settings": plain(settings), "inexact": []}
            record["resumed"] += [{"at": _now(), "versions": dict(versions)}]
            _write_record(path, record)
        return cls(path, lock, record)

    @property
    def checkpoints(self) -> Path:
        return self.path / CHECKPOINTS

    def mark_inexact(self, reasons: Sequence[str]) -> None:
        """Records why the run is not exact, for reports."""
        self.record["inexact"] = list(reasons)
        with disk_errors(str(self.path / SETTINGS), "free some space and continue with --resume"):
            _write_record(self.path, self.record)

    def close(self) -> None:
        """Lets other processes write; may be called twice."""
        self._lock.release()

    def __enter__(self) -> RunFolder:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def read_record(path: Path) -> dict[str, Any]:
    """What `settings.json` of a run holds."""
    try:
        record = json.loads((path / SETTINGS).read_text())
    except FileNotFoundError:
        raise RunFolderError(
            f"There is no run in {path} (it has no {SETTINGS}); give the folder of one."
        ) from None
    except (OSError, ValueError, RecursionError) as error:
        raise RunFolderError(f"{path / SETTINGS} cannot be read: {error}.") from error
    if not isinstance(record, dict) or nested_deeper(record, _MOST_LEVELS):
        raise damaged(path, "it is no object, or one that is nested too deep")
    for name, kind in _SHAPE.items():
        if type(record.get(name)) is not kind:
            raise damaged(path, f"{name} is {record.get(name)!r:.60}")
    if record["format_version"] > FORMAT_VERSION:
        raise RunFolderError(f"{path / SETTINGS} was written by a newer scanline; update it.")
    return record


def damaged(path: Path, fault: str) -> RunFolderError:
    """The error of a run whose settings are not what a run writes."""
    words = fault.removesuffix(".")
    return RunFolderError(f"{path / SETTINGS} is damaged: {words}; put back a copy of it.")


def refuse_other_names(
    path: Path, record: Mapping[str, Any], settings: Mapping[str, Any]
) -> list[Difference]:
    """Refuses a run whose record has other names or kinds; gives the settings that differ.

    What is unknown here was removed or renamed since, and what the record lacks was decided by the
    scanline that wrote it: neither can be guessed. Settings that touch no learning may lack.
    """
    all_found = differences(record["settings"], settings)
    learning = [each for each in all_found if each.name.split(".")[-1] not in MAY_DIFFER]
    found = [each for each in learning if each not in _ADDED]
    unknown = [each.name for each in found if each.now is ABSENT]
    lacking = [each.name for each in found if each.before is ABSENT]
    kinds = [str(each) for each in found if each.name.endswith(".type")]
    if unknown or lacking or kinds:
        faults = [f"has settings that are unknown here ({', '.join(unknown)})"] if unknown else []
        faults += [f"lacks settings that are there now ({', '.join(lacking)})"] if lacking else []
        faults += [f"has parts of another kind ({'; '.join(kinds)})"] if kinds else []
        version = record.get("versions", {}).get("scanline", "unknown")
        raise RunFolderError(
            f"The record of the run {path} {' and '.join(faults)}, so that it cannot be said what "
            f"the run was; use the scanline and the recipe that wrote it (version {version}), or "
            "start a new run with another --out."
        )
    return found


def _refuse_occupied(path: Path) -> None:
    if (path / SETTINGS).exists():
        raise RunFolderError(
            f"The run {path} exists already; continue it with --resume, or choose another folder "
            "with --out."
        )
    if path.exists() and not path.is_dir():
        raise RunFolderError(f"{path} is a file; choose another folder with --out.")
    # A start that was killed leaves no more than its lock and half a file.
    names = [p.name for p in path.iterdir()] if path.exists() else []
    if any(name != LOCK and not name.startswith(UNFINISHED) for name in names):
        raise RunFolderError(
            f"{path} holds files but no run; choose another folder with --out, or empty it."
        )


def _refuse_different(path: Path, record: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    if found := refuse_other_names(path, record, now):
        raise RunFolderError(
            f"The run {path} cannot be resumed with other settings: "
            f"{'; '.join(map(str, found))}. Give the settings of the run, or start a new one "
            "with another --out."
        )


def _write_record(path: Path, record: Mapping[str, Any]) -> None:
    replace_file(path / SETTINGS, (json.dumps(record, indent=2) + "\n").encode())


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S%z")
