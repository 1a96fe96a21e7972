"""Worker processes: started, watched and ended in one place; shared memory, locks and cores.

Takes an importable entry function and its arguments; gives a `WorkerPool` that sends orders, waits
for answers with a time limit and ends every worker. `SharedArrays` is memory that parent and
workers see, `SharedLocks` are locks on parts of it.
Knows nothing of what the workers do.

A worker is a fresh interpreter, never a fork of one that holds torch's threads, and it does not
run the user's main script again. Two pipes join it to its parent. The system closes the pipe of a
process that dies: a lost worker is noticed at once, and a worker whose parent was killed ends by
itself. Shared memory has no name, so nothing can be left behind.
"""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import mmap
import os
import pickle
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .errors import UserError

Fields = Mapping[str, tuple[tuple[int, ...], str]]
"""Name to (shape, dtype) of the arrays in one block."""

Message = tuple[int, Any]
"""A code, with an object or None. Codes of 0 or more are free for the user of a pool."""
FAILURE = -1
"""Code of a worker's last answer: its traceback, or a `UserError`."""

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
    """Numbered locks among processes; pass `fd` to a worker. The system frees those of dead ones.

    They are record locks on a nameless file, one byte each: threads of one process do not exclude
    each other, and a process must keep the file open as long as it uses the locks.
    """

    def __init__(self, fd: int | None = None) -> None:
        self.fd = _nameless_file(1) if fd is None else fd

    def try_acquire(self, number: int) -> bool:
        """Takes the lock if it is free."""
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


def _send(pipe: Connection, code: int, item: object) -> None:
    """By plain pickle: a connection's own one would send tensors through shared memory."""
    pipe.send_bytes(pickle.dumps((code, item)))


def _received(pipe: Connection) -> Message:
    message: Message = pickle.loads(pipe.recv_bytes())
    return message


class ParentLink:
    """A worker's connection to its parent: orders in, answers out."""

    def __init__(self, order_fd: int, answer_fd: int) -> None:
        self._orders = Connection(order_fd, writable=False)
        self._answers = Connection(answer_fd, readable=False)

    def orders(self) -> Iterator[Message]:
        """Until the parent closes the pipe or is gone."""
        with contextlib.suppress(EOFError):
            while True:
                yield _received(self._orders)

    def answer(self, code: int, item: object = None) -> None:
        _send(self._answers, code, item)


Entry = Callable[..., None]
"""Called in the worker as `entry(link, *args)`; found by its module path."""


class WorkerProcess:
    """The parent's side of one worker process."""

    def __init__(self, name: str, entry: Entry, args: Sequence[Any], fds: Sequence[int]) -> None:
        self.name = name
        order_fd, own_order_fd = os.pipe()
        own_answer_fd, answer_fd = os.pipe()
        self._orders = Connection(own_order_fd, readable=False)
        self.answers = Connection(own_answer_fd, writable=False)
        try:
            self.process = _start(order_fd, answer_fd, fds)
        finally:
            os.close(order_fd)
            os.close(answer_fd)
        self.order(0, (entry, tuple(args)))

    def order(self, code: int, item: object = None) -> None:
        try:
            _send(self._orders, code, item)
        except BrokenPipeError:
            self.answer()  # its traceback, if it left one
            raise self._death() from None

    def answer(self) -> Message:
        """The next answer; blocks until there is one."""
        try:
            code, item = _received(self.answers)
        except EOFError:
            raise self._death() from None
        if code == FAILURE and isinstance(item, UserError):
            raise item
        if code == FAILURE:
            raise WorkerLost(f"{self.name} failed:\n{item}")
        return code, item

    def release(self) -> None:
        """Lets the worker end: it sees its pipe close."""
        self._orders.close()

    def end(self, deadline: float) -> None:
        """Waits until the deadline, then kills; in both cases nothing is left."""
        try:
            self.process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.answers.close()

    def _death(self) -> WorkerLost:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(_GRACE_SECONDS)
        code = self.process.returncode
        how = f"by {signal.Signals(-code).name}" if code and code < 0 else f"with code {code}"
        return WorkerLost(f"{self.name} (process {self.process.pid}) ended {how} without a word.")


class WorkerPool:
    """Several workers that are waited for together and ended together."""

    def __init__(self, workers: Sequence[WorkerProcess]) -> None:
        self.workers = list(workers)
        self._by_fd = {worker.answers.fileno(): n for n, worker in enumerate(self.workers)}
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


def _end_all(workers: Sequence[WorkerProcess], grace_seconds: float) -> None:
    for worker in workers:
        worker.release()
    deadline = time.monotonic() + grace_seconds
    for worker in workers:
        worker.end(deadline)


def start_workers(
    entry: Entry, args: Sequence[Sequence[Any]], *, fds: Sequence[int] = ()
) -> WorkerPool:
    """One worker per row of arguments; `fds` stay open in all of them."""
    workers: list[WorkerProcess] = []
    try:
        for index, row in enumerate(args):
            workers.append(WorkerProcess(f"worker {index}", entry, row, fds))
    except BaseException:
        _end_all(workers, 0.0)
        raise
    return WorkerPool(workers)


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


@contextlib.contextmanager
def pinned(is_wanted: bool) -> Iterator[None]:
    """Binds every thread and child process that starts inside to a core of its own, in turn.

    They are found by their numbers, so what starts them need not know that they are pinned.
    """
    if not is_wanted:
        yield
        return
    cores = granted_core_ids()
    bind(0, cores)  # changes nothing, but is refused where cores cannot be chosen
    before = _tasks()
    yield
    for number, task in enumerate(sorted(_tasks() - before)):
        with contextlib.suppress(ProcessLookupError):  # it may have ended already
            bind(task, [cores[number % len(cores)]])


def _tasks() -> set[int]:
    """Threads of this process, and its child processes."""
    found = set()
    for thread in Path("/proc/self/task").iterdir():
        found.add(int(thread.name))
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
            found.update(map(int, (thread / "children").read_text().split()))
    return found


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
    link = ParentLink(order_fd, answer_fd)
    threading.Thread(target=_end_with_parent, args=(order_fd,), daemon=True).start()
    with contextlib.suppress(BrokenPipeError):  # the parent is gone
        try:
            for _, (entry, args) in itertools.islice(link.orders(), 1):
                entry(link, *args)
        except BrokenPipeError:
            raise
        except UserError as error:
            link.answer(FAILURE, UserError(str(error)))  # any kind of it: pickle needs the sentence
        except BaseException:
            link.answer(FAILURE, traceback.format_exc())


def _end_with_parent(order_fd: int) -> None:
    """Ends a worker that is too busy to see that its parent closed the pipe or died."""
    poller = select.poll()
    poller.register(order_fd, 0)  # hang-up is always reported
    poller.poll()
    time.sleep(_GRACE_SECONDS)
    os._exit(1)
