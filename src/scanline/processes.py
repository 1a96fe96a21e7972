"""Worker processes: started, watched and ended in one place.

Takes an importable entry function and its arguments; gives a `Crew` that hands out orders, waits
with a time limit and ends every worker. `SharedArrays` is memory that parent and workers see,
`SharedLocks` are locks on parts of it.
Knows nothing of what the workers do.

A worker is a fresh interpreter, never a fork of one that holds torch's threads, and it does not
run the user's main script again. Two pipes join it to its parent. An order or an answer is a
two-byte code, so a step moves no data, and the system closes the pipe of whoever dies: a lost
worker is noticed at once, and a worker whose parent was killed ends by itself.
Shared memory has no name, so nothing can be left behind.
"""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
import pickle
import select
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .errors import UserError

Fields = Mapping[str, tuple[tuple[int, ...], str]]
"""Name to (shape, dtype) of the arrays in one block."""

OBJECT = 0xFFFE
"""Answer that is followed by a pickled object. Codes below are free for the user of a crew."""
FAILURE = 0xFFFF
"""Answer that is followed by the text of a traceback or by a `UserError`; the worker's last."""

_CODE = struct.Struct("<H")
_LENGTH = struct.Struct("<Q")
_ALIGNMENT_BYTES = 64
_GRACE_SECONDS = 5.0
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class WorkerLost(RuntimeError):
    """A worker raised, died, or did not answer in time."""


class SharedArrays:
    """Named arrays in one nameless block; pass `fd` and the same fields to attach in a worker."""

    def __init__(self, fields: Fields, fd: int | None = None) -> None:
        offsets, num_bytes = _offsets(fields)
        self.fields = dict(fields)
        self.fd = _nameless_file(num_bytes) if fd is None else fd
        self._memory = mmap.mmap(self.fd, num_bytes)
        self.arrays: dict[str, npt.NDArray[Any]] = {
            name: np.ndarray(shape, dtype, buffer=self._memory, offset=offsets[name])
            for name, (shape, dtype) in fields.items()
        }

    def close_fd(self) -> None:
        """Once every worker has started: the mappings stay, the last one to go frees the memory."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


class SharedLocks:
    """Numbered locks among processes; pass `fd` to a worker. The system frees those of the dead.

    They are record locks on a nameless file, one byte each: threads of one process do not exclude
    each other, and a process must keep the file open as long as it uses the locks.
    """

    def __init__(self, fd: int | None = None) -> None:
        self.fd = _nameless_file(1) if fd is None else fd

    def try_acquire(self, number: int) -> bool:
        """Takes the lock if nobody has it."""
        try:
            fcntl.lockf(self.fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, number)
        except (BlockingIOError, PermissionError):
            return False
        return True

    def release(self, number: int) -> None:
        fcntl.lockf(self.fd, fcntl.LOCK_UN, 1, number)

    def close(self) -> None:
        """Gives back the file; may be called twice."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


