"""scanline.Console for comparisons: the product itself, with the verbs of environment_library.py.

Takes a game, a seed and ALE's repeat_action_probability. It has neither paddle strengths nor a
frame limit nor modes that change while it runs; a comparison of those uses the library.
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

import scanline


class ProductConsole:
    def __init__(self, game: str, seed: int, sticky: float):
        self._console = scanline.Console(game, seed=seed, repeat_action_probability=sticky)

    def reset(self, seen: bool = True) -> None:
        assert seen, "the product decides by itself what it draws"
        self._console.reset()

    def act(self, action: int, strength: float = 1.0, seen: bool = True) -> int:
        assert strength == 1.0 and seen
        return self._console.act(action)

    def ram(self) -> np.ndarray:
        return self._console.ram()

    def screen(self) -> np.ndarray:
        return self._console.screen()

    def results(self) -> SimpleNamespace:
        return SimpleNamespace(
            lives=self._console.lives,
            game_over=self._console.game_over,
            truncated=False,
            frame_number=self._console.frame_number,
            episode_frame_number=self._console.episode_frame_number,
            mode_failed=False,
        )
