"""Uneven steps: an engine that holds back every step for a drawn time, as slow environments would.

Takes any engine; gives the same steps later: each environment takes `uneven_seconds` at least and
up to ten times as long, drawn by its number and its step. Knows nothing of what is stepped.

It stands for environments whose steps differ in length and that have machines of their own: a group
takes as long as its slowest member, waiting costs no core, and the data are those of the engine
inside. What was measured with it is simulated and must be labelled so.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from .. import random
from ..records import Array, StepArrays
from .interface import Engine
from .wrapped import WrappedEngine

RATIO = 10.0
"""Longest over shortest step; the logarithm of a step's time is uniform between them."""
_LOOK_SECONDS = 5e-4
"""Longest sleep while the engine inside may finish another group."""


class UnevenEngine(WrappedEngine):
    """An engine whose results are ready when a drawn time is over.

    Snapshots are the inner engine's: a resumed run draws other times, for the same data.
    """

    def __init__(
        self,
        inner: Engine,
        clock_seconds: Callable[[], float] = time.perf_counter,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        super().__init__(inner)
        self._clock_seconds, self._sleep = clock_seconds, sleep
        size, num = self.settings.group_size, self.settings.num_groups
        ids = self.settings.first_env_id + np.arange(size * num).reshape(num, size)
        seed = self.settings.seed
        self._draws = [random.EnvStream(seed, "uneven", own) for own in ids]
        self._steps = [0] * num
        self._due_seconds = [0.0] * num

    def step_seconds(self, group: int, step: int) -> float:
        """How long a step of a group takes: that of its slowest environment."""
        chance = float(self._draws[group].at(step)[:, 0].max())
        return float(self.settings.uneven_seconds * RATIO**chance)

    def send(self, group: int, actions: Array, out: StepArrays | None = None) -> None:
        seconds = self.step_seconds(group, self._steps[group])
        self._steps[group] += 1
        self._due_seconds[group] = self._clock_seconds() + seconds
        self._inner.send(group, actions, out)

    def recv(self, group: int, out: StepArrays) -> None:
        self._inner.recv(group, out)
        while (left := self._due_seconds[group] - self._clock_seconds()) > 0:
            self._sleep(left)

    def poll(self, timeout_seconds: float) -> list[int]:
        deadline = self._clock_seconds() + timeout_seconds
        finished = self._inner.poll(timeout_seconds)
        while True:
            now = self._clock_seconds()
            due = [group for group in finished if self._due_seconds[group] <= now]
            if due or now >= deadline:
                return due
            soonest = min((self._due_seconds[group] for group in finished), default=deadline)
            self._sleep(min(soonest, deadline, now + _LOOK_SECONDS) - now)
            finished = self._inner.poll(0.0)
