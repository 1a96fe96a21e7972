"""Checkpoints: the whole state of a run, so that a killed run goes on as if nothing had happened.

Takes a nested `State` and the agent steps it belongs to; gives it back, checked against hashes.
Knows nothing of networks, stores or loops: a state is dictionaries of tensors and plain values.

A checkpoint is a folder with `tensors.safetensors` and `manifest.json` (structure, numbers,
hashes). It gets its name by one rename after everything in it is on the disk, so each name stands
for a complete checkpoint, and the one before is removed only afterwards.
"""

from __future__ import annotations

import json
import os
import shutil
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch

from ..errors import UserError
from ..files import (
    UNFINISHED,
    disk_errors,
    remove_folder,
    remove_unfinished,
    sha256,
    sync_folder,
    write_synced,
)
from ..records import State
from ..settings import at_least
from .limits import passed
from .replay_segments import Segments, check_files
from .state_files import DamagedFile, SegmentFile, checked_bytes, decode, encode

FORMAT_VERSION = 1
_STRANGE = (
    *(KeyError, IndexError, TypeError, ValueError, AttributeError, RecursionError),
    safetensors.SafetensorError,
)
MANIFEST, TENSORS, SEGMENTS = "manifest.json", "tensors.safetensors", "segments"
BEST = "best"
"""Folder of the checkpoint with the best evaluation: weights alone, which cannot be resumed."""

CheckFiles = Callable[[Path, Sequence[SegmentFile]], None]
"""Raises `DamagedFile` unless the segments of a folder are there as they were written."""


class CheckpointError(UserError):
    """There is no checkpoint that can be used."""


class DamagedCheckpointWarning(UserWarning):
    """A checkpoint is damaged and an older one is used."""


@dataclass(frozen=True, kw_only=True)
class CheckpointSettings:
    """Which checkpoints stay."""

    keep_checkpoints: int = 3
    """Newest checkpoints that stay; with 2 or more a damaged one has a predecessor."""
    milestone_every_agent_steps: int = 0
    """Agent steps between checkpoints that stay for ever; 0 for none."""

    def __post_init__(self) -> None:
        at_least(1, self, "keep_checkpoints")
        at_least(0, self, "milestone_every_agent_steps", remedy="use 0 for no milestones")


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint that was read and found intact."""

    path: Path
    agent_steps: int
    state: State


@dataclass(frozen=True, order=True)
class _Name:
    """`000007-agent-steps-120000`: the serial number orders, the steps are for the reader."""

    serial: int
    agent_steps: int
    path: Path


class Checkpoints:
    """The one writer of a run's checkpoints; clears up what a crash left, when it is made."""

    def __init__(self, folder: Path, settings: CheckpointSettings) -> None:
        self._folder, self._settings = folder, settings
        self._streams: list[Segments] = []
        self._damaged: set[Path] = set()
        with disk_errors(f"the folder {folder}", "check its disk and permissions"):
            (folder / SEGMENTS).mkdir(parents=True, exist_ok=True)
            remove_unfinished(folder)
            remove_unfinished(folder / SEGMENTS)
            self._remove_unreferenced_segments()

    @property
    def segments_folder(self) -> Path:
        return self._folder / SEGMENTS

    @property
    def any_complete(self) -> bool:
        """Whether a checkpoint was ever completed."""
        return bool(_names(self._folder))

    def segments(self, name: str) -> Segments:
        """A stream of rows beside the checkpoints; load its state before anything is saved."""
        stream = Segments(self.segments_folder, name)
        self._streams.append(stream)
        return stream

    def save(self, state: State, agent_steps: int) -> Path:
        """Writes one checkpoint completely, then removes those that need not stay."""
        names = _names(self._folder)
        serial = names[-1].serial + 1 if names else 0
        path = self._folder / f"{serial:06d}-agent-steps-{agent_steps}"
        remedy = "the previous checkpoint is intact; free some space and continue with --resume"
        with disk_errors(f"the checkpoint {path}", remedy):
            _write(path, state, agent_steps)
            self._remove_old()
        return path

    def latest(self, check: CheckFiles = check_files) -> Checkpoint | None:
        """The newest checkpoint that is intact; None where none was ever completed."""
        if not _names(self._folder):
            return None
        checkpoint, damaged = _newest_intact(self._folder, check)
        self._damaged.update(damaged)
        return checkpoint

    def _remove_old(self) -> None:
        names = [n for n in _names(self._folder) if n.path not in self._damaged]
        staying = {n.path for n in names[-self._settings.keep_checkpoints :]}
        staying |= _milestones(names, self._settings.milestone_every_agent_steps)
        for name in _names(self._folder):
            if name.path not in staying:
                remove_folder(name.path)
        self._damaged.clear()
        self._remove_unreferenced_segments()

    def needed_segments(self) -> set[str]:
        """Names of the files that a checkpoint refers to, wherever they are, or that grow."""
        needed = {file.name for stream in self._streams for file in stream.files}
        for name in _names(self._folder):
            needed |= {file.name for file in _referenced_segments(name.path)}
        return needed

    def _remove_unreferenced_segments(self) -> None:
        needed = self.needed_segments()
        for path in self.segments_folder.iterdir():
            if path.name not in needed:
                path.unlink(missing_ok=True)  # a learner of this machine may have removed it


def load_latest(folder: Path, check: CheckFiles | None = check_files) -> Checkpoint:
    """The newest intact checkpoint of a folder, which it leaves as it is.

    Without a `check` the segments' files are not read: weights need no replay.
    """
    if not _names(folder):
        raise CheckpointError(
            f"There is no checkpoint in {folder}; train until the first one is saved."
        )
    return _newest_intact(folder, check)[0]


