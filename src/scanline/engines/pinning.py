"""Pinning: threads and worker processes bound to one core each, out of those the system grants.

Takes a block of code that starts threads or processes; binds what it has started, core after core.
Knows nothing of what they do. Linux only: elsewhere it is refused.

A scheduler moves busy threads about, and each move costs a cache. Who starts them does not matter
here: new ones are found by their numbers, so engines need not know that they are pinned.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..processes import bind, granted_core_ids


@contextmanager
def pinned(is_wanted: bool) -> Iterator[None]:
    """Binds every thread and child process that starts inside to a core of its own, in turn."""
    if not is_wanted:
        yield
        return
    cores = granted_core_ids()
    bind(0, cores)  # changes nothing, but is refused where cores cannot be chosen
    before = _tasks()
    yield
    for number, task in enumerate(sorted(_tasks() - before)):
        with suppress(ProcessLookupError):  # it may have ended already
            bind(task, [cores[number % len(cores)]])


def _tasks() -> set[int]:
    """Threads of this process, and its child processes."""
    threads = list(Path("/proc/self/task").iterdir())
    children = [child for thread in threads for child in _children(thread)]
    return {int(thread.name) for thread in threads} | set(children)


def _children(thread: Path) -> list[int]:
    try:
        return [int(word) for word in (thread / "children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):  # a thread that has just ended
        return []
