"""Catch: a toy game on a small image, `scanline/Catch-v0`.

Takes actions left, stay, right; gives a uint8 image of a falling ball and a paddle, and +1 or -1
when a ball reaches the bottom row. Knows only Gymnasium and NumPy.

A test must tell a learner that works from one that does not within seconds. The reward comes a
whole fall after the moves that earned it, so a learner that does not bootstrap, mixes the frames
of two environments or plays other actions than it chose stays near the score of chance.
Options make a stack, a memory, lives, or waiting for stragglers necessary.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt

from ..engines.snapshots import SCORE, Bound, checked

ID = "scanline/Catch-v0"
Image = npt.NDArray[np.uint8]
_BALL, _PADDLE = 255, 128


@dataclass(frozen=True, kw_only=True)
class CatchSettings:
    """How the game is played; one cell is one step of ball or paddle."""

    size: int = 5
    """Rows and columns, in cells."""
    pixels_per_cell: int = 1
    """Edge of a cell in the image, in pixels."""
    balls: int = 5
    """Balls per game."""
    lives: int = 0
    """Misses that end the game, reported as `lives`; 0 for a game without lives."""
    slant: bool = False
    """Balls drift sideways and bounce: one image does not show where to."""
    flicker: float = 0.0
    """Chance that an image is black."""
    terminal_reward_only: bool = False
    """The whole score is given at the end of the game."""
    step_seconds: float = 0.0
    """Mean time that a step takes, drawn at random, as an uneven emulator would."""

    def __post_init__(self) -> None:
        for field, least in (("size", 3), ("pixels_per_cell", 1), ("balls", 1), ("lives", 0)):
            if getattr(self, field) < least:
                raise ValueError(f"{field}={getattr(self, field)} must be at least {least}.")
        if not 0.0 <= self.flicker <= 1.0:
            raise ValueError(f"flicker={self.flicker} is no probability; use 0 to 1.")


@dataclass
class _Game:
    """Everything that changes while a game is played."""

    row: int = 0
    column: int = 0
    drift: int = 0
    paddle: int = 0
    balls: int = 0
    lives: int = 0
    score: float = 0.0


class Catch(gymnasium.Env[Image, np.int64]):
    """The environment behind `scanline/Catch-v0`; keywords are the fields of `CatchSettings`."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 15}  # noqa: RUF012 (Gymnasium's form)

    def __init__(self, render_mode: str | None = None, **settings: Any) -> None:
        self.render_mode = render_mode
        self._settings = CatchSettings(**settings)
        edge = self._settings.size * self._settings.pixels_per_cell
        self.observation_space = gymnasium.spaces.Box(0, 255, (edge, edge), np.uint8)
        self.action_space = gymnasium.spaces.Discrete(3)
        self._game = _Game()
        self._clock = np.random.default_rng(0)  # apart, so that waiting does not change the game

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Image, dict[str, Any]]:
        super().reset(seed=seed)
        size = self._settings.size
        self._game = _Game(paddle=int(self.np_random.integers(size)), lives=self._settings.lives)
        self._drop()
        # Games that begin in step would end in step: every batch would hold one phase of them.
        self._game.row = int(self.np_random.integers(size - 1))
        return self._image(), self._info()

    def step(self, action: np.int64 | int) -> tuple[Image, float, bool, bool, dict[str, Any]]:
        game, last = self._game, self._settings.size - 1
        if self._settings.step_seconds:
            time.sleep(self._clock.uniform(0.0, 2.0 * self._settings.step_seconds))
        game.paddle = min(max(game.paddle + int(action) - 1, 0), last)
        self._fall(last)
        reward = self._landed() if game.row == last else 0.0
        ended = game.balls == self._settings.balls or (game.lives == 0 < self._settings.lives)
        if game.row == last and not ended:
            self._drop()
        if self._settings.terminal_reward_only:
            reward = game.score if ended else 0.0
        return self._image(), reward, ended, False, self._info()

    def render(self) -> Image:
        return np.repeat(self._image(flicker=False)[..., None], 3, axis=-1)

    def snapshot(self) -> bytes:
        """The whole state, random generator included."""
        state = {"game": vars(self._game), "random": self.np_random.bit_generator.state}
        return json.dumps(state).encode()

    def restore(self, snapshot: bytes) -> None:
        try:
            state = json.loads(snapshot)
            game = _Game(**checked(state["game"], self._bounds()))
            self.np_random.bit_generator.state = state["random"]
        except (KeyError, TypeError, OverflowError, RecursionError) as error:
            raise ValueError("This is no snapshot of Catch.") from error
        self._game = game

    def _bounds(self) -> dict[str, Bound]:
        cell = Bound(int, 0, self._settings.size - 1)
        return {
            **{"row": cell, "column": cell, "paddle": cell, "drift": Bound(int, -1, 1)},
            "balls": Bound(int, 0, self._settings.balls),
            "lives": Bound(int, 0, self._settings.lives),
            "score": SCORE,
        }

    def _drop(self) -> None:
        game = self._game
        game.row, game.column = 0, int(self.np_random.integers(self._settings.size))
        game.drift = int(self.np_random.integers(-1, 2)) if self._settings.slant else 0

    def _fall(self, last: int) -> None:
        game = self._game
        if not 0 <= game.column + game.drift <= last:
            game.drift = -game.drift
        game.row, game.column = game.row + 1, game.column + game.drift

    def _landed(self) -> float:
        game = self._game
        reward = 1.0 if game.column == game.paddle else -1.0
        game.balls, game.score = game.balls + 1, game.score + reward
        game.lives = max(game.lives - (reward < 0), 0)
        return reward

    def _image(self, flicker: bool = True) -> Image:
        image = np.zeros((self._settings.size,) * 2, np.uint8)
        chance = self._settings.flicker if flicker else 0.0
        if not (chance and self.np_random.random() < chance):
            image[-1, self._game.paddle] = _PADDLE
            image[self._game.row, self._game.column] = _BALL
        edge = self._settings.pixels_per_cell
        return image if edge == 1 else image.repeat(edge, axis=0).repeat(edge, axis=1)

    def _info(self) -> dict[str, Any]:
        return {"lives": self._game.lives} if self._settings.lives else {}
