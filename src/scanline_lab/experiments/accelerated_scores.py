"""Accelerated Methods (Stooke and Abbeel 2018): its scores, as studies.

`accelerated-scores` is Table 1, `accelerated-batches` Figure 3 (training batches of the DQNs),
`accelerated-minutes` Figure 4 (the whole machine for one run), `accelerated-norms` Figure 8 (norms
of parameters, gradients and steps, Adam against RMSProp).
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from typing import Any

from .accelerated_secondary import PAPER, rate_of
from .claims import Claim, Finding
from .experiment import Results
from .learning import mean_of
from .published_scores import ACCELERATED, FAST_DQN
from .scores import (
    DESK_GAMES,
    QUIET,
    SHORT_REPLAY,
    Contestant,
    Extent,
    Judge,
    Scores,
    Study,
    best_pause,
    by_scale,
    experiment,
    percent,
    trained,
)

_PG, _DQN = by_scale(2_000_000, 25_000_000), by_scale(500_000, 50_000_000)


def _matches(results: Scores) -> Finding:
    """Whether scaled forms have at least 0.8 of the median of the form they scale."""
    found: dict[str, list[float]] = {}
    for (name, game), score in results.items():
        value = percent(game, score)
        if value is not None:
            found.setdefault(name, []).append(value)
    pairs = {"a2c-128": "a2c-16", "a3c-3x16": "a2c-16", "ppo-128": "ppo-8", "appo-8x8": "ppo-8"}
    medians = {name: statistics.median(values) for name, values in found.items()}
    shares = {scaled: medians[scaled] / medians[plain] for scaled, plain in pairs.items()}
    words = ", ".join(f"{name} {share:.2f}" for name, share in shares.items())
    return Finding(all(share >= 0.8 for share in shares.values()), f"share of the median: {words}")


_TABLE = Study(
    name="accelerated-scores",
    summary="Human-normalised scores of A2C, A3C, PPO, APPO and the DQNs, plain and scaled.",
    paper=f"{PAPER}, Table 1 and Figures 9 to 11",
    contestants={
        **{
            f"{kind}-{num}": Contestant(
                recipe=f"accelerated-{kind}", settings={"num_envs": num}, agent_steps=_PG
            )
            for kind, num in (("a2c", 16), ("a2c", 128), ("ppo", 8), ("ppo", 128))
        },
        "a3c-3x16": Contestant(recipe="accelerated-a3c", agent_steps=_PG),
        "appo-8x8": Contestant(recipe="accelerated-appo", agent_steps=_PG),
        "dqn-512": Contestant(recipe="accelerated-dqn", agent_steps=_DQN),
        "categorical-dqn-2048": Contestant(recipe="accelerated-categorical-dqn", agent_steps=_DQN),
        "rainbow-512": Contestant(recipe="accelerated-rainbow", agent_steps=_DQN),
    },
    extents={
        "smoke": Extent(
            games=["pong"],
            contestants=("a2c-16", "ppo-8"),
            settings={**QUIET, "decorrelation_agent_steps": 0},
        ),
        "desk": Extent(
            games=DESK_GAMES,
            contestants=("a2c-16", "a2c-128", "a3c-3x16", "ppo-8", "ppo-128", "appo-8x8"),
        ),
        "paper": Extent(games=tuple(FAST_DQN["dqn"]), num_seeds=2),
    },
    score=lambda result: trained(result) if result["best_pause"] is None else best_pause(result),
    score_words="Mean of the last 100 training games; of DQNs the best pause for evaluation.",
    published_normalised=ACCELERATED,
    claims=(("Scaled versions tend to match un-scaled versions.", "Table 1", _matches),),
    notes=(
        "The paper's DQN and Categorical DQN with batches of 32 are cited numbers, not its own.",
        "Desk leaves the DQNs out: 500,000 steps of the three on four games are another 13 hours.",
    ),
)

_BATCHES = (32, 128, 512, 2_048)


def _batched(kind: str, size: int) -> dict[str, Any]:
    """Rates as published for DQN; of Categorical DQN one rate, an epsilon by batch size."""
    if kind == "dqn":
        return {"batch_size": size, "learning_rate": rate_of(size)}
    return {"batch_size": size, "epsilon": 0.01 / size}


def _consistent(kind: str, last: int) -> Judge:
    def find(scores: Scores) -> Finding:
        sizes = [size for size in _BATCHES if size <= last]
        means = {
            size: statistics.fmean(s for (n, _), s in scores.items() if n == f"{kind}-{size}")
            for size in sizes
            if any(name == f"{kind}-{size}" for name, _ in scores)
        }
        if len(means) < len(sizes):
            raise KeyError(f"{kind} up to {last}")
        words = ", ".join(f"{size}: {mean:.0f}" for size, mean in means.items())
        return Finding(means[last] >= 0.8 * means[sizes[0]], f"mean score by batch size {words}")

    return find


_BY_BATCH = Study(
    name="accelerated-batches",
    summary="DQN and Categorical DQN with training batches of 32 to 2,048.",
    paper=f"{PAPER}, Figure 3",
    contestants={
        f"{kind}-{size}": Contestant(
            recipe=f"accelerated-{kind}", settings=_batched(kind, size), agent_steps=_DQN
        )
        for kind in ("dqn", "categorical-dqn")
        for size in _BATCHES
    },
    extents={
        "smoke": Extent(
            games=["pong"],
            contestants=("dqn-32", "categorical-dqn-32"),
            settings={**QUIET, **SHORT_REPLAY, "decorrelation_agent_steps": 0},
        ),
        "desk": Extent(games=["pong"]),
        "paper": Extent(games=("breakout", "qbert", "seaquest"), num_seeds=2),
    },
    score=best_pause,
    score_words="Best pause for evaluation.",
    claims=(
        ("DQN learns consistently up to batches of 512.", "section 5.3", _consistent("dqn", 512)),
        (
            "Categorical DQN does up to batches of 2,048.",
            "section 5.3",
            _consistent("categorical-dqn", 2_048),
        ),
    ),
    notes=(
        "The figure's games are lost in its text: those of the scale paper are chosen here. Rates "
        "between the paper's batch sizes lie on a straight line of logarithms.",
    ),
)


def _soon(results: Results) -> Finding:
    """Minutes until Pong's score is above 0, the end of its steep phase."""
    found = {}
    for name, result in results.items():
        if name.startswith("pong-"):
            at = (s / 60 for _, s, score in result["curve"] if score is not None and score > 0.0)
            found[name.partition("-")[2]] = next(at, None)
    if not found:
        raise KeyError("pong")
    words = ", ".join(f"{n} {m:.1f}" if m else f"{n} not reached" for n, m in found.items())
    holds = all(minutes is not None and minutes < 10.0 for minutes in found.values())
    return Finding(holds, f"minutes to a score above 0 on Pong: {words}")


