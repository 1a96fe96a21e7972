"""Pulse: whether the other learners, and their hosts, are still there.

Takes a store that all learners reach and the longest silence in seconds; gives sentences that name
the learners that are gone. Knows neither what learners exchange nor how they were started.

A thread of every learner sets a key again and again and reads those of the others. It needs no
progress of the learner: one that evaluates or saves for an hour is heard all the time. A process
that is stopped or dead, a host that vanished and a link that was cut are not. Time in which this
process itself was stopped hardly counts: it has heard nothing, but it has not listened either.
"""

from __future__ import annotations

import threading
import time

from torch._C._distributed_c10d import PrefixStore, Store

BEAT_SECONDS = 1.0
_MOST_SECONDS = 5.0
"""Most that may pass between two looks at the clock; more is a pause of this process."""
_LEFT = "left "


class AbsentLearnerError(RuntimeError):
    """A learner is gone; the sentence names it."""


class AwakeClock:
    """Seconds in which this process ran, as far as it looks often enough; for several threads."""

    def __init__(self) -> None:
        self._lock, self._seconds, self._looked_at = threading.Lock(), 0.0, time.monotonic()

    def __call__(self) -> float:
        with self._lock:
            now = time.monotonic()
            self._seconds += min(now - self._looked_at, _MOST_SECONDS)
            self._looked_at = now
            return self._seconds


class Pulse:
    """The pulse of one learner, and what it hears of the others; begins at once."""

    def __init__(self, store: Store, rank: int, count: int, silent_seconds: float) -> None:
        self._store = PrefixStore("pulse", store)
        self._rank, self._silent_seconds = rank, silent_seconds
        self._clock = AwakeClock()
        now = self._clock()
        self._words = dict.fromkeys((n for n in range(count) if n != rank), "")
        self._heard_at = dict.fromkeys(self._words, now)
        """When each of the others was last heard."""
        self._read_at, self._is_broken = now, False
        self._last_word: str | None = None
        self._store.set(str(rank), "0")
        self._awake, self._over, self._said = (threading.Event() for _ in range(3))
        self._thread = threading.Thread(target=self._beat, name="pulse", daemon=True)
        self._thread.start()

    def begin(self) -> None:
        """Silence counts from now on: all learners have joined."""
        self._read_at = self._clock()
        self._heard_at = dict.fromkeys(self._words, self._read_at)

    def check(self) -> None:
        """Refuses to wait longer for learners that have been silent for too long."""
        now, limit = self._clock(), self._silent_seconds
        if now - self._read_at > limit:
            raise AbsentLearnerError(
                f"the host of learner 0 has not answered for {limit:g} seconds."
            )
        if silent := [rank for rank, at in self._heard_at.items() if now - at > limit]:
            raise AbsentLearnerError(f"{_named(silent)} not been heard for {limit:g} seconds.")

    def missing(self) -> str:
        """After a connection broke: the learners that are gone, by a few beats; "" if unclear."""
        since = self._clock()
        self._over.wait(3 * BEAT_SECONDS)
        left = {rank: word for rank, word in self._words.items() if word.startswith(_LEFT)}
        for rank, word in left.items():
            if reason := word.removeprefix(_LEFT):
                return f"learner {rank} failed: {reason}"
        if self._is_broken:  # the store went with the process that has it
            return "learner 0 has ended."
        gone = [rank for rank, at in self._heard_at.items() if at <= since and rank not in left]
        return f"{_named(gone)} ended." if gone else ""

    def leave(self, reason: str = "") -> None:
        """The last word of this learner: why it failed, or nothing if another one did."""
        self._last_word = self._last_word or f"{_LEFT}{reason}"
        self._awake.set()
        self._said.wait(BEAT_SECONDS)

    def close(self) -> None:
        """Ends the thread, unless it waits for a store that does not answer."""
        self._over.set()
        self._awake.set()
        self._thread.join(BEAT_SECONDS)

    def _beat(self) -> None:
        beat, keys = 0, [str(rank) for rank in self._words]
        try:
            while not self._over.is_set():
                word = self._last_word
                self._store.set(str(self._rank), str(beat) if word is None else word)
                if word is not None:
                    self._said.set()
                self._hear([each.decode() for each in self._store.multi_get(keys)])
                self._awake.wait(BEAT_SECONDS)
                self._awake.clear()
                beat += 1
        except RuntimeError:  # the store is gone: silence says so
            self._is_broken = True

    def _hear(self, words: list[str]) -> None:
        self._read_at = self._clock()
        for rank, word in zip(self._words, words, strict=True):
            if word != self._words[rank]:
                self._words[rank], self._heard_at[rank] = word, self._read_at


def _named(ranks: list[int]) -> str:
    if len(ranks) == 1:
        return f"learner {ranks[0]} has"
    return f"the learners {', '.join(map(str, ranks))} have"
