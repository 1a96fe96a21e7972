"""The suites of the conformance run: which cases each one is made of.

play        random actions, no sticky actions, three seeds: the bulk
sticky      ALE's default probability, equal seeds on both sides
variations  every mode and every difficulty of every game
paddles     paddle games with random strengths
limit       truncation by a frame limit
unseen      most frames emulated without a picture
"""

from __future__ import annotations

from collections.abc import Callable

import games_library
from side_by_side import Case

PADDLE_GAMES = ("backgammon", "blackjack", "breakout", "casino", "kaboom", "pong")
SEEDS = (0, 1, 2)
VARIATION_FRAMES = 120


def play(game: str) -> list[Case]:
    return [Case(game=game, seed=seed, frames=10_000, reset_every_frames=3_000) for seed in SEEDS]


def sticky(game: str) -> list[Case]:
    probabilities = (0.25, 0.25, 0.6)
    return [
        Case(game=game, seed=100 + seed, sticky=probabilities[seed], frames=2_000) for seed in SEEDS
    ]


def variations(game: str) -> list[Case]:
    facts = games_library.facts(game)
    first, switches = facts.modes[0], facts.difficulties
    pairs = [(mode, switches[i % len(switches)]) for i, mode in enumerate(facts.modes)]
    pairs += [(first, difficulty) for difficulty in switches if (first, difficulty) not in pairs]
    frames = VARIATION_FRAMES * len(pairs)
    return [
        Case(
            game=game,
            seed=200,
            frames=frames,
            variations=tuple(pairs),
            reset_every_frames=VARIATION_FRAMES,
        )
    ]


def paddles(game: str) -> list[Case]:
    if game not in PADDLE_GAMES:
        return []
    return [Case(game=game, seed=300 + s, frames=4_000, strengths=True) for s in SEEDS]


def limit(game: str) -> list[Case]:
    return [Case(game=game, seed=400, frames=600, limit_frames=200, sticky=0.25)]


def unseen(game: str) -> list[Case]:
    return [Case(game=game, seed=500, frames=3_000, unseen=True)]


SUITES: dict[str, Callable[[str], list[Case]]] = {
    "play": play,
    "sticky": sticky,
    "variations": variations,
    "paddles": paddles,
    "limit": limit,
    "unseen": unseen,
}


def cases(suite: str, games: list[str], frames: int | None = None) -> list[Case]:
    """All cases of a suite, of as many frames each as asked for."""
    found = [case for game in games for case in SUITES[suite](game)]
    found.sort(key=lambda case: case.seed)  # an interrupted run has seen every game
    if frames is None:
        return found
    return [Case(**{**vars(case), "frames": frames}) for case in found]