_MINUTES = Study(
    name="accelerated-minutes",
    summary="A2C, A3C, PPO and APPO on the whole machine: scores over minutes.",
    paper=f"{PAPER}, Figure 4",
    contestants={
        "a2c": Contestant(
            recipe="accelerated-a2c",
            settings={"num_envs": 64},
            agent_steps=by_scale(5_000_000, 50_000_000),
        ),
        "a3c": Contestant(recipe="accelerated-a3c", agent_steps=by_scale(5_000_000, 50_000_000)),
        "ppo": Contestant(
            recipe="accelerated-ppo",
            settings={"num_envs": 64},
            agent_steps=by_scale(2_500_000, 50_000_000),
        ),
        "appo": Contestant(recipe="accelerated-appo", agent_steps=by_scale(2_500_000, 50_000_000)),
    },
    extents={
        "smoke": Extent(
            games=["pong"],
            contestants=("a2c", "ppo"),
            settings={**QUIET, "decorrelation_agent_steps": 0},
        ),
        "desk": Extent(games=("pong", "breakout")),
        "paper": Extent(games=("pong", "breakout", "qbert", "space_invaders"), num_seeds=2),
    },
    score=trained,
    score_words="Mean of the last 100 training games.",
    more_claims=(
        Claim(
            "All four complete the steep initial phase in under 10 minutes.",
            "section 5.4 and Figure 4, on 8 P100 and 40 cores",
            _soon,
        ),
    ),
    notes=("The paper's figure is of 8 P100 and 40 cores; here all share the cores of a CPU.",),
)

