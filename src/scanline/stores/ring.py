"""Ring buffer: the last R rows of B environments, every frame once, and the few frames beside it.

Takes filled slots; keeps row i of an environment at index `(i modulo R) * B + environment` of every
array. Gives arrays that indices address, rows in their order, and the range of rows that may be
drawn. Knows no sampling rule, target or network.

Rows of an environment are numbered from its first on and never again, wherever the ring keeps them.
Memory is asked for and not touched: the system gives out pages as rows are written.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from ..devices import HOST, Device, download
from ..records import Array, Column, Slot, Spaces, State, to_array
from ..stacks import Padding, SparseFrames, build, newest

Flush = Literal["full", "completed"]

GOES_ON, TERMINAL, TRUNCATED = 0, 1, 2
"""How a step ended: not at all, without a future, or with a future that was not seen."""
STEP_COLUMNS = {
    "depth": Column(dtype=torch.uint8),
    "action": Column(dtype=torch.int64),
    "reward": Column(dtype=torch.float32),
    "end": Column(dtype=torch.uint8),
    "version": Column(dtype=torch.int64),
}
"""Columns of every step besides its frame."""


def step_columns(spaces: Spaces, columns: Mapping[str, Column]) -> dict[str, Column]:
    """Everything that one step takes: the one list behind allocation and arithmetic."""
    frame = Column(spaces.frame_shape, getattr(torch, spaces.frame_dtype))
    taken = sorted({"frame", "discount", *STEP_COLUMNS} & columns.keys())
    if taken:
        raise ValueError(
            f"The algorithm's columns {taken} carry names that the replay uses itself; rename them."
        )
    return {"frame": frame, **STEP_COLUMNS, **columns}


def column_bytes(column: Column) -> int:
    """Bytes of one step in one column."""
    return math.prod(column.shape) * column.dtype.itemsize


@dataclass(frozen=True)
class RingRange:
    """Rows that may be drawn of every environment: first <= row < last, both [B] int64."""

    first: Array
    last: Array

    @classmethod
    def empty(cls, num_envs: int) -> RingRange:
        return cls(np.zeros(num_envs, np.int64), np.zeros(num_envs, np.int64))

    @property
    def num_steps(self) -> int:
        return int((self.last - self.first).sum())


@dataclass(frozen=True)
class RingLayout:
    """How rows and environments become indices."""

    num_rows: int
    num_envs: int
    first_env_id: int = 0
    """Global number of the first environment."""

    @property
    def size(self) -> int:
        """Indices: R * B."""
        return self.num_rows * self.num_envs

    def index(self, rows: Array, envs: Array) -> Array:
        """Indices of these rows, one environment each."""
        indices: Array = rows % self.num_rows * self.num_envs + envs
        return indices

    def indices(self, first: Array, last: Array) -> Array:
        """Of all rows first <= row < last of every environment; none where last <= first."""
        counts = np.maximum(last - first, 0)
        envs = np.repeat(np.arange(self.num_envs), counts)
        begins = np.cumsum(counts) - counts
        return self.index(np.arange(len(envs)) + np.repeat(first - begins, counts), envs)


class Ring:
    """Arrays by name, and one frame of zeros after the last index, to pad stacks with.

    Frames may be on a device; everything else is in host memory.
    """

    def __init__(
        self, columns: Mapping[str, Column], layout: RingLayout, place: Device = HOST
    ) -> None:
        self.layout, self.place = layout, place
        size, rows = layout.size, (layout.num_rows, layout.num_envs)
        flat = {
            name: torch.empty((size, *column.shape), dtype=column.dtype)
            for name, column in columns.items()
            if name != "frame"
        }
        self.by_index = {name: to_array(array) for name, array in flat.items()}
        frame = columns["frame"]
        frames = place.empty((size + 1, *frame.shape), frame.dtype)
        frames[size] = 0
        self.frames = frames.flatten(1)  # [R * B + 1, pixels]
        flat["frame"] = frames[:size]
        self.arrays = {  # each [R, B, ...]
            name: array.view(*rows, *array.shape[1:]) for name, array in flat.items()
        }
        self._rows: dict[str, Any] = {
            name: to_array(array) if array.is_cpu else array for name, array in self.arrays.items()
        }

    def frames_of(self, slot: Slot, first: int = 0, last: int | None = None) -> Any:
        """Frames of a slot's rows as `write` takes them: those beside the ring's."""
        if self.place.is_host:
            return to_array(slot.host.frames[first:last])
        return slot.frames[first:last]

    def newest(self, rows: Array) -> State:
        """Frames and depths [B, ...] at a row [B] of every environment: after its last step."""
        names = ("frame", "depth")
        return {f"newest_{n}": self.arrays[n][self._places(n, rows)] for n in names}

    def set_newest(self, rows: Array, state: State) -> None:
        for name in ("frame", "depth"):
            array = self.arrays[name]
            array[self._places(name, rows)] = Device.of(array).upload(state[f"newest_{name}"])

    def _places(self, name: str, rows: Array) -> tuple[Tensor, Tensor]:
        """Index of a row of every environment, where the array is."""
        places = np.stack([rows % self.layout.num_rows, np.arange(self.layout.num_envs)])
        there = Device.of(self.arrays[name]).upload(places)
        return there[0], there[1]

    def write(self, first: int, envs: slice, values: Mapping[str, Any]) -> None:
        """Copies rows `first`, `first + 1`, ... of some environments, each array [rows, b, ...].

        By NumPy, on the calling thread: torch would wake its other threads for a few frames.
        """
        for name, source in values.items():
            array = self._rows[name]
            for rows, part in self._spans(first, len(source)):
                array[rows, envs] = source[part]

    def read(self, first: int, last: int, envs: slice, name: str) -> Tensor:
        """Rows first <= i < last of one array; a view where they do not cross the ring's end."""
        parts = [self.arrays[name][rows, envs] for rows, _ in self._spans(first, last - first)]
        return parts[0] if len(parts) == 1 else torch.cat(parts)

    def _spans(self, first: int, num: int) -> Iterator[tuple[slice, slice]]:
        """(rows of the ring, rows of the source), cut where the ring begins again."""
        done = 0
        while done < num:
            start = (first + done) % self.layout.num_rows
            length = min(num - done, self.layout.num_rows - start)
            yield slice(start, start + length), slice(done, done + length)
            done += length


