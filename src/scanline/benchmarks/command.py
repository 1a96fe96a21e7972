"""`scanline bench NAME`: options to benches, rows to a table and JSON.

Takes words of the command line; gives an exit code. Knows which benches there are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import tyro

from .. import engines
from . import emulation, learners, training
from .rows import write_json


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """Agent steps per second of recipes, beside peers doing the same work in the same run."""

    recipes: str = "paac,a2c"
    """Recipes of ours, by commas."""
    peers: str = ""
    """Peers by commas: sb3 (on its own environments, and on ale-py's vector environment)."""
    game: str = "pong"
    """Game that all contenders play."""
    engine: str | None = None
    """Our engine; the default one when not given."""
    repeats: int = 3
    """Interleaved repeats of every contender; the median counts."""
    seconds: float = 20.0
    """Timed seconds of one repeat."""
    warm_up_seconds: float = 5.0
    """Seconds before the clock starts."""
    num_envs: int | None = None
    """Environments of every contender; the recipe's number when not given."""
    networks: str = ""
    """Networks by commas that every recipe is measured with; its own when not given."""
    uneven_seconds: float = 0.0
    """Simulated: every step of an environment takes so long at least and up to ten times so."""
    num_threads: int | None = None
    """Engine threads; all cores when not given."""
    torch_threads: int | None = None
    """Threads of PyTorch, for us and for the peers; all cores when not given."""
    json: Path | None = None
    """File for the rows."""


def bench_training(words: list[str], program: str) -> int:
    options = tyro.cli(TrainingOptions, args=words, prog=program)
    bench = training.TrainingBench(
        recipes=_list(options.recipes),
        peers=_list(options.peers),
        game=options.game,
        engine=options.engine,
        repeats=options.repeats,
        seconds=options.seconds,
        warm_up_seconds=options.warm_up_seconds,
        num_threads=options.num_threads,
        torch_threads=options.torch_threads,
        networks=_list(options.networks),
        uneven_seconds=options.uneven_seconds,
        settings={} if options.num_envs is None else {"num_envs": options.num_envs},
    )
    rows = training.run(bench, options.engine or engines.default_name(options.game))
    training.show(rows)
    if options.json is not None:
        write_json(options.json, rows)
    return 0


@dataclass(frozen=True, kw_only=True)
class EmulationOptions:
    """Raw frames per second of engines: random actions, observations produced."""

    games: str = "pong"
    """Games by commas, or a list: atari57, atari49, atari60, atari26, all."""
    engines: str = "native,ale,envpool"
    """Engines by commas; envpool is left out where it is not installed."""
    num_envs: str = "64"
    """Numbers of environments by commas."""
    num_threads: str = ""
    """Numbers of engine threads by commas; all cores when not given."""
    repeats: int = 3
    """Interleaved repeats of every engine; the median counts."""
    seconds: float = 1.0
    """Timed seconds of one repeat."""
    warm_up_seconds: float = 0.5
    """Seconds before the clock starts."""
    json: Path | None = None
    """File for the rows."""
    plot: Path | None = None
    """File for a picture of the rows (png, svg)."""


def bench_emulation(words: list[str], program: str) -> int:
    options = tyro.cli(EmulationOptions, args=words, prog=program)
    rows = emulation.run(
        emulation.EmulationBench(
            games=_list(options.games),
            engines=_list(options.engines),
            num_envs=[int(word) for word in _list(options.num_envs)],
            num_threads=[int(word) for word in _list(options.num_threads)],
            repeats=options.repeats,
            seconds=options.seconds,
            warm_up_seconds=options.warm_up_seconds,
        )
    )
    emulation.show(rows)
    if options.json is not None:
        write_json(options.json, rows)
    if options.plot is not None:
        emulation.plot(rows, options.plot)
    return 0


@dataclass(frozen=True, kw_only=True)
class LearnersOptions:
    """One learner on one core against several, each with a core of its own."""

    recipe: str = "accelerated-ppo"
    """Recipe of ours."""
    game: str = "pong"
    """Game that all learners play."""
    learners: str = "2"
    """Numbers of learners by commas."""
    repeats: int = 3
    """Interleaved repeats of every number; the median counts."""
    seconds: float = 20.0
    """Timed seconds of one repeat."""
    warm_up_seconds: float = 5.0
    """Seconds before the clock starts."""
    num_envs: int | None = None
    """Environments of the one learner; the recipe's number when not given."""
    json: Path | None = None
    """File for the rows."""


def bench_learners(words: list[str], program: str) -> int:
    options = tyro.cli(LearnersOptions, args=words, prog=program)
    bench = learners.LearnersBench(
        recipe=options.recipe,
        game=options.game,
        learners=[int(word) for word in _list(options.learners)],
        repeats=options.repeats,
        seconds=options.seconds,
        warm_up_seconds=options.warm_up_seconds,
        settings={} if options.num_envs is None else {"num_envs": options.num_envs},
    )
    rows = learners.run(bench)
    learners.show(rows)
    if options.json is not None:
        write_json(options.json, rows)
    return 0


def _list(words: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in words.split(",") if word.strip())


BENCHES: Mapping[str, Callable[[list[str], str], int]] = {
    "emulation": bench_emulation,
    "learners": bench_learners,
    "training": bench_training,
}
