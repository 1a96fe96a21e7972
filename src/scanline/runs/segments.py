"""Segments: rows that only grow at one end, saved once and referred to by many checkpoints.

Takes columns of new rows; gives their references, which a part puts into its `state()`, and the
rows back, in order. Knows neither what a row means nor when a checkpoint is written.

A full replay has gigabytes, of which little changes between two checkpoints. What was written
stays; a checkpoint names the files it needs, and `Checkpoints` removes those that nobody names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import safetensors.torch
import torch
from torch import Tensor

from ..records import (Array, State)
from ..files import (disk_errors, replace_file, sha256)
from .trees import SegmentFile


class DamagedFile(RuntimeError):
    """A file is missing or is not what was written."""


class Segments:
    """The files of one stream of rows, numbered from 0."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder, self._name = folder, name
        self._files: list[SegmentFile] = []
        self._next_row = 0

    @property
    def next_row(self) -> int:
        """Rows appended so far, dropped ones included."""
        return self._next_row

    @property
    def first_row(self) -> int:
        """First row that is still in a file."""
        return self._files[0].first_row if self._files else self._next_row

    @property
    def files(self) -> tuple[SegmentFile, ...]:
        return tuple(self._files)

    def append(self, columns: Mapping[str, Tensor | Array]) -> SegmentFile:
        """Writes new rows, each column `[rows, ...]`, into a file of their own."""
        tensors = {key: _as_tensor(column) for key, column in columns.items()}
        num_rows = _num_rows(tensors)
        data = safetensors.torch.save(tensors)
        digest = sha256(data)
        name = f"{self._name}-{self._next_row:012d}-{digest[:16]}.safetensors"
        with disk_errors(f"the segment {name}", "free some space and continue with --resume"):
            replace_file(self._folder / name, data)
        file = SegmentFile(
            name=name,
            num_bytes=len(data),
            sha256=digest,
            first_row=self._next_row,
            num_rows=num_rows,
        )
        self._files.append(file)
        self._next_row += num_rows
        return file

    def drop_before(self, row: int) -> None:
        """Forgets the files of which every row is older than `row`."""
        self._files = [f for f in self._files if f.first_row + f.num_rows > row]

    def read(self) -> Iterator[tuple[int, dict[str, Tensor]]]:
        """(first row, columns) of every file, oldest first, each checked against its hash."""
        for file in self._files:
            yield file.first_row, safetensors.torch.load(read_checked(self._folder, file))

    def state(self) -> State:
        return {"files": list(self._files), "next_row": self._next_row}

    def load(self, state: State) -> None:
        self._files, self._next_row = list(state["files"]), int(state["next_row"])


def read_checked(folder: Path, file: SegmentFile) -> bytes:
    """The bytes of a segment; refuses bytes that are not those that were written."""
    return checked_bytes(folder / file.name, file.num_bytes, file.sha256)


def checked_bytes(path: Path, num_bytes: int, digest: str) -> bytes:
    """A file's bytes, if they are what its record says."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise DamagedFile(f"{path} cannot be read ({error.strerror})") from error
    if len(data) != num_bytes:
        raise DamagedFile(f"{path} has {len(data)} bytes instead of {num_bytes}")
    if sha256(data) != digest:
        raise DamagedFile(f"{path} does not match its hash")
    return data


def _as_tensor(column: Tensor | Array) -> Tensor:
    if isinstance(column, Tensor):
        return column.detach().cpu().contiguous()
    return torch.from_numpy(np.array(column, order="C"))


def _num_rows(tensors: Mapping[str, Tensor]) -> int:
    lengths = {key: tensor.shape[0] for key, tensor in tensors.items()}
    if len(set(lengths.values())) != 1 or not all(lengths.values()):
        raise ValueError(f"The columns of a segment must have equally many rows, got {lengths}.")
    return next(iter(lengths.values()))