def _offsets(fields: Fields) -> tuple[dict[str, int], int]:
    offsets, end = {}, 0
    for name, (shape, dtype) in fields.items():
        offsets[name] = end
        num_bytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
        end += -(-num_bytes // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES
    return offsets, max(end, _ALIGNMENT_BYTES)


def _nameless_file(num_bytes: int) -> int:
    if sys.platform == "linux":
        fd = os.memfd_create("scanline")
    else:
        with tempfile.TemporaryFile() as file:
            fd = os.dup(file.fileno())
    os.truncate(fd, num_bytes)
    return fd


@dataclass(frozen=True)
class Link:
    """A worker's end: orders in, answers out."""

    order_fd: int
    answer_fd: int

    def orders(self) -> Iterator[int]:
        """Codes until the parent closes the pipe or is gone."""
        while code := os.read(self.order_fd, _CODE.size):
            yield _CODE.unpack(code)[0]

    def received(self) -> Any:
        """The object that followed the last order."""
        return _read_object(self.order_fd)

    def answer(self, code: int) -> None:
        os.write(self.answer_fd, _CODE.pack(code))

    def answer_object(self, item: object) -> None:
        _write_all(self.answer_fd, _CODE.pack(OBJECT) + _framed(item))

    def answer_failure(self, failure: str | UserError) -> None:
        _write_all(self.answer_fd, _CODE.pack(FAILURE) + _framed(failure))


Entry = Callable[..., None]
"""Called in the worker as `entry(link, *args)`; found by its module path."""


class Worker:
    """The parent's end of one worker process."""

    def __init__(self, name: str, entry: Entry, args: Sequence[Any], fds: Sequence[int]) -> None:
        self.name = name
        order_fd, self._order_fd = os.pipe()
        self.answer_fd, answer_fd = os.pipe()
        try:
            self.process = _start(order_fd, answer_fd, fds)
        except BaseException:
            os.close(self._order_fd)
            os.close(self.answer_fd)
            raise
        finally:
            os.close(order_fd)
            os.close(answer_fd)
        self._write(_framed((entry, tuple(args))))

    def order(self, code: int) -> None:
        self._write(_CODE.pack(code))

    def order_object(self, code: int, item: object) -> None:
        self._write(_CODE.pack(code) + _framed(item))

    def answer(self) -> tuple[int, Any]:
        """The next code, with its object if it has one; blocks until there is one."""
        try:
            code = _CODE.unpack(_read_exactly(self.answer_fd, _CODE.size))[0]
            item = _read_object(self.answer_fd) if code in (OBJECT, FAILURE) else None
        except EOFError:
            raise self._death() from None
        if code == FAILURE and isinstance(item, UserError):
            raise item
        if code == FAILURE:
            raise WorkerLost(f"{self.name} failed:\n{item}")
        return code, item

    def release(self) -> None:
        """Tells the worker to end: it sees its pipe close."""
        if self._order_fd >= 0:
            os.close(self._order_fd)
            self._order_fd = -1

    def end(self, deadline: float) -> None:
        """Waits until the deadline, then kills; in both cases nothing is left."""
        try:
            self.process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        if self.answer_fd >= 0:
            os.close(self.answer_fd)
            self.answer_fd = -1

    def _write(self, data: bytes) -> None:
        try:
            _write_all(self._order_fd, data)
        except BrokenPipeError:
            self.answer()  # its traceback, if it left one
            raise self._death() from None

    def _death(self) -> WorkerLost:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(_GRACE_SECONDS)
        code = self.process.returncode
        how = f"by {signal.Signals(-code).name}" if code and code < 0 else f"with code {code}"
        return WorkerLost(f"{self.name} (process {self.process.pid}) ended {how} without a word.")


class Crew:
    """Several workers that are waited for together and ended together."""

    def __init__(self, workers: Sequence[Worker]) -> None:
        self.workers = list(workers)
        self._by_fd = {worker.answer_fd: index for index, worker in enumerate(self.workers)}
        self._poller = select.poll()
        for fd in self._by_fd:
            self._poller.register(fd, select.POLLIN)
        self._finalizer = weakref.finalize(self, _end_all, self.workers, _GRACE_SECONDS)

    def answers(self, timeout_seconds: float) -> list[tuple[int, int, Any]]:
        """(worker, code, object) of all answers that are there; waits for the first of them."""
        ready = self._poller.poll(timeout_seconds * 1000.0)
        return [(self._by_fd[fd], *self.workers[self._by_fd[fd]].answer()) for fd, _ in ready]

    def close(self, grace_seconds: float = _GRACE_SECONDS) -> None:
        """Ends every worker, by force after the grace; may be called twice."""
        if self._finalizer.detach():
            _end_all(self.workers, grace_seconds)


def _end_all(workers: Sequence[Worker], grace_seconds: float) -> None:
    for worker in workers:
        worker.release()
    deadline = time.monotonic() + grace_seconds
    for worker in workers:
        worker.end(deadline)


def hire(entry: Entry, args: Sequence[Sequence[Any]], *, fds: Sequence[int] = ()) -> Crew:
    """One worker per row of arguments; `fds` stay open in all of them."""
    workers: list[Worker] = []
    try:
        for index, row in enumerate(args):
            workers.append(Worker(f"worker {index}", entry, row, fds))
    except BaseException:
        _end_all(workers, 0.0)
        raise
    return Crew(workers)


def granted_cores() -> int:
    """Cores that the system lets this process use."""
    return len(granted_core_ids())


def granted_core_ids() -> list[int]:
    """Their numbers, in order."""
    linux = sys.platform == "linux"
    return sorted(os.sched_getaffinity(0)) if linux else list(range(os.cpu_count() or 1))


def bind(task: int, cores: Sequence[int]) -> None:
    """Keeps a thread or process, 0 for the calling thread, on these cores."""
    if sys.platform != "linux":
        raise ValueError("pin_cores binds threads to cores, which needs Linux; leave it out.")
    os.sched_setaffinity(task, cores)


def _start(order_fd: int, answer_fd: int, fds: Sequence[int]) -> subprocess.Popen[bytes]:
    program = (
        f"import sys; sys.path[:] = {sys.path!r}; "
        f"from scanline.processes import run_worker; run_worker({order_fd}, {answer_fd})"
    )
    return subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.DEVNULL,
        pass_fds=(order_fd, answer_fd, *fds),
        # Many workers with a thread pool each would fight for the cores.
        env={**dict.fromkeys(_THREADS, "1"), **os.environ},
        # Ctrl-C belongs to the parent, which saves first and then closes the pipes.
        start_new_session=True,
    )


def run_worker(order_fd: int, answer_fd: int) -> None:
    """The main function of a worker process."""
    link = Link(order_fd, answer_fd)
    threading.Thread(target=_end_with_parent, args=(order_fd,), daemon=True).start()
    try:
        entry, args = link.received()
        entry(link, *args)
    except (BrokenPipeError, EOFError):
        pass  # the parent is gone
    except UserError as error:
        with contextlib.suppress(BrokenPipeError):
            link.answer_failure(UserError(str(error)))  # any kind of it: pickle needs the sentence
    except BaseException:
        with contextlib.suppress(BrokenPipeError):
            link.answer_failure(traceback.format_exc())


def _end_with_parent(order_fd: int) -> None:
    """Ends a worker that is too busy to see that its parent closed the pipe or died."""
    poller = select.poll()
    poller.register(order_fd, 0)  # hang-up is always reported
    poller.poll()
    time.sleep(_GRACE_SECONDS)
    os._exit(1)


def _framed(item: object) -> bytes:
    data = pickle.dumps(item)
    return _LENGTH.pack(len(data)) + data


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _read_object(fd: int) -> Any:
    length = _LENGTH.unpack(_read_exactly(fd, _LENGTH.size))[0]
    return pickle.loads(_read_exactly(fd, length))


def _read_exactly(fd: int, num_bytes: int) -> bytes:
    parts, missing = [], num_bytes
    while missing:
        part = os.read(fd, min(missing, 1 << 20))
        if not part:
            raise EOFError
        parts.append(part)
        missing -= len(part)
    return b"".join(parts)
