"""A crew's waits end: with the work, with its error, or with a word about who is stuck."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from scanline.runners import crew
from scanline.runners.crew import Crew, StuckError


@pytest.fixture
def pair() -> Iterator[Crew]:
    made = Crew(["first", "second"], silent_seconds=0.3)
    yield made
    made.close()


def test_all_jobs_are_done_after_the_wait(pair: Crew) -> None:
    done: list[str] = []
    for _ in range(3):
        pair.start("first", lambda: done.append("first"))
        pair.start("second", lambda: (time.sleep(0.01), done.append("second"))[1])
        pair.wait()
    assert sorted(done) == ["first"] * 3 + ["second"] * 3


def test_an_error_stops_the_others_and_is_raised_with_its_own_stack(pair: Crew) -> None:
    stopped = threading.Event()

    def broken() -> None:
        raise KeyError("lost")

    def patient() -> None:
        while not pair.is_stopping:
            time.sleep(0.005)
            pair.beat("second")
        stopped.set()

    pair.start("second", patient)
    pair.start("first", broken)
    with pytest.raises(KeyError, match="lost") as caught:
        pair.wait()
    assert stopped.is_set()
    assert "broken" in [entry.name for entry in caught.traceback]


def test_a_silent_thread_is_named_with_the_place_where_it_hangs(
    pair: Crew, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crew, "_GRACE_SECONDS", 0.1)
    release = threading.Event()

    def hanging() -> None:
        release.wait(30)

    pair.start("second", hanging)
    with pytest.raises(StuckError, match=r"(?s)second.*in hanging"):
        pair.wait()
    release.set()


def test_a_slow_thread_with_signs_of_life_is_waited_for(pair: Crew) -> None:
    def slow() -> None:
        for _ in range(12):
            time.sleep(0.08)
            pair.beat("first")

    pair.start("first", slow)
    pair.wait()
