"""The suites of the conformance run: which cases each one is made of.

play        random actions, no sticky actions, three seeds: the bulk
sticky      ALE's default probability, equal seeds on both sides
variations  every mode and every difficulty of every game
paddles     paddle games with random strengths
limit       truncation by a frame limit
unseen      most frames emulated without a picture
two-player  the four ROMs without a single-player specification, under another game's rules
ale-vector  scanline.make against ale-py's vector environment, 57 games
envpool     scanline.make against EnvPool, 57 games
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import games_library
from side_by_side import Case
from vector_side_by_side import VectorCase

from scanline.games import ATARI57

PADDLE_GAMES = ("backgammon", "blackjack", "breakout", "casino", "kaboom", "pong")
SEEDS = (0, 1, 2)
VARIATION_FRAMES = 120
TWO_PLAYER_ROMS = ("combat", "joust", "maze_craze", "warlords")
LENDER_OF_RULES = "venture"


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


def two_player(game: str) -> list[Case]:
    """ALE ends the process on these ROMs; under the name of a game with one mode they load."""
    if game != LENDER_OF_RULES:
        return []
    return [
        Case(game=game, rom=rom, seed=600 + seed, frames=10_000, reset_every_frames=3_000)
        for rom in TWO_PLAYER_ROMS
        for seed in SEEDS
    ]


def ale_vector(game: str) -> list[VectorCase]:
    if game not in ATARI57:
        return []
    limit = {"theirs": {"max_num_frames_per_episode": 403, "repeat_action_probability": 0.25}}
    limit["ours"] = {"episode_limit_frames": 403, "sticky": 0.25}
    return [
        VectorCase(game=game, seed=700, reset_after_steps=200),
        VectorCase(game=game, seed=701, autoreset="same-step", **limit),
    ]


def envpool(game: str) -> list[VectorCase]:
    if game not in ATARI57:
        return []
    whole_games = VectorCase(game=game, peer="envpool", seed=800, ours={"life_loss": "ignore"})
    lives = VectorCase(game=game, peer="envpool", seed=801, theirs={"episodic_life": True})
    return [whole_games, lives]


SUITES: dict[str, Callable[[str], Sequence[Case | VectorCase]]] = {
    "play": play,
    "sticky": sticky,
    "variations": variations,
    "paddles": paddles,
    "limit": limit,
    "unseen": unseen,
    "two-player": two_player,
    "ale-vector": ale_vector,
    "envpool": envpool,
}


def cases(suite: str, games: list[str], frames: int | None = None) -> list[Case | VectorCase]:
    """All cases of a suite, of as many frames each as asked for."""
    found = [case for game in games for case in SUITES[suite](game)]
    found.sort(key=lambda case: case.seed)  # an interrupted run has seen every game
    return found if frames is None else [case.with_frames(frames) for case in found]
