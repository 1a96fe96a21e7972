"""Ring: the last R rows of B environments, every frame once.

Takes blocks of rows with the number of their first; keeps row i in place i modulo R. Gives arrays
that a place indexes, `place = (i modulo R) * B + environment`, and rows back in their order.
Knows no slot, sampling rule or episode.

Memory is asked for and not touched: the system hands pages out as rows are written.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import torch
from torch import Tensor

from ..records import Array, Column, Spaces, to_array

OWN_COLUMNS = {
    "depth": Column(dtype=torch.uint8),
    "action": Column(dtype=torch.int64),
    "reward": Column(dtype=torch.float32),
    "end": Column(dtype=torch.uint8),
    "version": Column(dtype=torch.int64),
    "final": Column(dtype=torch.int32),
}
"""Columns of every step; `final` is the number of its true last observation, if it was truncated.
`start`, where environments give such frames, that of those before the first of an episode."""
NUMBERS = ("final", "start")
"""Columns that number what lies beside the ring."""


def step_columns(spaces: Spaces, columns: Mapping[str, Column]) -> dict[str, Column]:
    """Everything that one step takes: the one list behind allocation and arithmetic."""
    frame = Column(spaces.frame_shape, getattr(torch, spaces.frame_dtype))
    start = {"start": OWN_COLUMNS["final"]} if spaces.num_start_frames else {}
    taken = sorted({"frame", "discount", "start", *OWN_COLUMNS} & columns.keys())
    if taken:
        raise ValueError(
            f"The algorithm's columns {taken} carry names that the replay uses itself; rename them."
        )
    return {"frame": frame, **OWN_COLUMNS, **start, **columns}


def column_bytes(column: Column) -> int:
    """Bytes of one step in one column."""
    return math.prod(column.shape) * column.dtype.itemsize


class Ring:
    """Arrays [R, B, ...] by name, and one frame of zeros after the last place."""

    def __init__(self, columns: Mapping[str, Column], num_rows: int, num_envs: int) -> None:
        self.num_rows, self.num_envs = num_rows, num_envs
        self.num_places = num_rows * num_envs
        frame = columns["frame"]
        self._frames = torch.empty((self.num_places + 1, *frame.shape), dtype=frame.dtype)
        self._frames[self.zeros_place] = 0
        shape = (num_rows, num_envs)
        self.arrays = {
            name: torch.empty((*shape, *column.shape), dtype=column.dtype)
            for name, column in columns.items()
            if name != "frame"
        }
        self.arrays["frame"] = self._frames[: self.num_places].view(*shape, *frame.shape)
        self.frames: Array = to_array(self._frames.flatten(1))  # [R * B + 1, pixels], by place
        self._rows = {name: to_array(array) for name, array in self.arrays.items()}
        self.by_place: dict[str, Array] = {  # each [R * B, ...]
            name: to_array(array.flatten(0, 1)) for name, array in self.arrays.items()
        }

    @property
    def zeros_place(self) -> int:
        """Where a frame of zeros lies, for stacks that are padded with them."""
        return self.num_places

    def write(self, first: int, envs: slice, block: Mapping[str, Array]) -> None:
        """Copies rows `first`, `first + 1`, ... of some environments, each array [rows, b, ...].

        By NumPy, on the calling thread: torch would wake its other threads for a few frames.
        """
        for name, values in block.items():
            array = self._rows[name]
            for rows, part in self._spans(first, len(values)):
                array[rows, envs] = values[part]

    def read(self, first: int, last: int, envs: slice, name: str) -> Tensor:
        """Rows first <= i < last of one array; a view where they do not cross the ring's end."""
        parts = [self.arrays[name][rows, envs] for rows, _ in self._spans(first, last - first)]
        return parts[0] if len(parts) == 1 else torch.cat(parts)

    def _spans(self, first: int, num: int) -> Iterator[tuple[slice, slice]]:
        """(rows of the ring, rows of the block), cut where the ring begins again."""
        done = 0
        while done < num:
            start = (first + done) % self.num_rows
            length = min(num - done, self.num_rows - start)
            yield slice(start, start + length), slice(done, done + length)
            done += length
