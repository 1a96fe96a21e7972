"""A replay in a checkpoint: its rows in append-only files, the rest as state.

Takes a replay and one stream of segments per writer; gives a part that a checkpoint holds.
Knows neither what a row means nor when a checkpoint is written.

A full replay has gigabytes, of which little changes between two checkpoints, and a row never
changes once it is written. So a checkpoint writes only the rows since the last segment and names
the files it needs; `Checkpoints` removes those that none names. Between checkpoints a segment is
written whenever enough rows have come together, so that no checkpoint has to write much.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import safetensors.torch
import torch
from torch import Tensor

from ..files import disk_errors, replace_file, sha256
from ..records import Array, State
from ..stores import Replay
from .state_files import SegmentFile, checked_bytes

MOST_BYTES_PER_SEGMENT = 256 * 2**20


class Segments:
    """The files of one stream of rows, numbered from 0."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder, self._name = folder, name
        self.files: list[SegmentFile] = []
        """Oldest first."""
        self.next_row = 0
        """Rows appended so far, dropped ones included."""

    @property
    def first_row(self) -> int:
        """First row that is still in a file."""
        return self.files[0].first_row if self.files else self.next_row

    def append(self, columns: Mapping[str, Tensor | Array]) -> SegmentFile:
        """Writes new rows, each column `[rows, ...]`, into a file of their own."""
        tensors = {key: _as_tensor(column) for key, column in columns.items()}
        num_rows = _num_rows(tensors)
        data = safetensors.torch.save(tensors)
        digest = sha256(data)
        name = f"{self._name}-{self.next_row:012d}-{digest[:16]}.safetensors"
        with disk_errors(f"the segment {name}", "free some space and continue with --resume"):
            replace_file(self._folder / name, data)
        file = SegmentFile(
            name=name,
            num_bytes=len(data),
            sha256=digest,
            first_row=self.next_row,
            num_rows=num_rows,
        )
        self.files.append(file)
        self.next_row += num_rows
        return file

    def drop_before(self, row: int) -> None:
        """Forgets the files of which every row is older than `row`."""
        self.files = [f for f in self.files if f.first_row + f.num_rows > row]

    def read(self) -> Iterator[tuple[int, dict[str, Tensor]]]:
        """(first row, columns) of every file, oldest first, each checked against its hash."""
        for file in self.files:
            yield file.first_row, safetensors.torch.load(read_checked(self._folder, file))

    def state(self) -> State:
        return {"files": list(self.files), "next_row": self.next_row}

    def load(self, state: State) -> None:
        self.files, self.next_row = list(state["files"]), int(state["next_row"])


class ReplayRows:
    """Saves a replay exactly."""

    def __init__(
        self,
        replay: Replay,
        streams: Sequence[Segments],
        games_go_on: Callable[[], bool],
        segment_rows: int = 0,
    ) -> None:
        """`games_go_on`: whether the games go on that the rows are of, asked once samplers are
        loaded; `segment_rows`: rows that become a segment between checkpoints, 0 for none."""
        self._replay, self._streams, self._games_go_on = replay, streams, games_go_on
        self._segment_rows, self._most_bytes = segment_rows, MOST_BYTES_PER_SEGMENT

    def grow(self) -> None:
        """Writes the segments that are full; called between checkpoints, with nothing staged."""
        for writer, stream in enumerate(self._streams):
            first = max(stream.next_row, self._replay.first_row(writer))
            if 0 < self._segment_rows <= self._replay.next_row(writer) - first:
                self._append(writer, stream)

    def state(self) -> State:
        for writer, stream in enumerate(self._streams):
            self._append(writer, stream)
        return {
            "rows": [stream.state() for stream in self._streams],
            "replay": self._replay.state(),
        }

    def _append(self, writer: int, stream: Segments) -> None:
        first, last = self._replay.first_row(writer), self._replay.next_row(writer)
        if stream.next_row < first:  # more was overwritten since the last save than the ring holds
            stream.load({"files": [], "next_row": first})
        while stream.next_row < last:
            end = min(last, stream.next_row + self._rows_per_file(writer, stream.next_row))
            stream.append(self._replay.rows(stream.next_row, end, writer))
        stream.drop_before(first)

    def _rows_per_file(self, writer: int, row: int) -> int:
        """A file is put together in memory: a full replay in one piece would need twice its own."""
        columns = self._replay.rows(row, row + 1, writer).values()
        return max(1, self._most_bytes // sum(column.nbytes for column in columns))

    def load(self, state: State) -> None:
        for writer, stream in enumerate(self._streams):
            stream.load(state["rows"][writer])
            for first, columns in stream.read():
                self._replay.restore_rows(first, columns, writer)
        self._replay.load(state["replay"])
        if not self._games_go_on():
            self._replay.cut()


def stream_name(learner: int) -> str:
    """Of the rows of a learner's replay."""
    return f"replay-{learner}"


def files_of(files: Sequence[SegmentFile], learner: int) -> list[SegmentFile]:
    """Those with the rows of one learner."""
    return [file for file in files if file.name.startswith(f"{stream_name(learner)}-")]


def check_files(folder: Path, files: Sequence[SegmentFile]) -> None:
    """Raises `DamagedFile` unless each of them is there as it was written."""
    for file in files:
        read_checked(folder, file)


def remove_unneeded(folder: Path, learner: int, needed: Collection[str]) -> None:
    """Removes the files of one learner that no checkpoint needs, wherever its checkpoints are."""
    with disk_errors(f"the folder {folder}", "check its disk and permissions"):
        folder.mkdir(parents=True, exist_ok=True)
        for path in folder.glob(f"*{stream_name(learner)}-*"):  # unfinished ones too
            if path.name not in needed:
                path.unlink(missing_ok=True)  # the leading learner of this machine may be first


def read_checked(folder: Path, file: SegmentFile) -> bytes:
    """The bytes of a segment; refuses bytes that are not those that were written."""
    return checked_bytes(folder / file.name, file.num_bytes, file.sha256)


def _as_tensor(column: Tensor | Array) -> Tensor:
    if isinstance(column, Tensor):
        return column.detach().cpu().contiguous()
    return torch.from_numpy(np.array(column, order="C"))


def _num_rows(tensors: Mapping[str, Tensor]) -> int:
    lengths = {key: tensor.shape[0] for key, tensor in tensors.items()}
    if len(set(lengths.values())) != 1 or not all(lengths.values()):
        raise ValueError(f"The columns of a segment must have equally many rows, got {lengths}.")
    return next(iter(lengths.values()))
