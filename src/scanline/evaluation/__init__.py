"""Evaluation: what frozen weights are worth, and what they look like."""

from .film import Film, make_film
from .games_played import EvaluatedPolicy, EvaluationScores, play_games
from .window import Watched, show_game

__all__ = [
    "EvaluatedPolicy",
    "EvaluationScores",
    "Film",
    "Watched",
    "make_film",
    "play_games",
    "show_game",
]
