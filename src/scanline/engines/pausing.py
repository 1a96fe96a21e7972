"""Paused environments: an engine whose steps can be made to cost nothing, for measurements.

Takes any engine and a question whether it is paused; gives the engine's own steps, or, while it is
paused, steps that are finished at once: nothing is emulated, gained or ended, and frames stay what
they are in the caller's arrays, which are those of earlier play. Knows nothing of what is stepped.

A run on it acts and learns as before, with the same arrays, batches, threads and processes; what is
left out is the environments' part. Afterwards the environments go on from where they were. Stacks
count as full from a paused step until the next start of a game: the frames before are not its own.
"""

from __future__ import annotations

import numpy as np

from ..records import Array, StepArrays
from .interface import Engine
from .wrapped import WrappedEngine


class PausableEngine(WrappedEngine):
    """Any number of threads may send; those that send and receive a group agree on its order."""

    def __init__(self, inner: Engine) -> None:
        super().__init__(inner)
        assert inner.settings.is_paused is not None
        self._is_paused = inner.settings.is_paused
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
