"""Episode totals: scores and lengths of whole games, counted where they happen.

Takes rewards and ends of every step; gives the totals of finished games, as arrays.
Knows no engine and no learner.

A lost life does not end a game, a clipped reward is no score. Games carry the number of games
started before them, so that statistics can count them in the order in which they began.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from ..records import Array, EpisodeEnd, State


class FinishedEpisodes(NamedTuple):
    """Finished games, in the order of their ends: the fields of `EpisodeEnd`, each [N]."""

    env: Array
    score: Array
    length_agent_steps: Array
    started_at: Array

    def records(self) -> list[EpisodeEnd]:
        columns = (column.tolist() for column in self)
        return [EpisodeEnd(*end) for end in zip(*columns, strict=True)]


class Episodes:
    """Running totals of `num_envs` environments."""

    def __init__(self, num_envs: int) -> None:
        self._score = np.zeros(num_envs, np.float64)
        self._length = np.zeros(num_envs, np.int64)
        self._started = np.arange(num_envs, dtype=np.int64)
        self._num_started = num_envs
        self._finished: list[FinishedEpisodes] = []

    def note(self, envs: slice, raw_reward: Array, ended: Array, playing: Array | int = 1) -> None:
        """One step of the environments `envs`, of those that are playing; arrays are [b]."""
        score, length = self._score[envs], self._length[envs]
        score += raw_reward
        length += playing
        if np.count_nonzero(ended):
            self._finish(np.flatnonzero(ended) + envs.start)

    def note_steps(self, raw_reward: Array, ended: Array, playing: Array | None = None) -> None:
        """Steps [T, B] of all environments, of those that are playing."""
        if playing is None and not np.count_nonzero(ended):
            self._score += np.add.reduce(raw_reward, axis=0, dtype=np.float64)
            self._length += len(ended)
            return
        all_envs = slice(0, len(self._score))
        for t in range(len(ended)):
            self.note(all_envs, raw_reward[t], ended[t], 1 if playing is None else playing[t])

    def _finish(self, envs: Array) -> None:
        totals = (self._score[envs], self._length[envs], self._started[envs])
        self._finished.append(FinishedEpisodes(envs, *totals))
        self.restart(envs)
        self._started[envs] = self._num_started + np.arange(len(envs))
        self._num_started += len(envs)

    def restart(self, envs: Array) -> None:
        """Forgets what these environments have played of their current games."""
        self._score[envs], self._length[envs] = 0.0, 0

    def number_anew(self) -> None:
        """Counts the games in play as the first ones, and forgets those that have finished."""
        self._started[:] = np.arange(len(self._started))
        self._num_started, self._finished = len(self._started), []

    def abandon(self) -> None:
        """The games in play will never end, and have no score; new ones are in their place."""
        self._score.fill(np.nan)
        self._length.fill(0)
        self._finish(np.arange(len(self._started)))

    def drain(self) -> FinishedEpisodes:
        """Games finished since the last call."""
        totals = self._totals()
        self._finished = []
        return totals

    def _totals(self) -> FinishedEpisodes:
        none = FinishedEpisodes(np.zeros(0, np.int64), np.zeros(0), *np.zeros((2, 0), np.int64))
        columns = zip(none, *self._finished, strict=True)
        return FinishedEpisodes(*(np.concatenate(column) for column in columns))

    def state(self) -> State:
        return {
            "score": self._score.copy(),
            "length": self._length.copy(),
            "started": self._started.copy(),
            "num_started": self._num_started,
            "finished": self._totals()._asdict(),
        }

    def load(self, state: State) -> None:
        self._score[:], self._length[:] = state["score"], state["length"]
        self._started[:], self._num_started = state["started"], state["num_started"]
        finished = state["finished"]
        self._finished = [
            FinishedEpisodes(*(np.asarray(finished[n]) for n in FinishedEpisodes._fields))
        ]


class GameNumbers:
    """Numbers of games over samplers or learners that count on their own.

    A game's number is how many games had started before it. Numbers are given at moments that the
    order of work fixes, environment by environment: they depend on no thread and no clock.
    """

    def __init__(self, num_envs: int) -> None:
        self._playing, self._next = list(range(num_envs)), num_envs

    def give(self, ends: Iterable[EpisodeEnd]) -> list[EpisodeEnd]:
        """The same ends with their numbers; `env` counts over all samplers and learners."""
        numbered = []
        for end in ends:
            numbered.append(end._replace(started_at=self._playing[end.env]))
            self._playing[end.env], self._next = self._next, self._next + 1
        return numbered

    def state(self) -> State:
        return {"playing": list(self._playing), "next": self._next}

    def load(self, state: State) -> None:
        self._playing, self._next = list(state["playing"]), state["next"]
