"""Gymnasium's ids of all games: `scanline/Pong-v5` and its like.

Importing the package registers them, so that `gymnasium.make` and `gymnasium.make_vec` know them.
Knows names only: what the ids stand for is imported when one is made.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from gymnasium import register, registry
from gymnasium.envs.registration import EnvSpec

from .. import games


def id_of(game: games.Game) -> str:
    """For example `scanline/MsPacman-v5`."""
    return f"scanline/{game.title}-v5"


def register_games() -> None:
    """May be called again."""
    for game in games.GAMES:
        if id_of(game) not in registry:
            register(
                id_of(game),
                entry_point="scanline.envs.single:SingleEnv",
                vector_entry_point="scanline.envs.make:make",
                kwargs={"game": game.id},
            )


def spec_of(game: Any, options: Mapping[str, Any]) -> EnvSpec | None:
    """What Gymnasium makes an equal environment from; None for what is no single Atari game."""
    try:
        spec = copy.deepcopy(registry[id_of(games.find(game))])
    except (AttributeError, ValueError):  # a callable, a list, or another name
        return None
    spec.kwargs |= {name: value for name, value in options.items() if value is not None}
    return spec