def load_chosen(folder: Path, chosen: int | str | None) -> Checkpoint:
    """For its weights: the newest checkpoint, the one after so many agent steps, or the best."""
    if chosen is None:
        return load_latest(folder, check=None)
    best = _names(folder / BEST)
    if chosen == BEST:
        if not best:
            raise CheckpointError(
                f"There is no best checkpoint in {folder}: it is kept where a run pauses for "
                "evaluation (--evaluate-every-agent-steps); leave --checkpoint out for the newest."
            )
        return load_latest(folder / BEST, check=None)
    names = [*best, *_names(folder)]
    found = [name for name in names if str(name.agent_steps) == str(chosen).replace("_", "")]
    if not found:
        there = ", ".join(map(str, sorted({name.agent_steps for name in names}))) or "none"
        raise CheckpointError(
            f"There is no checkpoint after {chosen} agent steps in {folder}; there are those after "
            f"{there}."
        )
    try:
        return _read(found[-1].path, check=None)
    except DamagedFile as error:
        raise CheckpointError(f"Damaged checkpoint: {error}; choose another one.") from error


def _newest_intact(folder: Path, check: CheckFiles | None) -> tuple[Checkpoint, list[Path]]:
    faults: list[str] = []
    damaged: list[Path] = []
    for name in reversed(_names(folder)):
        try:
            checkpoint = _read(name.path, check)
        except DamagedFile as error:
            faults.append(str(error))
            damaged.append(name.path)
            continue
        for fault in faults:
            message = f"Damaged checkpoint: {fault}; the previous one, {name.path}, is used."
            warnings.warn(message, DamagedCheckpointWarning, stacklevel=3)
        return checkpoint, damaged
    raise CheckpointError(
        f"None of the {len(faults)} checkpoints in {folder} can be used: {'; '.join(faults)}. "
        "Put back a copy of one, or start a new run with another --out."
    )


def _write(path: Path, state: State, agent_steps: int) -> None:
    encoded = encode(state)
    tensors = safetensors.torch.save(encoded.tensors)
    manifest = {
        "format_version": FORMAT_VERSION,
        "agent_steps": agent_steps,
        "tensors": {"num_bytes": len(tensors), "sha256": sha256(tensors)},
        "segments": [asdict(file) for file in encoded.segments],
        "state": encoded.tree,
    }
    manifest["sha256"] = _digest(manifest)
    unfinished = path.with_name(UNFINISHED + path.name)
    try:
        unfinished.mkdir()
        write_synced(unfinished / TENSORS, tensors)
        write_synced(unfinished / MANIFEST, json.dumps(manifest, indent=1).encode())
        sync_folder(unfinished)
        os.rename(unfinished, path)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
    sync_folder(path.parent)


def _read(path: Path, check: CheckFiles | None) -> Checkpoint:
    manifest = _read_manifest(path)
    with _as_written(path):
        record = manifest["tensors"]
        data = checked_bytes(path / TENSORS, record["num_bytes"], record["sha256"])
        if check is not None:
            check(path.parent / SEGMENTS, _segments_of(manifest))
        state = decode(manifest["state"], safetensors.torch.load(data))
        return Checkpoint(path, manifest["agent_steps"], state)


@contextmanager
def _as_written(path: Path) -> Iterator[None]:
    """A checkpoint is data: one that no run wrote, though its hashes are right, is damaged."""
    try:
        yield
    except _STRANGE as error:
        name = type(error).__name__
        raise DamagedFile(f"{path} is not what a run writes ({name}: {error})") from error


def _read_manifest(path: Path) -> dict[str, Any]:
    file = path / MANIFEST
    try:
        manifest = json.loads(file.read_bytes())
    except OSError as error:
        raise DamagedFile(f"{file} cannot be read ({error.strerror})") from error
    except (ValueError, RecursionError) as error:
        raise DamagedFile(f"{file} is not JSON") from error
    if not isinstance(manifest, dict) or manifest.pop("sha256", None) != _digest(manifest):
        raise DamagedFile(f"{file} does not match its hash")
    version = manifest.get("format_version")
    if type(version) is not int or version > FORMAT_VERSION:
        raise DamagedFile(f"{file} has format {version}; this scanline reads {FORMAT_VERSION}")
    return manifest


def _digest(manifest: dict[str, Any]) -> str:
    return sha256(json.dumps(manifest, sort_keys=True).encode())


def _referenced_segments(path: Path) -> list[SegmentFile]:
    """References of one checkpoint; a damaged manifest refers to nothing that can be used."""
    try:
        with _as_written(path):
            return _segments_of(_read_manifest(path))
    except DamagedFile:
        return []


def _segments_of(manifest: dict[str, Any]) -> list[SegmentFile]:
    """The files that a checkpoint needs, each in the folder of segments and nowhere else."""
    files = [SegmentFile(**file) for file in manifest["segments"]]
    if any(Path(file.name).name != file.name for file in files):
        raise ValueError("a segment lies in another folder")
    return files


def _names(folder: Path) -> list[_Name]:
    """The complete checkpoints of a folder, oldest first."""
    found = []
    for path in folder.glob("*-agent-steps-*"):
        serial, _, agent_steps = path.name.partition("-agent-steps-")
        if serial.isdecimal() and agent_steps.isdecimal():
            found.append(_Name(int(serial), int(agent_steps), path))
    return sorted(found)


def _milestones(names: Iterable[_Name], every_agent_steps: int) -> set[Path]:
    """The first checkpoint at or after each multiple of the interval."""
    staying: set[Path] = set()
    last = 0
    for name in names:
        if passed(every_agent_steps, last, name.agent_steps):
            last = name.agent_steps
            staying.add(name.path)
    return staying
