"""Who steps the blocks of the `gymnasium` engine: this process, or worker processes.

Takes an order for a group and says which groups are done; results are in the shared arrays.
Knows nothing of protocols, stacks or what the arrays mean.

Every worker serves a part of every group, so that a group's step uses all workers, and groups
smaller than the number of workers go round: group 1 begins where group 0 left off.
"""

from __future__ import annotations

import pickle
import time
import traceback
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from ..processes import Fields, ParentLink, SharedArrays, WorkerLost, start_workers
from .block import Arrays, Block, BlockSettings
from .interface import EngineError

STEP, RESET, SNAPSHOT, RESTORE, READY = range(5)
_KINDS = 8
"""An order is `group * _KINDS + kind`."""

Parts = Sequence[Sequence[int]]
"""Rows that a worker serves, per group."""


class Workforce(Protocol):
    """What the engine asks of it; one order per group may be under way."""

    arrays: Arrays

    def order(self, group: int, kind: int) -> None: ...

    def done(self, timeout_seconds: float) -> list[int]:
        """Groups that finished since the last call; waits for the first up to the timeout."""

    def snapshot(self, timeout_seconds: float) -> dict[int, bytes]: ...

    def restore(self, snapshots: Mapping[int, bytes], timeout_seconds: float) -> None: ...

    def close(self, grace_seconds: float) -> None: ...


def parts(num_groups: int, group_size: int, num_workers: int) -> list[Parts]:
    """Rows per worker and group: contiguous, as even as can be, going round."""
    served: list[list[list[int]]] = [[[] for _ in range(num_groups)] for _ in range(num_workers)]
    place = 0
    for group in range(num_groups):
        rows = np.arange(group * group_size, (group + 1) * group_size)
        for part in np.array_split(rows, min(num_workers, group_size)):
            served[place % num_workers][group] = part.tolist()
            place += 1
    return list(served)


class InProcess:
    """All environments here, stepped when their group is waited for: for debugging and tests."""

    def __init__(self, settings: BlockSettings, layout: Fields, group_size: int) -> None:
        self.arrays: Arrays = {
            name: np.zeros(shape, dtype) for name, (shape, dtype) in layout.items()
        }
        self._group_size = group_size
        self._orders: deque[tuple[int, int]] = deque()  # filled by any thread
        self._block = self._guarded(Block, settings, self.arrays)

    def order(self, group: int, kind: int) -> None:
        self._orders.append((group, kind))

    def done(self, timeout_seconds: float) -> list[int]:
        finished = []
        while self._orders:
            group, kind = self._orders.popleft()
            rows = range(group * self._group_size, (group + 1) * self._group_size)
            self._guarded(self._block.step if kind == STEP else self._block.reset, rows)
            finished.append(group)
        return finished

    def snapshot(self, timeout_seconds: float) -> dict[int, bytes]:
        found: dict[int, bytes] = self._guarded(self._block.snapshot)
        return found

    def restore(self, snapshots: Mapping[int, bytes], timeout_seconds: float) -> None:
        self._guarded(self._block.restore, snapshots)

    def close(self, grace_seconds: float) -> None:
        self._block.close()

    def _guarded(self, function: Callable[..., Any], *args: Any) -> Any:
        try:
            return function(*args)
        except Exception as error:
            raise EngineError(f"An environment failed:\n{traceback.format_exc()}") from error


class Workers:
    """Worker processes with a block each; arrays in shared memory, orders through pipes."""

    def __init__(self, settings: BlockSettings, layout: Fields, served: list[Parts]) -> None:
        _refuse_unimportable(settings.games)
        shared = SharedArrays(layout)
        self.arrays: Arrays = shared.arrays
        self._served = served
        by_row = dict(zip(settings.rows, settings.games, strict=True))
        args = [(_own(settings, by_row, rows), rows, dict(layout), shared.fd) for rows in served]
        self._pool = start_workers(serve, args, fds=(shared.fd,))
        shared.close_fd()
        self._pending: dict[int, set[int]] = {}

    def ready(self, timeout_seconds: float) -> None:
        """Waits until every worker has built its environments."""
        self._call_all(READY, timeout_seconds)

    def order(self, group: int, kind: int) -> None:
        workers = [worker for worker, rows in enumerate(self._served) if rows[group]]
        self._pending[group] = set(workers)  # which shrinks as answers come, in another thread
        for worker in workers:
            self._guarded(self._pool.workers[worker].order, group * _KINDS + kind)

    def done(self, timeout_seconds: float) -> list[int]:
        deadline, finished = time.monotonic() + timeout_seconds, list[int]()
        while not finished and self._pending:
            answers = self._guarded(self._pool.answers, max(0.0, deadline - time.monotonic()))
            for worker, group, _ in answers:
                self._pending[group].discard(worker)
                if not self._pending[group]:
                    del self._pending[group]
                    finished.append(group)
            if not answers and time.monotonic() >= deadline:
                break
        return finished

    def snapshot(self, timeout_seconds: float) -> dict[int, bytes]:
        blocks = self._call_all(SNAPSHOT, timeout_seconds)
        return {row: state for block in blocks for row, state in block.items()}

    def restore(self, snapshots: Mapping[int, bytes], timeout_seconds: float) -> None:
        self._call_all(RESTORE, timeout_seconds, snapshots)

    def close(self, grace_seconds: float) -> None:
        self._pool.close(grace_seconds)
        self.arrays = {}  # with the last view the memory goes

    def _call_all(self, kind: int, timeout_seconds: float, item: object = None) -> list[Any]:
        for worker in self._pool.workers:
            self._guarded(worker.order, kind, item)
        deadline, found = time.monotonic() + timeout_seconds, list[Any]()
        while len(found) < len(self._pool.workers):
            left = deadline - time.monotonic()
            if left <= 0:
                raise EngineError(f"Workers did not answer within {timeout_seconds:g} seconds.")
            found += [reply for _, _, reply in self._guarded(self._pool.answers, left)]
        return found

    def _guarded(self, function: Callable[..., Any], *args: Any) -> Any:
        try:
            return function(*args)
        except WorkerLost as error:
            raise EngineError(str(error)) from error


def serve(
    link: ParentLink, settings: BlockSettings, rows: Parts, layout: Fields, shared_fd: int
) -> None:
    """What a worker process does until its parent closes the pipe."""
    block = Block(settings, SharedArrays(layout, shared_fd).arrays)
    for order, item in link.orders():
        group, kind = divmod(order, _KINDS)
        if kind == STEP:
            block.step(rows[group])
            link.answer(group)
        elif kind == RESET:
            block.reset(rows[group])
            link.answer(group)
        else:
            link.answer(0, _called(block, kind, item))
    block.close()


def _called(block: Block, kind: int, item: Any) -> Any:
    if kind == RESTORE:
        block.restore(item)
    return block.snapshot() if kind == SNAPSHOT else None


def _own(settings: BlockSettings, by_row: Mapping[int, Any], served: Parts) -> BlockSettings:
    rows = [row for part in served for row in part]
    return replace(settings, rows=rows, games=[by_row[row] for row in rows])


def _refuse_unimportable(makers: Sequence[Any]) -> None:
    for maker in makers:
        try:
            importable = b"__main__" not in pickle.dumps(maker)
        except Exception:
            importable = False
        if not importable:
            raise ValueError(
                f"Worker processes cannot import {maker!r}: put the callable into a module, as a "
                "function of its own, or use num_workers=0 to stay in this process."
            )
