"""Evaluation: what frozen weights are worth, and what they look like."""

from .film import Film, make_film
from .games_played import Amount, Player, Scores, play_games

__all__ = ["Amount", "Film", "Player", "Scores", "make_film", "play_games"]
