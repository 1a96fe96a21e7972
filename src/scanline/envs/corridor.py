"""Corridor: a toy game with one hidden reward, `scanline/Corridor-v0`.

Takes actions left, stay, right; gives a uint8 image of the place in a corridor, and +1 at its far
end. Knows only Gymnasium and NumPy.

A game is too short for a random walk to get there, so a learner without curiosity stays at 0.
"""

from __future__ import annotations

import json
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt

ID = "scanline/Corridor-v0"
Image = npt.NDArray[np.uint8]


class Corridor(gymnasium.Env[Image, np.int64]):
    """The environment behind `scanline/Corridor-v0`."""

    metadata = {"render_modes": []}  # noqa: RUF012 (Gymnasium's form)

    def __init__(
        self, render_mode: str | None = None, length: int = 30, game_agent_steps: int = 60
    ) -> None:
        """`length` in cells; a game is over after so many agent steps, or at the far end."""
        if not 2 <= length <= game_agent_steps:
            raise ValueError(
                f"length={length} must be at least 2 and at most game_agent_steps="
                f"{game_agent_steps}, so that the far end can be reached."
            )
        self.render_mode, self._length, self._limit = render_mode, length, game_agent_steps
        self.observation_space = gymnasium.spaces.Box(0, 255, (1, length), np.uint8)
        self.action_space = gymnasium.spaces.Discrete(3)
        self._place = self._time = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Image, dict[str, Any]]:
        super().reset(seed=seed)
        self._place = self._time = 0
        return self._image(), {}

    def step(self, action: np.int64 | int) -> tuple[Image, float, bool, bool, dict[str, Any]]:
        last = self._length - 1
        self._place = min(max(self._place + int(action) - 1, 0), last)
        self._time += 1
        found = self._place == last
        return self._image(), float(found), found or self._time == self._limit, False, {}

    def snapshot(self) -> bytes:
        """The whole state: games hold no chance."""
        return json.dumps([self._place, self._time]).encode()

    def restore(self, snapshot: bytes) -> None:
        try:
            place, time = json.loads(snapshot)
        except (TypeError, ValueError) as error:
            raise ValueError("This is no snapshot of Corridor.") from error
        if not (type(place) is type(time) is int and 0 <= place < self._length):
            raise ValueError(f"A corridor of {self._length} cells has no place {place!r}.")
        self._place, self._time = place, time

    def _image(self) -> Image:
        image = np.zeros((1, self._length), np.uint8)
        image[0, self._place] = 255
        return image