def observations(ring: Ring, starts: SparseFrames, spaces: Spaces, row: int, envs: slice) -> Tensor:
    """Observations [b, S, *frame] before the step of a row; `starts` fill young stacks."""
    frames = ring.read(row - spaces.stack + 1, row + 1, envs, "frame")
    depth = ring.read(row, row + 1, envs, "depth")[0]
    numbers = np.arange(envs.start, envs.stop)
    return build(frames, depth, Padding(spaces.stack_padding, starts, row, numbers))


class FramePool:
    """Frames that belong to a row and have no index in the ring; found by the index of the row.

    Two pools stand beside a ring: true last observations of truncated steps, because the ring holds
    the first frame of the next episode there, and the frames that fill the stack of a new episode.
    Both are rare. Entries whose rows have left the ring go when they are more than half.
    """

    def __init__(self, layout: RingLayout, like: SparseFrames) -> None:
        self._layout, self.kept = layout, like.emptied()
        self._first_row = np.zeros(layout.num_envs, np.int64)

    def at(self, indices: Array) -> Tensor:
        """Frames [N, ...] of the rows at these indices."""
        keys = self._layout.index(to_array(self.kept.steps), to_array(self.kept.envs))
        return self.kept.frames[torch.from_numpy(newest(keys, indices))]

    def release(self, first_row: Array) -> None:
        """Entries before the first row [B] of their environment are not needed any more."""
        self._first_row = first_row
        if self.kept.count and 2 * np.count_nonzero(living := self._living()) < self.kept.count:
            self.kept = self.kept.chosen(torch.from_numpy(living))

    def _living(self) -> Array:
        """Which entries are still needed, [count] bool."""
        living: Array = to_array(self.kept.steps) >= self._first_row[to_array(self.kept.envs)]
        return living

    def state(self) -> State:
        """What is needed, by row and environment: the same whenever it was staged."""
        order = np.lexsort((to_array(self.kept.envs), to_array(self.kept.steps)))
        return self.kept.chosen(torch.from_numpy(order[self._living()[order]])).state()


