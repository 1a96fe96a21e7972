"""Engines around an engine, for measurements: steps that take longer, steps that can be left out.

Each takes any engine and gives one with its name, settings and spaces; only the calls that it
changes are its own. Knows nothing of what is stepped.

`UnevenEngine` stands for environments whose steps differ in length and that have machines of their
own: a group takes as long as its slowest member, waiting costs no core, and the data are those of
the inner engine. What was measured with it is simulated and must be labelled so.
`PausableEngine` leaves out the environments' part of a run, which otherwise acts and learns as
before, with the same arrays, batches, threads and processes.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from .. import random
from ..records import Array, StepArrays
from .interface import Engine

RATIO = 10.0
"""Longest over shortest uneven step; the logarithm of a step's time is uniform between them."""
_POLL_SECONDS = 5e-4
"""Longest sleep while the inner engine may finish another group."""


class WrappedEngine:
    """All but `send`, `recv` and `poll`, which wrappers have, is the inner engine's."""

    def __init__(self, inner: Engine) -> None:
        self._inner = inner
        self.name, self.can_snapshot = inner.name, inner.can_snapshot
        self.memory = inner.memory
        self.settings, self.spaces = inner.settings, inner.spaces
        self.reset, self.counters, self.close = inner.reset, inner.counters, inner.close
        self.snapshot, self.restore = inner.snapshot, inner.restore


class UnevenEngine(WrappedEngine):
    """Results are ready when a drawn time is over, for each environment between `uneven_seconds`
    and ten times as many, drawn by its number and its step.

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
        settings = inner.settings
        groups = range(settings.num_groups)
        ids = [settings.env_ids(group) for group in groups]
        self._draws = [random.EnvStream(settings.seed, "uneven", own) for own in ids]
        self._steps = [0 for _ in groups]
        self._due_seconds = [0.0 for _ in groups]

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
            self._sleep(min(soonest, deadline, now + _POLL_SECONDS) - now)
            finished = self._inner.poll(0.0)


class PausableEngine(WrappedEngine):
    """While `is_paused` says so, steps are finished at once: nothing is emulated, gained or ended,
    and frames stay what they are in the caller's arrays. Then the environments go on.

    Stacks count as full from a paused step until the next start of a game: the frames before are
    not its own. Any number of threads may send; those of one group agree on its order.
    """

    def __init__(self, inner: Engine, is_paused: Callable[[], bool]) -> None:
        super().__init__(inner)
        self._is_paused = is_paused
        self._skipped: dict[int, None] = {}  # groups in flight whose step is none, in order
        groups = (inner.settings.num_groups, inner.settings.group_size)
        self._is_full = np.zeros(groups, np.bool_)  # stacks that hold frames of a pause

    def send(self, group: int, actions: Array, out: StepArrays | None = None) -> None:
        if self._is_paused():
            self._skipped[group] = None
        else:
            self._inner.send(group, actions, out)

    def recv(self, group: int, out: StepArrays) -> None:
        if group not in self._skipped:
            self._inner.recv(group, out)
            self._is_full[group] &= out.depth > 1
            out.depth[self._is_full[group]] = self.spaces.stack
            return
        del self._skipped[group]
        self._is_full[group] = True
        out.depth[...] = self.spaces.stack
        for each in (out.reward, out.raw_reward, out.terminated, out.truncated, out.life_lost):
            each[...] = 0

    def poll(self, timeout_seconds: float) -> list[int]:
        skipped = list(self._skipped)
        return skipped + self._inner.poll(0.0 if skipped else timeout_seconds)
