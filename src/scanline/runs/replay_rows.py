"""A replay in a checkpoint: its rows appended to segments, the rest as state.

Takes a replay and one stream of segments per writer; gives a part that a checkpoint holds.
Knows neither what a row means nor when a checkpoint is written.

A checkpoint writes only the rows since the last segment, because rows never change once they are
written; between checkpoints a segment is written whenever enough rows have come together, so that
no checkpoint has to write much. What the replay has forgotten is dropped from the list, and the
files with it at the next checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..records import State
from ..stores import Replay
from .segments import Segments

MOST_BYTES_PER_SEGMENT = 256 * 2**20


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
            new = self._replay.next_row(writer) - max(
                stream.next_row, self._replay.first_row(writer)
            )
            if 0 < self._segment_rows <= new:
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
