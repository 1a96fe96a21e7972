"""Evaluation: whole games played with frozen weights.

Takes an engine, a policy and a number of games; gives their scores, with what they depend on.
Knows no learner: the weights are whatever the policy acts with.

Exactly that many games are started and every started game is played to its end. Stopping at the
first so many *finished* games would favour short ones. A limit on agent steps has that fault too:
where a protocol asks for one, the games that it cut are counted and reported.
"""

from __future__ import annotations

import math
import statistics
import time
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from .. import engines
from ..carried import columns_of
from ..engines.interface import Engine
from ..errors import RefusedError
from ..interfaces import Policy
from ..random import Choice
from ..records import EpisodeEnd, Slot
from ..samplers import LockstepSampler


class EvaluatedPolicy(Policy, Protocol):
    """A policy with frozen weights that says how it plays."""

    @property
    def choice(self) -> Choice:
        """How it chooses actions."""

    @property
    def agent_steps(self) -> int:
        """Agent steps of the run: where its schedules stand."""


@dataclass(frozen=True, kw_only=True)
class EvaluationScores:
    """Scores of an evaluation, in the order in which its games were started."""

    scores: tuple[float, ...]
    lengths_agent_steps: tuple[int, ...]
    seconds: float
    num_unfinished: int = 0
    """Games that a limit on agent steps cut; they have no score."""
    agent_steps: int
    """Agent steps of the run that was evaluated: where its schedules stood."""
    actions: str
    """How actions were chosen: sampled as in training, greedy, or greedy with an epsilon."""
    engine: str
    """The engine with its version; of our own emulator a fingerprint of its sources."""

    @property
    def mean(self) -> float:
        """No number where no game was finished."""
        return statistics.fmean(self.scores) if self.scores else math.nan

    @property
    def deviation(self) -> float:
        """Sample standard deviation; 0 for a single game."""
        return statistics.stdev(self.scores) if len(self.scores) > 1 else 0.0

    def sentence(self) -> str:
        cut = f", {self.num_unfinished} more not finished" if self.num_unfinished else ""
        about = (
            f"after {self.agent_steps:,} agent steps, actions {self.actions}, "
            f"engine {self.engine} ({self.seconds:.1f} s)"
        )
        if not self.scores:
            return f"no game finished{cut}; {about}"
        low, high = min(self.scores), max(self.scores)
        return (
            f"{len(self.scores)} games: mean {self.mean:.2f}, deviation {self.deviation:.2f}, "
            f"lowest {low:g}, highest {high:g}{cut}; {about}"
        )

    def record(self) -> dict[str, Any]:
        """Plain figures for a log: equal runs give equal ones, so no seconds."""
        mean = self.mean if self.scores else None
        figures = {"mean": mean, "deviation": self.deviation, **asdict(self)}
        del figures["seconds"]
        return {name: list(v) if isinstance(v, tuple) else v for name, v in figures.items()}


def play_games(
    engine: Engine,
    policy: EvaluatedPolicy,
    *,
    num_games: int = 0,
    most_agent_steps: int = 0,
    seed: int,
) -> EvaluationScores:
    """Plays the first `num_games` games that the engine's environments start, each to its end.

    `most_agent_steps` of all games together end the evaluation too. Either limit is none at 0.
    """
    if num_games < 1 and most_agent_steps < 1:
        raise RefusedError("An evaluation needs a number of games or of agent steps.")
    started, num_envs = time.perf_counter(), engine.settings.num_envs
    most_games, most_steps = num_games or math.inf, most_agent_steps or math.inf
    carried = columns_of(policy)
    sampler = LockstepSampler(engine, seed, carried=carried)
    sampler.reset()
    slot = Slot.allocate(engine.spaces, 1, num_envs, {}, carried)
    finished: dict[int, EpisodeEnd] = {}
    agent_steps = num_ended = 0
    while len(finished) < most_games and agent_steps < most_steps:
        sampler.collect(policy, into=slot)
        agent_steps += num_envs
        ends = sampler.drain_episodes()
        num_ended += len(ends)
        finished |= {end.started_at: end for end in ends if end.started_at < most_games}
    games = [finished[number] for number in sorted(finished)]
    return EvaluationScores(
        scores=tuple(game.score for game in games),
        lengths_agent_steps=tuple(game.length_agent_steps for game in games),
        seconds=time.perf_counter() - started,
        num_unfinished=int(min(most_games, num_ended + num_envs)) - len(games),
        agent_steps=policy.agent_steps,
        actions=str(policy.choice),
        engine=engines.version(engine.name),
    )
