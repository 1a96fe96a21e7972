"""Tables and figures of scores of three papers, as studies: which agents, which games, how long.

`paac-scores` is PAAC's Table 1, `ga3c-scores` GA3C's Table 3, `ga3c-rates` its Figure 6,
`fast-dqn-scores` fast DQN's Table 4.
"""

from __future__ import annotations

from . import fast_dqn, ga3c, paac
from .claims import Claim, Finding
from .experiment import Results
from .published_scores import FAST_DQN, GA3C, PAAC
from .scores import (
    DESK_GAMES,
    QUIET,
    SHORT_REPLAY,
    Contestant,
    Extent,
    Scores,
    Study,
    best_pause,
    by_scale,
    experiment,
    percent,
    reaches,
    tested,
    trained,
)

# PAAC, Table 1

_PAAC = Study(
    name="paac-scores",
    summary="PAAC's scores on twelve games with both networks.",
    paper=f"{paac.PAPER}, Table 1",
    contestants={
        name: Contestant(
            recipe="paac",
            settings={"network": network},
            agent_steps=by_scale(10_000_000, 115_000_000),
        )
        for name, network in paac.NETWORKS.items()
    },
    extents={
        "smoke": Extent(games=["pong"], settings=QUIET),
        "desk": Extent(games=DESK_GAMES),
        "paper": Extent(games=tuple(PAAC["nips"]), num_seeds=3),
    },
    score=tested,
    over_seeds=max,
    score_words="Mean of 30 games with sampled actions, of the best seed, as in the paper (of 3).",
    published=PAAC,
    claims=(
        (
            "PAAC surpasses GA3C in 7 of 9 games and matches it in the others.",
            "section 5.2",
            reaches("nips", PAAC["ga3c"], 7),
        ),
        ("PAAC outperforms A3C in 8 games.", "section 5.2", reaches("nature", PAAC["a3c"], 8)),
        (
            "PAAC outperforms Gorila in 8 games.",
            "section 5.2",
            reaches("nature", PAAC["gorila"], 8),
        ),
    ),
    notes=("The paper trains for 115 million agent steps; desk for 10 million.",),
)

# GA3C, Table 3 and Figure 6

_GA3C = Study(
    name="ga3c-scores",
    summary="GA3C's scores on nine games after a day of training.",
    paper=f"{ga3c.PAPER}, Table 3",
    contestants={
        "ga3c": Contestant(recipe="ga3c", agent_steps=by_scale(5_000_000, 117_000_000, 4_096))
    },
    extents={
        "smoke": Extent(games=["pong"], settings={**QUIET, "num_envs": 16}),
        "desk": Extent(games=("pong", "qbert", "boxing", "ms_pacman")),
        "paper": Extent(games=tuple(GA3C["ga3c"])),
    },
    score=tested,
    score_words="Mean of 30 games with sampled actions, as in the paper.",
    published=GA3C,
    claims=(
        (
            "After a day GA3C has scores like those of A3C after four days.",
            "section 5.2 and Table 3",
            reaches("ga3c", GA3C["a3c"], 5, share=0.75),
        ),
    ),
    notes=(
        "A day of the paper's System I at 1,361 predictions/s is 117 million agent steps.",
        "'Pacman' of the paper is taken for Ms. Pacman.",
    ),
)


def _both_rates_learn(results: Results) -> Finding:
    """Whether every run on Pong has risen well above play at random."""
    found = {name: r["score"] for name, r in results.items() if name.startswith("pong-")}
    if not found:
        raise KeyError("pong")
    low = [name for name, score in found.items() if score is None or score < -10.0]
    return Finding(not low, f"{len(found) - len(low)} of {len(found)} runs on Pong above -10")


_GA3C_RATES = Study(
    name="ga3c-rates",
    summary="GA3C's curves of two learning rates, three runs each.",
    paper=f"{ga3c.PAPER}, Figure 6",
    contestants={
        name: Contestant(
            recipe="ga3c",
            settings={"learning_rate": rate},
            agent_steps=by_scale(3_000_000, 100_000_000, 4_096),
        )
        for name, rate in {"3e4": 3e-4, "1e4": 1e-4}.items()
    },
    extents={
        "smoke": Extent(games=["pong"], settings={**QUIET, "num_envs": 16}),
        "desk": Extent(games=("pong", "breakout"), num_seeds=2),
        "paper": Extent(
            games=("pong", "qbert", "breakout", "boxing", "ms_pacman"),
            num_seeds=3,
        ),
    },
    score=trained,
    score_words="Mean of the last 100 training games; 3e4 is a learning rate of 0.0003.",
    more_claims=(
        Claim(
            "GA3C is robust to the learning rate: both learn in every run.",
            "section 5.2 and Figure 6",
            _both_rates_learn,
        ),
    ),
    notes=(
        "The paper's text names Pong, Qbert and Breakout of the figure's five games; the other two "
        "are chosen here. It has no numbers: curves are compared in words.",
    ),
)

# Fast DQN, Table 4


def _near_human(scores: Scores) -> Finding:
    values = [percent(game, score) for (_, game), score in scores.items()]
    if not values:
        raise KeyError("any game")
    good = [value for value in values if value is not None and value >= 75.0]
    return Finding(len(good) >= 33, f"{len(good)} of {len(values)} games at 75 % or more")


_FAST_DQN = Study(
    name="fast-dqn-scores",
    summary="Fast DQN's best scores on 49 games beside DQN's.",
    paper=f"{fast_dqn.PAPER}, Table 4",
    contestants={
        "fast-dqn": Contestant(
            recipe="fast-dqn", agent_steps=by_scale(1_000_000, 50_000_000, 10_000)
        )
    },
    extents={
        "smoke": Extent(games=["pong"], settings={**QUIET, **SHORT_REPLAY}),
        "desk": Extent(games=DESK_GAMES),
        "paper": Extent(games=tuple(FAST_DQN["dqn"])),
    },
    score=best_pause,
    score_words="Best mean of a pause of 30 games at epsilon 0.05, as in the paper.",
    published=FAST_DQN,
    claims=(
        (
            "It outperforms DQN in 28 of 49 games.",
            "section 5.2",
            reaches("fast-dqn", FAST_DQN["dqn"], 28),
        ),
        (
            "It is comparable with DQN or better in 37 of 49 games.",
            "section 5.2",
            reaches("fast-dqn", FAST_DQN["dqn"], 37, share=0.9),
        ),
        ("It has at least 75 % of a human's score in 33 games.", "section 5.2", _near_human),
    ),
    notes=(
        "The paper normalises with the human of Mnih 2015, whose scores are those of another "
        "session: its own percentages differ from those here.",
    ),
)

EXPERIMENTS = tuple(map(experiment, (_PAAC, _GA3C, _GA3C_RATES, _FAST_DQN)))
