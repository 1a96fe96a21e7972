"""Signals in real processes: a word at once, the end when it is safe, and by force if need be."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from queue import SimpleQueue

import pytest

from scanline.runs.signals import Interrupted, Signals

LOOP = """
    import sys, time
    from scanline.runs.signals import Signals

    class HandMade(Exception):
        pass

    with Signals() as signals, signals.deferred():
        print("ready", flush=True)
        step = 0
        try:
            while not signals.stop or "deaf" in sys.argv:
                step += 1
                time.sleep(0.01)
                if signals.stop and step:
                    print("asked", flush=True)
        finally:
            print("cleared up", flush=True)
            if "hangs" in sys.argv:
                time.sleep(60)
        print("saved:", signals.stop.sentence, flush=True)
"""


def start(*options: str, program: str = LOOP) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", textwrap.dedent(program), *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


@pytest.mark.parametrize(
    ("number", "name"), [(signal.SIGTERM, "SIGTERM"), (signal.SIGINT, "Ctrl-C")]
)
def test_the_first_signal_lets_the_step_finish_and_save(number: int, name: str) -> None:
    process = start()
    process.send_signal(number)
    out, _ = process.communicate(timeout=20)
    assert process.returncode == 0
    assert f"saved: Stopped by {name}." in out


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_second_signal_stops_at_once_and_clears_up(number: int) -> None:
    process = start("deaf")
    process.send_signal(signal.SIGTERM)
    assert process.stdout is not None
    assert process.stdout.readline() == "asked\n"
    process.send_signal(number)
    out, _ = process.communicate(timeout=20)
    assert process.returncode != 0
    assert "cleared up" in out
    assert "saved" not in out


def test_the_third_signal_ends_even_a_clearing_up_that_hangs() -> None:
    process = start("deaf", "hangs")
    process.send_signal(signal.SIGTERM)
    assert process.stdout is not None
    assert process.stdout.readline() == "asked\n"
    process.send_signal(signal.SIGTERM)
    while process.stdout.readline() != "cleared up\n":
        pass
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=20)
    assert process.returncode == -signal.SIGTERM


BUSY = """
    import hashlib, sys
    from scanline.runs.signals import Signals

    with Signals(ends_process=True) as signals, signals.deferred():
        print("ready", flush=True)
        hashlib.pbkdf2_hmac("sha256", b"", b"", 500_000_000)  # minutes of native code
"""


@pytest.mark.parametrize(
    ("number", "word"), [(signal.SIGINT, "Ctrl-C: finishing"), (signal.SIGTERM, "SIGTERM: finish")]
)
def test_a_signal_is_answered_and_a_second_one_obeyed_while_native_code_runs(
    number: int, word: str
) -> None:
    process = start(program=BUSY)
    assert process.stderr is not None
    begun = time.monotonic()
    process.send_signal(number)
    assert process.stderr.readline().startswith(word)
    assert time.monotonic() - begun < 2.0
    process.send_signal(number)
    assert "stopping at once" in process.stderr.readline()
    assert process.wait(20) == 128 + number
    process.communicate()


def test_work_that_may_be_thrown_away_ends_at_the_first_signal() -> None:
    words: SimpleQueue[str] = SimpleQueue()
    with Signals() as signals, signals.deferred():
        signals.say = words.put
        with pytest.raises(Interrupted, match="SIGTERM") as caught, signals.interruptible():
            signal.raise_signal(signal.SIGTERM)
        assert caught.value.exit_code == 143
        assert signals.stop is not None
        with pytest.raises(Interrupted), signals.interruptible():
            raise AssertionError("it has begun after a signal")
        assert "finishing the current step and saving" in words.get(timeout=20)


def test_before_a_loop_begins_a_signal_ends_everything(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(Interrupted), Signals():
        signal.raise_signal(signal.SIGINT)
    assert capsys.readouterr().err == "Ctrl-C: stopping.\n"


def test_a_run_that_does_not_lead_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with Signals(speaks=False) as signals, signals.deferred():
        signal.raise_signal(signal.SIGINT)
    assert capsys.readouterr().err == ""


def test_handlers_are_put_back() -> None:
    before = signal.getsignal(signal.SIGINT)
    with Signals() as signals:
        assert signal.getsignal(signal.SIGINT) != before
        assert signals.stop is None
    assert signal.getsignal(signal.SIGINT) is before


def test_an_event_loop_hears_of_signals_too() -> None:
    theirs, ear = socket.socketpair()
    with theirs, ear:
        theirs.setblocking(False)
        before = signal.set_wakeup_fd(theirs.fileno())
        try:
            with Signals(speaks=False) as signals, signals.deferred():
                signal.raise_signal(signal.SIGINT)
                assert ear.recv(1) == bytes([signal.SIGINT])
            assert signal.set_wakeup_fd(before) == theirs.fileno()
        finally:
            signal.set_wakeup_fd(before)


def test_another_thread_gets_no_handlers_and_no_error() -> None:
    seen = []

    def inside() -> None:
        with Signals() as signals:
            seen.append(signals.stop)

    thread = threading.Thread(target=inside)
    thread.start()
    thread.join()
    assert seen == [None]
