"""The model behind `train --plan`: rates in, agent steps per second out.

Takes `Rates` of one learner and the `Work` of a plan; gives steps per second and where the time
goes. Knows no machine, no part and no file: every line is arithmetic that can be done by hand.

What it leaves out: games grow longer or harder as a policy learns, a full replay misses caches,
learners wait for each other, checkpoints and evaluations take their time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .rates import Rates


@dataclass(frozen=True, kw_only=True)
class Work:
    """What one learner does per rollout, and what it shares."""

    num_envs: int
    rollout_agent_steps: int
    """Agent steps of every environment per rollout."""
    updates: float
    """Updates per rollout."""
    batch_agent_steps: int
    """Agent steps that an update sees."""
    num_groups: int = 1
    """Groups of environments that are decided for one after the other."""
    side_by_side: int = 0
    """Threads that use the network at the same time as environments are stepped; 0: by turns."""
    num_cores: int = 1
    """Cores that all threads of this learner share."""
    network_cores: int = 1
    """Cores that one decision or update uses."""
    shares_cores: bool = True
    """Whether the network runs on the cores of the environments, and not on a device."""
    num_learners: int = 1
    """Learners that do this work at the same time, each with its own cores."""

    @property
    def agent_steps(self) -> int:
        """Of a rollout."""
        return self.num_envs * self.rollout_agent_steps


@dataclass(frozen=True)
class Prediction:
    """What a run will reach."""

    agent_steps_per_second: float
    """Of all learners."""
    seconds: Mapping[str, float]
    """Of one rollout: environment, acting, learning, other. Where parts run at the same time they
    add up to more than the rollout takes."""

    @property
    def limit(self) -> str:
        """The part that takes longest."""
        return max(self.seconds, key=lambda part: self.seconds[part])


def predicted(rates: Rates, work: Work) -> Prediction:
    """How fast a run goes whose parts have these rates."""
    calls = work.rollout_agent_steps * work.num_groups
    rows = work.num_envs / work.num_groups
    if work.side_by_side:  # agents are served as they come: in about so many batches
        calls, rows = calls * work.side_by_side, rows / work.side_by_side
    seconds = {
        "environment": work.rollout_agent_steps * rates.environment.at(work.num_envs),
        "acting": calls * rates.acting.at(rows),
        "learning": work.updates * rates.learning.at(work.batch_agent_steps),
        "other": rates.other.at(work.agent_steps),
    }
    rollout = _together(seconds, work)
    return Prediction(work.num_learners * work.agent_steps / rollout, seconds)


def _together(seconds: Mapping[str, float], work: Work) -> float:
    """Seconds of a rollout: parts one after the other, or at the same time."""
    playing, network = seconds["environment"], seconds["acting"] + seconds["learning"]
    if work.side_by_side and work.shares_cores:  # no core is ever idle
        busy = playing + network * work.network_cores / work.num_cores
        return busy + seconds["other"] / work.num_cores
    if work.side_by_side:
        return max(playing, network)
    if work.num_groups > 1 and not work.shares_cores:  # one group plays while another is decided
        return max(playing, seconds["acting"]) + seconds["learning"] + seconds["other"]
    return playing + network + seconds["other"]
