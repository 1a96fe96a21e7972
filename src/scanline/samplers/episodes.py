"""Episode totals: scores and lengths of whole games, counted where they happen.

Takes rewards and ends of every step; gives an `EpisodeEnd` per finished game.
Knows no engine and no learner.

A lost life does not end a game, a clipped reward is no score. Games carry the number of games
started before them, so that statistics can count them in the order in which they began.
"""

from __future__ import annotations

import math

import numpy as np

from ..records import Array, EpisodeEnd, State


class Episodes:
    """Running totals of `num_envs` environments."""

    def __init__(self, num_envs: int) -> None:
        self._score = np.zeros(num_envs, np.float64)
        self._length = np.zeros(num_envs, np.int64)
        self._started = np.arange(num_envs, dtype=np.int64)
        self._num_started = num_envs
        self._finished: list[EpisodeEnd] = []

    def note(self, envs: slice, raw_reward: Array, ended: Array, playing: Array | int = 1) -> None:
        """One step of the environments `envs`, of those that are playing; arrays are [b]."""
        score, length = self._score[envs], self._length[envs]
        score += raw_reward
        length += playing
        if np.count_nonzero(ended):
            for env in np.flatnonzero(ended) + envs.start:
                self._finish(int(env))

    def note_steps(self, raw_reward: Array, ended: Array, playing: Array | None = None) -> None:
        """Steps [T, B] of all environments, of those that are playing."""
        everybody = slice(0, len(self._score))
        if playing is None and not np.count_nonzero(ended):
            self._score += np.add.reduce(raw_reward, axis=0, dtype=np.float64)
            self._length += len(ended)
            return
        for t in range(len(ended)):
            self.note(everybody, raw_reward[t], ended[t], 1 if playing is None else playing[t])

    def _finish(self, env: int) -> None:
        score, length = float(self._score[env]), int(self._length[env])
        self._finished.append(EpisodeEnd(env, score, length, int(self._started[env])))
        self._score[env], self._length[env] = 0.0, 0
        self._started[env] = self._num_started
        self._num_started += 1

    def restart(self, envs: Array) -> None:
        """Forgets what these environments have played of their current games."""
        self._score[envs], self._length[envs] = 0.0, 0

    def number_anew(self) -> None:
        """Counts the games in play as the first ones, and forgets those that have finished."""
        self._started[:] = np.arange(len(self._started))
        self._num_started, self._finished = len(self._started), []

    def abandon(self) -> None:
        """The games in play will never end; new ones have begun in their place."""
        for env in range(len(self._started)):
            self._finished.append(EpisodeEnd(env, math.nan, 0, int(self._started[env])))
            self._score[env], self._length[env] = 0.0, 0
            self._started[env] = self._num_started + env
        self._num_started += len(self._started)

    def drain(self) -> list[EpisodeEnd]:
        """Games finished since the last call."""
        finished, self._finished = self._finished, []
        return finished

    def state(self) -> State:
        return {
            "score": self._score.copy(),
            "length": self._length.copy(),
            "started": self._started.copy(),
            "num_started": self._num_started,
            "finished": [list(end) for end in self._finished],
        }

    def load(self, state: State) -> None:
        self._score[:], self._length[:] = state["score"], state["length"]
        self._started[:], self._num_started = state["started"], state["num_started"]
        self._finished = [EpisodeEnd(*end) for end in state.get("finished", [])]
