"""A game in a window, as it is played.

Takes an engine with one environment and a policy; gives the score. Knows no learner. pygame (extra
`play`) is imported only here, and only when a window is opened.

The picture is that of a film: an engine that records its screens is shown as a player would see the
game, in colour, at the console's sixty frames a second, in the 4:3 of a television.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ..engines.interface import Engine
from ..errors import MissingPackageError, RefusedError
from ..interfaces import Policy
from ..records import Array
from .film import frames_per_second, played_pictures

_SIZE_PIXELS = (960, 720)
"""Width and height of a new window; it can be resized."""


@dataclass(frozen=True, kw_only=True)
class Watched:
    """What was shown."""

    score: float
    agent_steps: int
    was_closed: bool
    """Whether the window was closed before the game had ended."""


def show_game(engine: Engine, policy: Policy, *, seed: int, most_agent_steps: int) -> Watched:
    """Plays one game in a window, until it ends or the window is closed (or Escape, or q)."""
    score, agent_steps, rate = 0.0, 0, frames_per_second(engine)
    with _window(str(engine.settings.game)) as window:
        for pictures, reward in played_pictures(engine, policy, seed, most_agent_steps):
            score, agent_steps = score + reward, agent_steps + 1
            for picture in pictures:
                if not window.show(picture, rate):
                    return Watched(score=score, agent_steps=agent_steps, was_closed=True)
    return Watched(score=score, agent_steps=agent_steps, was_closed=False)


class _Window:
    def __init__(self, pygame: Any, title: str) -> None:
        self._pygame, self._clock = pygame, pygame.time.Clock()
        self._screen = pygame.display.set_mode(_SIZE_PIXELS, pygame.RESIZABLE)
        pygame.display.set_caption(f"scanline: {title}")

    def show(self, picture: Array, frames_per_second: float) -> bool:
        """Waits until the picture [H, W, 3] is due and shows it; False once it was closed."""
        pygame = self._pygame
        surface = pygame.surfarray.make_surface(picture.swapaxes(0, 1))
        width, height = self._screen.get_size()
        unit = min(width // 4, height // 3)  # the largest 4:3 that fits
        shown = pygame.transform.scale(surface, (4 * unit, 3 * unit))
        self._screen.fill((0, 0, 0))
        self._screen.blit(shown, shown.get_rect(center=(width // 2, height // 2)))
        self._clock.tick(frames_per_second)
        pygame.display.flip()
        return not any(self._ends(event) for event in pygame.event.get())

    def _ends(self, event: Any) -> bool:
        pygame = self._pygame
        keys = (pygame.K_ESCAPE, pygame.K_q)
        return bool(
            event.type == pygame.QUIT or (event.type == pygame.KEYDOWN and event.key in keys)
        )


@contextmanager
def _window(title: str) -> Iterator[_Window]:
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    try:
        pygame = importlib.import_module("pygame")
    except ImportError as error:
        raise MissingPackageError(
            "A window needs pygame; get it with: pip install 'scanline[play]'"
        ) from error
    try:
        pygame.display.init()
        if pygame.display.get_driver() == "offscreen":  # what is left where there is no screen
            raise RefusedError(_NO_SCREEN)
        yield _Window(pygame, title)
    except pygame.error as error:
        raise RefusedError(_NO_SCREEN) from error
    finally:
        pygame.display.quit()


_NO_SCREEN = "There is no screen for a window here; without --live the game is filmed."
