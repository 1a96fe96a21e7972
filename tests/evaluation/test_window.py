"""A game in a window: the console's screen at its own speed, until it ends or is closed."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pygame
import pytest
import torch

from scanline import engines, evaluation, protocols
from scanline.engines import Engine, EngineSettings
from scanline.errors import RefusedError
from scanline.evaluation.film import scaled
from scanline.records import Acted


class Right:
    """Always the same action; calls a function first, with the number of calls before."""

    version = 0
    draws_per_step = 2

    def __init__(self, first: Callable[[int], object]) -> None:
        self._first, self._calls = first, 0

    def __call__(
        self, observations: torch.Tensor, uniforms: torch.Tensor, agent_steps: int
    ) -> Acted:
        self._first(self._calls)
        self._calls += 1
        return Acted(torch.full((len(observations),), 2), {})


def pong() -> Engine:
    rules = protocols.get("baselines")
    return engines.build("native", EngineSettings(game="pong", num_envs=1, protocol=rules))


@pytest.fixture
def no_screen_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")


@pytest.mark.usefixtures("no_screen_needed")
def test_the_screen_is_shown_at_the_consoles_speed() -> None:
    engine, seen = pong(), []

    def look(call: int) -> None:
        if call == 5:
            shown = pygame.surfarray.array3d(pygame.display.get_surface()).swapaxes(0, 1)
            seen.append((shown, engine.screens()[0]))  # type: ignore[attr-defined]

    begun = time.perf_counter()
    watched = evaluation.show_game(engine, Right(look), seed=0, most_agent_steps=10)
    assert time.perf_counter() - begun >= 0.9 * 39 / 60  # 40 raw frames
    assert (watched.agent_steps, watched.was_closed) == (10, False)
    shown, screen = seen[0]
    assert shown.shape == (720, 960, 3)
    np.testing.assert_array_equal(shown, scaled(screen, 720, 960))
    engine.close()


@pytest.mark.usefixtures("no_screen_needed")
def test_closing_the_window_ends_the_game() -> None:
    def close(call: int) -> None:
        if call == 2:
            pygame.event.post(pygame.event.Event(pygame.KEYDOWN, key=pygame.K_ESCAPE))

    engine = pong()
    watched = evaluation.show_game(engine, Right(close), seed=0, most_agent_steps=100)
    assert (watched.agent_steps, watched.was_closed) == (3, True)
    engine.close()


def test_without_a_screen_one_sentence_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SDL_VIDEODRIVER", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    engine = pong()
    with pytest.raises(RefusedError, match="no screen for a window here; without --live"):
        evaluation.show_game(engine, Right(lambda call: None), seed=0, most_agent_steps=5)
    engine.close()
