"""Scores that the papers print, game by game: data alone.

`PAAC` is Table 1 of Clemente 2017. `GA3C` is Table 3 of Babaeizadeh 2017. `FAST_DQN` is Table 4 of
Daley and Amato 2021 with the DQN of Mnih 2015 beside it. `ACCELERATED` has the means and medians
over games of Table 1 of Stooke and Abbeel 2018; 1 is human.
"""

from __future__ import annotations


def _columns(names: tuple[str, ...], text: str) -> dict[str, dict[str, float]]:
    """Columns by name, then by game, of lines of a game and its numbers; `-` for none."""
    lines = [line.split() for line in text.strip().splitlines()]
    return {
        name: {game: float(row[place]) for game, *row in lines if row[place] != "-"}
        for place, name in enumerate(names)
    }


PAAC = _columns(
    ("gorila", "a3c", "ga3c", "nips", "nature"),
    """
amidar 1189.70 263.9 218 701.8 1348.3
centipede 8432.30 3755.8 7386 5747.32 7368.1
beam_rider 3302.9 22707.9 - 4062.0 6844.0
boxing 94.9 59.8 92 99.6 99.8
breakout 402.2 681.9 - 470.1 565.3
ms_pacman 3233.50 653.7 1978 2194.7 1976.0
name_this_game 6182.16 10476.1 5643 9743.7 14068.0
pong 18.3 5.6 18 20.6 20.9
qbert 10815.6 15148.8 14966.0 16561.7 17249.2
seaquest 13169.06 2355.4 1706 1754.0 1755.3
space_invaders 1883.4 15730.5 - 1077.3 1427.8
up_n_down 12561.58 74705.7 8623 88105.3 100523.3
""",
)
"""Gorila, A3C and GA3C as the paper cites them; A3C's start from human play."""

GA3C = _columns(
    ("human", "random", "a3c", "ga3c"),
    """
amidar 1676 6 264 218
boxing 10 -2 60 92
centipede 10322 1926 3756 7386
name_this_game 6796 198 10476 5643
ms_pacman 15375 1748 654 1978
pong 16 -18 6 18
qbert 12085 272 15149 14966
seaquest 40426 216 2355 1706
up_n_down 9896 533 74706 8623
""",
)
"""Human and random are those of human starts; A3C after four days, GA3C after one."""

FAST_DQN = _columns(
    ("dqn", "fast-dqn"),
    """
alien 3069 1319.0
amidar 739.5 1276.7
assault 3359 3818.1
asterix 6012 11128.3
asteroids 1629 1475.3
atlantis 85641 113926.7
bank_heist 429.7 668.7
battle_zone 26300 26300.0
beam_rider 6846 6538.9
bowling 42.4 57.1
boxing 71.8 96.1
breakout 401.2 373.4
centipede 8309 5138.2
chopper_command 6687 1973.3
crazy_climber 114103 120300.0
demon_attack 9711 10245.0
double_dunk -18.1 -15.6
enduro 301.8 343.6
fishing_derby -0.8 26.9
freeway 30.3 29.5
frostbite 328.3 2606.7
gopher 8520 11566.7
gravitar 306.7 418.3
hero 19950 22900.0
ice_hockey -1.6 -0.3
jamesbond 576.7 540.0
kangaroo 6740 9720.0
krull 3805 8327.5
kung_fu_master 23270 33840.0
montezuma_revenge 0 0.0
ms_pacman 2311 3105.0
name_this_game 7257 7428.3
pong 18.9 18.7
private_eye 1788 103.3
qbert 10596 12236.7
riverraid 8136 13405.0
road_runner 18257 46873.3
robotank 51.6 26.7
seaquest 5286 3397.3
space_invaders 1976 1124.3
star_gunner 57997 12703.3
tennis -2.5 -1.0
time_pilot 5947 6430.0
tutankham 186.7 151.6
up_n_down 8456 15653.7
venture 380 186.7
video_pinball 42684 129182.8
wizard_of_wor 3393 1590.0
zaxxon 4977 3406.7
""",
)

ACCELERATED = {
    "a2c-16": (2.5, 0.65),
    "a2c-128": (8.0, 0.48),
    "a3c-3x16": (5.4, 0.53),
    "ppo-8": (2.8, 1.2),
    "ppo-128": (9.8, 0.97),
    "appo-8x8": (8.8, 1.2),
    "dqn-512": (9.8, 1.4),
    "categorical-dqn-2048": (22.1, 2.9),
    "rainbow-512": (22.4, 2.5),
}
"""DQN and Categorical DQN with batches of 32 are cited there, not run: 2.4, 0.96 and 25.5, 2.1."""

BY_RECIPE = {
    "paac": PAAC["nips"],
    "ga3c": GA3C["ga3c"],
    "dqn": FAST_DQN["dqn"],
    "fast-dqn": FAST_DQN["fast-dqn"],
}
"""What a recipe reached in its paper, by game, after far more steps: PAAC 115 million, the DQNs 50
million, GA3C a day."""
