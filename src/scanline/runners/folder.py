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
import warnings
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from .durable import UNFINISHED, disk_errors, replace_file
from .lock import LOCK, Lock
from .machine import machine_record

SETTINGS = "settings.json"
FORMAT_VERSION = 1

MAY_DIFFER = frozenset(
    {
        *("agent_steps", "seconds", "target_score"),
        *("save_every_agent_steps", "save_every_minutes", "save_at_end"),
        *("keep_checkpoints", "milestone_every_agent_steps", "replay_segment_agent_steps"),
        *("tensorboard", "stuck_seconds", "live", "refresh_seconds", "plain_seconds"),
        *("norms_every_updates", "cosine_every_updates", "log_intensity"),
        *("out", "resume", "wait_seconds", "num_threads", "num_workers", "pin_cores"),
    }
)
"""Last parts of the names of settings that a resumed run may change: none touches learning."""


class RunFolderError(RuntimeError):
    """A folder cannot be used as asked."""


class Difference(NamedTuple):
    """One setting that is not what it was."""

    name: str
    before: Any
    now: Any

    def __str__(self) -> str:
        return f"{self.name} was {self.before!r} and is now {self.now!r}"


def default_folder(game: str, recipe: str, seed: int, clock_seconds: float | None = None) -> Path:
    """`runs/game__recipe__seed__time`, with nothing in it that a file system dislikes."""
    at = time.strftime("%Y%m%d-%H%M%S", time.localtime(clock_seconds))
    name = "__".join((game, recipe, str(seed), at))
    return Path("runs") / "".join(c if c.isalnum() or c in "._-" else "-" for c in name)


def versions(engine: str, engine_version: str) -> dict[str, str]:
    """Versions that a result may depend on."""
    names = ("scanline", "torch", "numpy", "gymnasium")
    return {
        **{name: _version(name) for name in names},
        "python": platform.python_version(),
        "engine": f"{engine} {engine_version}",
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
            "settings": _plain(settings),
            "versions": dict(versions),
            "machine": machine_record(),
            "started": _now(),
            "resumed": [],
        }
        with disk_errors(f"the run folder {path}", "choose another folder with --out"):
            path.mkdir(parents=True, exist_ok=True)
            lock = Lock(path)
            try:
                _refuse_occupied(path)
                _write_record(path, record)
            except BaseException:
                lock.release()
                raise
        return cls(path, lock, record)

    @classmethod
    def resume(
        cls, path: Path, settings: Mapping[str, Any], versions: Mapping[str, str]
    ) -> RunFolder:
        """Goes on with a run, if these settings are those of the run."""
        record = read_record(path)
        with disk_errors(f"the run folder {path}", "free some space and try again"):
            lock = Lock(path)
            try:
                _refuse_different(path, record["settings"], _plain(settings))
                _warn_of_versions(path, record["versions"], versions)
                record["settings"] = _plain(settings)
                record["resumed"] += [{"at": _now(), "versions": dict(versions)}]
                _write_record(path, record)
            except BaseException:
                lock.release()
                raise
        return cls(path, lock, record)

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    def close(self) -> None:
        """Lets other processes write; may be called twice."""
        self._lock.release()

    def __enter__(self) -> RunFolder:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def read_record(path: Path) -> dict[str, Any]:
    """What `settings.json` of a run holds; for whoever reads runs."""
    try:
        record = json.loads((path / SETTINGS).read_text())
    except FileNotFoundError:
        raise RunFolderError(
            f"There is no run in {path} (it has no {SETTINGS}); start one without --resume."
        ) from None
    except (OSError, ValueError) as error:
        raise RunFolderError(f"{path / SETTINGS} cannot be read: {error}.") from error
    if not isinstance(record, dict) or record.get("format_version", 0) > FORMAT_VERSION:
        raise RunFolderError(f"{path / SETTINGS} was written by a newer scanline; update it.")
    return record


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[Difference]:
    """Settings that differ, by dotted name."""
    flat_before, flat_now = _flat(_plain(before)), _flat(_plain(now))
    names = dict.fromkeys((*flat_before, *flat_now))
    pairs = (Difference(n, flat_before.get(n), flat_now.get(n)) for n in names)
    return [pair for pair in pairs if pair.before != pair.now]


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


def _refuse_different(path: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    found = [d for d in differences(before, now) if d.name.split(".")[-1] not in MAY_DIFFER]
    if found:
        raise RunFolderError(
            f"The run {path} cannot be resumed with other settings: "
            f"{'; '.join(map(str, found))}. Give the settings of the run, or start a new one "
            "with another --out."
        )


def _warn_of_versions(path: Path, before: Mapping[str, str], now: Mapping[str, str]) -> None:
    found = differences(before, now)
    if found:
        warnings.warn(
            f"The run {path} goes on with other versions and may not end bit for bit as it would "
            f"have: {'; '.join(map(str, found))}.",
            stacklevel=3,
        )


def _write_record(path: Path, record: Mapping[str, Any]) -> None:
    replace_file(path / SETTINGS, (json.dumps(record, indent=2) + "\n").encode())


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """As JSON gives it back: tuples become lists, and what JSON cannot hold its name."""
    plain: dict[str, Any] = json.loads(json.dumps(values, default=_name_of))
    return plain


def _name_of(value: Any) -> str:
    if isinstance(value, Path):
        return str(value)
    return str(getattr(value, "__qualname__", type(value).__qualname__))


def _flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            flat |= _flat(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = value
    return flat


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S%z")
