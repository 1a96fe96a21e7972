"""Limits, intervals and signals; the signals in real processes."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from queue import SimpleQueue
from typing import Any

import pytest

from scanline.runs.stopping import Interrupted, Limits, SaveSchedule, SaveSettings, Signals


def reached(limits: Limits, **values: Any) -> str | None:
    stop = limits.reached(**{"agent_steps": 0, "seconds": 0.0, "score": None, **values})
    return stop and stop.kind


@pytest.mark.parametrize(
    ("limit", "value", "kind"),
    [
        ({"agent_steps": 10}, {"agent_steps": 9}, None),
        ({"agent_steps": 10}, {"agent_steps": 10}, "agent_steps"),
        ({"seconds": 5.0}, {"seconds": 4.9}, None),
        ({"seconds": 5.0}, {"seconds": 5.1}, "seconds"),
        ({"target_score": 18.0}, {"score": 17.9}, None),
        ({"target_score": -18.0}, {"score": None}, None),
        ({"target_score": -18.0}, {"score": -18.0}, "target_score"),
        ({}, {"agent_steps": 10**12, "seconds": 1e9, "score": 1e9}, None),
    ],
)
def test_limits(limit: dict[str, Any], value: dict[str, Any], kind: str | None) -> None:
    assert reached(Limits(**limit), **value) == kind


@pytest.mark.parametrize(("name", "value"), [("agent_steps", 0), ("seconds", float("nan"))])
def test_impossible_limits_are_refused_by_name(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"{name}={value} must be positive"):
        Limits(**{name: value})  # type: ignore[arg-type]


def test_a_machine_that_is_too_slow_is_named_after_the_first_minute() -> None:
    limits = Limits(agent_steps=1_200_000, seconds=1_200.0, stop_if_too_slow=True)
    assert reached(limits, agent_steps=10, seconds=59.0) is None
    assert reached(limits, agent_steps=60_000, seconds=60.0) is None
    stop = limits.reached(agent_steps=30_000, seconds=60.0, score=None)
    assert stop is not None and stop.kind == "too_slow"
    assert "500 agent steps/s" in stop.sentence and "40 minutes" in stop.sentence
    patient = Limits(agent_steps=1_200_000, seconds=1_200.0)
    assert reached(patient, agent_steps=10, seconds=60.0) is None
    with pytest.raises(ValueError, match="needs agent_steps and seconds"):
        Limits(agent_steps=10, stop_if_too_slow=True)


def test_the_first_limit_to_come_gives_the_remaining_time() -> None:
    now = {"agent_steps": 600, "seconds": 10.0}
    assert Limits(agent_steps=1_000).remaining_seconds(**now, steps_per_second=100) == 4.0
    assert Limits(agent_steps=1_000, seconds=12).remaining_seconds(**now, steps_per_second=9) == 2.0
    assert Limits(agent_steps=1_000).remaining_seconds(**now, steps_per_second=0) is None
    assert Limits(agent_steps=500).remaining_seconds(**now, steps_per_second=1) == 0.0
    assert Limits(target_score=1).remaining_seconds(**now, steps_per_second=100) is None


def test_a_save_is_due_by_steps_and_by_minutes() -> None:
    now = [0.0]
    settings = SaveSettings(save_every_agent_steps=100, save_every_minutes=1)
    schedule = SaveSchedule(settings, agent_steps=150, clock_seconds=lambda: now[0])
    assert not schedule.due(199)
    assert schedule.due(210)
    schedule.saved(210)
    assert not schedule.due(299)
    now[0] = 60.0
    assert schedule.due(211)
    schedule.saved(211)
    assert not schedule.due(212)


def test_a_save_is_never_due_where_both_are_off() -> None:
    never = SaveSettings(save_every_agent_steps=0, save_every_minutes=0)
    schedule = SaveSchedule(never, clock_seconds=lambda: 1e9)
    assert not schedule.due(10**12)
    with pytest.raises(ValueError, match="save_every_minutes=-1"):
        SaveSettings(save_every_minutes=-1)


LOOP = """
    import sys, time
    from scanline.runs.stopping import Signals

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
    from scanline.runs.stopping import Signals

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
