"""Silence: who has given no sign of life for too long.

Takes signs by whatever name; gives the names that are silent. Knows no thread and no process.

Whoever asks must ask often. If he was away himself, the whole process stood still for a while, and
nobody is blamed for that time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

Who = TypeVar("Who")


class Silence(Generic[Who]):
    """When each was last heard of; signs may come from any thread."""

    def __init__(
        self, patience_seconds: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.patience_seconds, self._clock = patience_seconds, clock
        self._heard: dict[Who, float] = {}
        self._asked_seconds = clock()

    def heard(self, *names: Who) -> None:
        """A sign of life of each."""
        now = self._clock()
        for name in names:
            self._heard[name] = now

    def silent(self, names: Iterable[Who]) -> list[Who]:
        """Those of the names that were heard of once, but not for too long."""
        now = self._clock()
        if now - self._asked_seconds > self.patience_seconds / 2:
            self.heard(*self._heard)
        self._asked_seconds = now
        return [name for name in names if now - self._heard[name] > self.patience_seconds]
