"""Evaluation: whole games played with frozen weights.

Takes an engine, a policy and a number of games; gives their scores.
Knows no learner: the weights are whatever the policy acts with.

Exactly that many games are started and every started game is played to its end. Stopping at the
first so many *finished* games would favour short ones.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

from ..engines.interface import Engine
from ..records import EpisodeEnd, Policy, Slot
from ..samplers import LockstepSampler


@dataclass(frozen=True, kw_only=True)
class Scores:
    """Scores of an evaluation, in the order in which its games were started."""

    scores: tuple[float, ...]
    lengths_agent_steps: tuple[int, ...]
    seconds: float

    @property
    def mean(self) -> float:
        return statistics.fmean(self.scores)

    @property
    def deviation(self) -> float:
        """Sample standard deviation; 0 for a single game."""
        return statistics.stdev(self.scores) if len(self.scores) > 1 else 0.0

    def sentence(self) -> str:
        low, high = min(self.scores), max(self.scores)
        return (
            f"{len(self.scores)} games: mean {self.mean:.2f}, deviation {self.deviation:.2f}, "
            f"lowest {low:g}, highest {high:g} ({self.seconds:.1f} s)"
        )


def play_games(
    engine: Engine,
    policy: Policy,
    num_games: int,
    seed: int,
    after_step: Callable[[Slot], None] | None = None,
) -> Scores:
    """Plays the first `num_games` games that the engine's environments start, each to its end."""
    begun = time.perf_counter()
    sampler = LockstepSampler(engine, seed)
    sampler.reset()
    slot = Slot.allocate(engine.spaces, 1, engine.settings.num_envs, {})
    finished: dict[int, EpisodeEnd] = {}
    while len(finished) < num_games:
        sampler.collect(policy, into=slot)
        if after_step is not None:
            after_step(slot)
        ends = sampler.drain_episodes()
        finished |= {end.started_at: end for end in ends if end.started_at < num_games}
    games = [finished[number] for number in range(num_games)]
    return Scores(
        scores=tuple(game.score for game in games),
        lengths_agent_steps=tuple(game.length_agent_steps for game in games),
        seconds=time.perf_counter() - begun,
    )
