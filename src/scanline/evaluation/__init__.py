"""Evaluation: what frozen weights are worth, and what they look like."""

from .games_played import Scores, play_games

__all__ = ["Scores", "play_games"]
