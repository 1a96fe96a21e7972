"""SIGTERM and Ctrl-C as a wish to stop.

Takes signals of the process; gives a `Stop` that a loop asks for, or an error at once.
Knows nothing of loops, networks or files.

A signal must not tear a step apart: while a loop trains, the first one only asks, and the loop
finishes its step, saves and leaves. Where nothing would be lost (a warm start, evaluation games),
the first one ends the work at once. The second one always does.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from .limits import Stop


class Stopped(KeyboardInterrupt):
    """A signal has ended the work at once."""

    def __init__(self, number: int, sentence: str) -> None:
        super().__init__(sentence)
        self.number = number

    @property
    def exit_code(self) -> int:
        """What shells give a process that this signal has ended."""
        return 128 + self.number


class Interrupted(Stopped):
    """The first signal, in work that is simply done again after a resume."""


class Signals:
    """SIGTERM and Ctrl-C as a wish to stop, inside a `with` block of the main thread.

    The first one raises `Interrupted`; inside `deferred` it only sets `stop`, except in its parts
    that are `interruptible`. The second one raises `Stopped`, the third ends the process. Each is
    answered by a sentence at once, whatever the main thread is busy with.
    In another thread Python allows no handlers: signals then do what they did before.
    """

    NUMBERS = (signal.SIGINT, signal.SIGTERM)

    def __init__(self, *, speaks: bool = True, ends_process: bool = False) -> None:
        """`ends_process`: whether the process ends by force when it takes too long to after a
        second signal; for a program of its own, not for a library inside of one."""
        self.say: Callable[[str], None] = say_on_stderr
        self._speaks, self._ends_process = speaks, ends_process
        self._before: dict[int, Any] = {}
        self._received: int | None = None
        self._defers = self._saves = False
        self._watch: SignalWatch | None = None

    @property
    def stop(self) -> Stop | None:
        """The wish, once a signal has come."""
        if self._received is None:
            return None
        return Stop("signal", f"Stopped by {name_of(self._received)}.")

    def __enter__(self) -> Signals:
        if threading.current_thread() is threading.main_thread():
            self._watch = SignalWatch(self._answer)
            self._before = {n: signal.signal(n, self._receive) for n in self.NUMBERS}
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        self._before = {}
        if self._watch is not None:
            self._watch.close()

    @contextmanager
    def deferred(self) -> Iterator[None]:
        """The first signal waits until a loop asks for `stop`, and saves."""
        self._saves = True
        try:
            with self._deferring(True):
                yield
        finally:
            self._saves = False

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """The first signal raises `Interrupted`, also if it has come before."""
        with self._deferring(False):
            self._raise_if_received()
            yield
            self._raise_if_received()  # a destructor may have swallowed the error

    @contextmanager
    def _deferring(self, defers: bool) -> Iterator[None]:
        before, self._defers = self._defers, defers
        try:
            yield
        finally:
            self._defers = before

    def _raise_if_received(self) -> None:
        if self._received is not None:
            name = name_of(self._received)
            raise Interrupted(self._received, f"Stopped by {name}; nothing had to be saved.")

    def _receive(self, number: int, frame: FrameType | None) -> None:
        if self._received is None:
            self._received = number
            if not self._defers:
                self._raise_if_received()
            return
        # A third signal ends the process even if the clearing up hangs.
        for each in self.NUMBERS:
            signal.signal(each, signal.SIG_DFL)
        raise Stopped(number, f"Stopped at once by {name_of(number)}, a second signal.")

    def _answer(self, number: int, count: int) -> None:
        """Called by the watching thread for every signal, the first of which is number 1."""
        if count == 1 and self._speaks:
            self.say(first_word(number) if self._saves else f"{name_of(number)}: stopping.")
        elif count == 2 and self._speaks:
            self.say(f"{name_of(number)}: stopping at once.")
        if count > 1 and self._ends_process and self._watch is not None:
            self._watch.end_process(number)


def name_of(number: int) -> str:
    return "Ctrl-C" if number == signal.SIGINT else signal.Signals(number).name


def first_word(number: int) -> str:
    """What a run answers to the first signal while it trains."""
    again = "press again" if number == signal.SIGINT else "send it again"
    return f"{name_of(number)}: finishing the current step and saving; {again} to stop at once."


def say_on_stderr(sentence: str) -> None:
    with contextlib.suppress(OSError, ValueError):  # closed, or its reader is gone
        print(sentence, file=sys.stderr, flush=True)


class SignalWatch:
    """A thread that receives a signal at once.

    Python runs a handler between two instructions of the main thread, which may be in native code
    for seconds. The system's own handler writes the signal's number to a socket before that.
    """

    GRACE_SECONDS = 3.0
    """Longest time for clearing up after a second signal, in a process that it shall end."""

    def __init__(self, answer: Callable[[int, int], None]) -> None:
        self._answer, self._sockets = answer, socket.socketpair()
        self._sockets[1].setblocking(False)
        self._fd_before = signal.set_wakeup_fd(self._sockets[1].fileno(), warn_on_full_buffer=False)
        self._thread = threading.Thread(target=self._listen, name="signals", daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        count = 0
        with self._sockets[0] as receiver:
            while received := receiver.recv(64):
                if self._fd_before >= 0:  # another listener's, e.g. an event loop's
                    with contextlib.suppress(OSError):
                        os.write(self._fd_before, received)
                for number in received:
                    if number in Signals.NUMBERS:
                        count += 1
                        self._answer(number, count)

    def end_process(self, number: int) -> None:
        """Unless this watch is closed soon; called by its own thread."""
        self._sockets[0].settimeout(self.GRACE_SECONDS)
        with contextlib.suppress(TimeoutError):
            if not self._sockets[0].recv(64):
                return
        os._exit(128 + number)  # a further signal, or no end in sight

    def close(self) -> None:
        signal.set_wakeup_fd(self._fd_before)
        self._sockets[1].close()
        self._thread.join(self.GRACE_SECONDS)  # longer only if nothing takes its sentence
