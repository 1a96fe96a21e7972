"""Numbers of games, over samplers or learners that count on their own.

Takes finished games with the global number of their environment; gives them the number of games
that had started before them. Knows no sampler and no learner.

Numbers are given at moments that the order of work fixes, environment by environment, so they
depend on no thread and no clock.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..records import EpisodeEnd, State


class GameNumbers:
    """Which game every environment plays now."""

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