class SlotWriter:
    """One sampler's slot, and its way into the rows of some environments.

    Views are made once: with one environment and four steps, making them anew would cost more than
    copying the frames.
    """

    def __init__(self, slot: Slot, envs: slice, ring: Ring) -> None:
        self.slot, self.envs, self._ring = slot, envs, ring
        self.agent_steps = 0
        """Global count after the last slot that was written."""
        self.rows_since_cut = slot.stack
        self.restored_rows = 0
        self.staged = {"final": slot.host.finals.emptied(), "start": slot.starts.emptied()}
        """Frames for the pools, until the next commit."""
        host = slot.host
        self._terminated, self._truncated = to_array(host.terminated), to_array(host.truncated)
        self._life_lost, self._depth = to_array(host.life_lost), to_array(slot.depth)
        self.end = np.zeros(self._terminated.shape, np.uint8)
        """How each step of the last slot ended, [T, b]."""
        self._values = {
            "frame": ring.frames_of(slot, slot.stack - 1),  # one row more than steps
            "depth": self._depth,  # likewise
            "action": to_array(host.actions),
            "reward": to_array(host.reward),
            "end": self.end,
            "version": np.broadcast_to(to_array(slot.version)[:, None], self.end.shape),
        }

    def write(self, first_row: int, columns: Mapping[str, Tensor]) -> None:
        """Copies the slot as it now stands, with columns that were computed from it."""
        self._check(columns)
        history = self.slot.stack - 1
        if first_row == history:
            self._write_history(history)
        terminal = self._terminated
        if self.slot.life_loss_ends_return:
            terminal = terminal | self._life_lost
        np.multiply(self._truncated, TRUNCATED, out=self.end, casting="unsafe")
        self.end[terminal] = TERMINAL
        carried = {f"carried/{name}": each[:-1] for name, each in self.slot.carried.items()}
        given = {**self.slot.columns, **columns, **carried}
        own = {name: download(column) for name, column in given.items()}
        own["depth"] = self._depth_since_cut()
        self._ring.write(first_row, self.envs, {**self._values, **own})
        self._stage(first_row, is_continued=first_row > history and self.rows_since_cut > 0)
        self.rows_since_cut += self.slot.num_steps
        self.agent_steps = self.slot.agent_steps_after

    def _check(self, columns: Mapping[str, Tensor]) -> None:
        unknown = sorted(columns.keys() - self.slot.columns.keys())
        if unknown:
            raise ValueError(
                f"Columns {unknown} were put, but the replay was made without them; name them in "
                "the algorithm's columns()."
            )

    def _write_history(self, num_rows: int) -> None:
        """Frames before the very first step: games may have been played before they are stored."""
        ring = self._ring
        ring.write(0, self.envs, {"frame": ring.frames_of(self.slot, 0, num_rows)})
        for name in ring.arrays.keys() - {"frame"}:
            ring.arrays[name][:num_rows, self.envs] = 0

    def _depth_since_cut(self) -> Array:
        """Depths [T + 1, b]; right after a cut the ring has no frames from before it."""
        if self.rows_since_cut >= self.slot.stack:
            return self._depth
        most = self.rows_since_cut + 1 + np.arange(len(self._depth))
        limited: Array = np.minimum(self._depth, most[:, None]).astype(np.uint8)
        return limited

    def _stage(self, first_row: int, is_continued: bool) -> None:
        """Keeps frames for the pools; those at steps <= 0 came with the slot before, if any."""
        finals, starts = self.slot.host.finals, self.slot.starts
        if finals.count:
            is_needed = self.end[to_array(finals.steps), to_array(finals.envs)] == TRUNCATED
            finals = finals.chosen(torch.from_numpy(is_needed))
        if starts.count and is_continued:
            starts = starts.chosen(starts.steps > 0)
        self.staged["final"].extend(finals, first_row, self.envs.start)
        self.staged["start"].extend(starts, first_row, self.envs.start)


@dataclass(frozen=True)
class RingLimits:
    """What bounds the rows of one environment."""

    history: int
    """Rows before the first step, for the older frames of its stack: S - 1."""
    stored: int
    """Steps that are kept."""
    staged: int
    """Steps that may be written between two commits; 0 where every put commits."""
    n_step: int
    """Newest steps minus one that cannot be drawn yet: their n-step future is not there."""
    burn_in: int = 0
    """Oldest steps that cannot be drawn any more: they go before those that are."""

    @property
    def num_rows(self) -> int:
        """Rows of the ring: the steps, the frames before the oldest, the frame after the newest,
        and what may be written while the others are being read."""
        return self.history + self.stored + 1 + self.staged


class WriteCursors:
    """How far every environment has been written, committed and completed: each [B] int64."""

    _SAVED = ("written", "committed", "completed", "opened")

    def __init__(self, num_envs: int, limits: RingLimits) -> None:
        self._limits = limits
        self.written = np.full(num_envs, limits.history, np.int64)
        self.committed = self.written.copy()
        self.completed = self.written.copy()
        """Where the last finished episode ended."""
        self.opened = self.written.copy()
        """What was written at the last commit: draws do not see what came since."""

    @property
    def num_committed(self) -> int:
        """Agent steps committed since the beginning, over all environments."""
        return int((self.committed - self._limits.history).sum())

    def room(self, env: int) -> int:
        """Steps that a staged environment may still write before the next commit."""
        return self._limits.staged - int(self.written[env] - self.opened[env])

    def advance(self, envs: slice, ended: Array) -> None:
        """Counts T written steps of some environments; `ended` [T, b] is not 0 where one ended."""
        num_steps, first = len(ended), self.written[envs]
        if ended.any():
            after_last = num_steps - np.argmax(ended[::-1] != 0, axis=0)  # up to and with it
            has_one = ended.any(axis=0)
            self.completed[envs] = np.where(has_one, first + after_last, self.completed[envs])
        self.written[envs] = first + num_steps

    def commit(self, flush: Flush) -> None:
        """Makes steps visible: all, or those of finished episodes.

        An episode that fills half the ring is committed unfinished: it would push out everything
        that can be drawn.
        """
        upto = self.written
        if flush == "completed":
            too_long = self.written - self.completed > self._limits.stored // 2
            upto = np.where(too_long, self.written, self.completed)
        np.maximum(self.committed, upto, out=self.committed)
        np.copyto(self.opened, self.written)

    def drawable(self) -> RingRange:
        """Rows that may be drawn: kept, committed, and with n steps after them."""
        history, n_step = self._limits.history, self._limits.n_step
        first = np.maximum(self.opened - self._limits.stored, history) + self._limits.burn_in
        last = self.committed - (n_step - 1)
        return RingRange(first, np.maximum(first, last))

    def state(self) -> State:
        return {name: getattr(self, name).copy() for name in self._SAVED}

    def load(self, state: State) -> None:
        for name in self._SAVED:
            getattr(self, name)[:] = np.asarray(state[name])
