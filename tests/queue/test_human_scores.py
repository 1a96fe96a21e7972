"""The table of random and human scores: complete, and equal to what other tables print."""

from __future__ import annotations

import pytest

from scanline import games
from scanline.queue import human_scores

# Random play in Mnih et al. 2015, extended data table 2, with the digits that it prints.
NATURE_RANDOM = """
alien 227.8, amidar 5.8, assault 222.4, asterix 210, asteroids 719.1
atlantis 12850, bank_heist 14.2, battle_zone 2360, beam_rider 363.9, bowling 23.1
boxing 0.1, breakout 1.7, centipede 2091, chopper_command 811, crazy_climber 10781
demon_attack 152.1, double_dunk -18.6, enduro 0, fishing_derby -91.7, freeway 0
frostbite 65.2, gopher 257.6, gravitar 173, hero 1027, ice_hockey -11.2
jamesbond 29, kangaroo 52, krull 1598, kung_fu_master 258.5, montezuma_revenge 0
ms_pacman 307.3, name_this_game 2292, pong -20.7, private_eye 24.9, qbert 163.9
riverraid 1339, road_runner 11.5, robotank 2.2, seaquest 68.4, space_invaders 148
star_gunner 664, tennis -23.8, time_pilot 3568, tutankham 11.4, up_n_down 533.4
venture 0, video_pinball 16257, wizard_of_wor 563.5, zaxxon 32.5
"""


def test_there_are_57_games_under_the_names_of_the_package() -> None:
    assert len(human_scores.SCORES) == 57
    assert set(human_scores.SCORES) <= {game.id for game in games.GAMES}


def test_a_human_is_better_than_random_play_on_every_game() -> None:
    assert all(row.human > row.random for row in human_scores.SCORES.values())


def test_random_scores_are_those_of_the_49_games_of_another_table() -> None:
    cells = (
        cell.split() for line in NATURE_RANDOM.strip().splitlines() for cell in line.split(",")
    )
    printed = {game: float(score) for game, score in cells}
    assert len(printed) == 49
    for game, score in printed.items():
        digits = 0.051 if abs(score) < 1000 else 0.51
        assert human_scores.SCORES[game].random == pytest.approx(score, abs=digits), game


def test_a_score_is_normalised_by_its_own_game() -> None:
    assert human_scores.normalised("breakout", [1.7, 30.5, 59.3]).tolist() == pytest.approx(
        [0, 1, 2]
    )