_FIRST, _DENSE = "trunk.convs.0", "head.stream.0"
_NORMS = tuple(
    f"norms/{what}/{layer}"
    for layer in (_FIRST, _DENSE)
    for what in ("parameters", "gradient", "step")
)
_RULES: Mapping[str, Mapping[str, Any]] = {
    "adam-64": {"batch_size": 64, "epsilon": 0.01 / 64},
    "adam-256": {"batch_size": 256, "epsilon": 0.01 / 256},
    "adam-1024": {"batch_size": 1_024, "epsilon": 0.01 / 1_024},
    **{
        f"rmsprop-{size}": {
            **{"kind": "rmsprop", "decay": 0.9, "epsilon": 1e-6, "epsilon_inside_root": True},
            **{"batch_size": size, "learning_rate": rate},
        }
        for size, rate in {64: 2e-4, 256: 1e-3, 1_024: 4e-3}.items()
    },
}


def _by_batch(metric: str, rule: str, smaller: bool) -> Callable[[Results], Finding]:
    def find(results: Results) -> Finding:
        sizes: dict[int, float] = {}
        for name, result in results.items():
            if f"-{rule}-" in name:
                value = mean_of(result, metric)
                if value is not None:
                    sizes[int(name.rpartition(".")[0].rpartition("-")[2])] = value
        if len(sizes) < 2:
            raise KeyError(f"{metric} of {rule}")
        first, last = sizes[min(sizes)], sizes[max(sizes)]
        words = ", ".join(f"{size}: {value:.3g}" for size, value in sorted(sizes.items()))
        return Finding(last < first if smaller else last > first, f"by batch size {words}")

    return find


_BY_RULE = Study(
    name="accelerated-norms",
    summary="Norms of parameters, gradients and steps by batch size, Adam against RMSProp.",
    paper=f"{PAPER}, Figure 8",
    contestants={
        name: Contestant(recipe="accelerated-categorical-dqn", settings=settings, agent_steps=_DQN)
        for name, settings in _RULES.items()
    },
    extents={
        "smoke": Extent(
            games=["qbert"],
            contestants=("adam-64", "rmsprop-64"),
            settings={
                **{**QUIET, **SHORT_REPLAY, "decorrelation_agent_steps": 0},
                "norms_every_updates": 1,
            },
        ),
        "desk": Extent(games=["qbert"], settings={"norms_every_updates": 50}),
        "paper": Extent(games=["qbert"], num_seeds=2, settings={"norms_every_updates": 100}),
    },
    score=best_pause,
    score_words="Best pause for evaluation.",
    metrics=_NORMS,
    more_claims=(
        *(
            Claim(
                f"With {rule}, larger batches have smaller gradients in the first dense layer.",
                "appendix D and Figure 8",
                _by_batch(f"norms/gradient/{_DENSE}", rule, smaller=True),
            )
            for rule in ("adam", "rmsprop")
        ),
        Claim(
            "With Adam, larger batches take larger steps in the first dense layer.",
            "appendix D and Figure 8",
            _by_batch(f"norms/step/{_DENSE}", "adam", smaller=False),
        ),
    ),
    notes=(
        "Conv-0 is trunk.convs.0, FC-0 head.stream.0. The paper gives two rates of RMSProp at a "
        "batch of 64 as too low and too high (1e-4, 5e-4) and a factor of 20 to 1,024: the rates "
        "here lie between.",
    ),
)

EXPERIMENTS = tuple(
    map(
        experiment,
        (_TABLE, _BY_BATCH, _MINUTES, _BY_RULE),
    )
)
