"""The score of a run: the mean over the newest games, none of them favoured for being short.

Takes finished games with the number of games started before each; gives means and the best.
Knows nothing of engines, samplers or files.

Among games that run side by side the short ones finish first, so the mean of what has finished
leans towards them: at the start of a run, and whenever lengths change while learning. Here games
count in the order in which they started, and a finished game waits until every earlier one has
finished. Each game is then counted exactly once, at a moment that its own length does not choose.
The price is a delay of at most one game.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Iterable

from ..records import EpisodeEnd, State


class Scores:
    """Scores and lengths of the last games in the order of their start."""

    def __init__(self, window_episodes: int = 100) -> None:
        self._window: deque[tuple[float, int]] = deque(maxlen=window_episodes)
        self._waiting: list[tuple[int, float, int]] = []
        self.counted = 0
        """Games counted since the start of the run."""
        self.best: float | None = None
        """Highest mean of a full window."""

    def add(self, ends: Iterable[EpisodeEnd]) -> None:
        """Takes finished games in any order; their start numbers are 0, 1, 2, ..., each once."""
        for end in ends:
            assert end.started_at >= self.counted, f"game {end.started_at} was counted already"
            game = (end.started_at, float(end.score), end.length_agent_steps)
            heapq.heappush(self._waiting, game)
        while self._waiting and self._waiting[0][0] == self.counted:
            _, score, length = heapq.heappop(self._waiting)
            self.counted += 1
            if math.isnan(score):
                continue  # abandoned when a run was resumed without its environments
            self._window.append((score, length))
            mean = self.full_mean
            if mean is not None and (self.best is None or mean > self.best):
                self.best = mean

    @property
    def waiting(self) -> int:
        """Finished games that wait for an earlier one."""
        return len(self._waiting)

    @property
    def window(self) -> int:
        """Games in the mean now."""
        return len(self._window)

    @property
    def mean(self) -> float | None:
        """Mean score of the last games; None before the first."""
        return _mean([score for score, _ in self._window])

    @property
    def mean_length(self) -> float | None:
        """Mean length of the last games, agent steps."""
        return _mean([length for _, length in self._window])

    @property
    def full_mean(self) -> float | None:
        """The mean once the window is full: what a target score is compared with."""
        return self.mean if len(self._window) == self._window.maxlen else None

    def state(self) -> State:
        return {
            "window": [list(game) for game in self._window],
            "waiting": [list(game) for game in sorted(self._waiting)],
            "counted": self.counted,
            "best": self.best,
        }

    def load(self, state: State) -> None:
        self._window.clear()
        self._window.extend((score, length) for score, length in state["window"])
        self._waiting = [(start, score, length) for start, score, length in state["waiting"]]
        self.counted, self.best = state["counted"], state["best"]


def _mean(values: list[float] | list[int]) -> float | None:
    return math.fsum(values) / len(values) if values else None
