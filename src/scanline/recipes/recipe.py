"""A recipe: one way to train, as a row of data with a choice per concept.

Takes settings of every part; gives a frozen tree that can be copied with some of them changed.
Knows how no part works inside: `training` turns a row into parts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from .. import settings
from ..algorithms import ActorCritic, CategoricalDqn, Dqn, Ppo, Vtrace
from ..interfaces import Algorithm
from ..parameters import Alone, CentralSettings, OptimiserSettings
from ..records import Spaces
from ..runners import concurrent
from ..runners.alternate import Alternate
from ..runners.concurrent import Concurrent
from ..runners.free_running import FreeRunning
from ..runs.evaluating import EvaluationSettings
from ..samplers import DynamicSettings, SamplingSettings
from ..schedules import Schedule
from ..stores import ReplaySettings, RolloutSettings, SegmentSettings, WindowSettings

Network = str | Callable[[Spaces], torch.nn.Module]


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """One way to train: a choice for every concept."""

    name: str
    """What it is called."""
    summary: str
    """One sentence for `scanline list recipes`."""
    algorithm: Algorithm
    network: Network = "nature"
    """Name of a network (`scanline list networks`), or a function from spaces to a module."""
    conv_gradient_scale: float = 1.0
    """Factor on the gradient that a dueling head sends into the convolutions."""
    protocol: str = "baselines"
    """What one agent step means (`scanline list protocols`)."""
    optimiser: OptimiserSettings
    sampling: SamplingSettings | DynamicSettings = field(default_factory=SamplingSettings)
    store: RolloutSettings | WindowSettings | ReplaySettings | SegmentSettings = field(
        default_factory=RolloutSettings
    )
    pace: Alternate | Concurrent | FreeRunning = field(default_factory=Alternate)
    exchange: Alone | CentralSettings = field(default_factory=Alone)
    """Whether several learners share the weights, and how."""
    evaluation: EvaluationSettings = field(default_factory=EvaluationSettings)
    agent_steps: int = 10_000_000
    """Agent steps of a whole run."""
    source: str = ""
    """Where it was found, a name or a file; empty for one made in Python."""
    source_sha256: str = ""
    """SHA-256 of that file, as it was run; empty where the source is no file."""

    def __post_init__(self) -> None:
        settings.check_unique(self)
        if not isinstance(self.algorithm, Algorithm):
            raise TypeError(
                f"algorithm={self.algorithm!r} lacks functions of an algorithm; derive it from "
                "scanline.algorithms.Defaults and write `loss`."
            )
        self._check_store()
        self._check_resets()
        if isinstance(self.algorithm, Dqn | CategoricalDqn):
            self._check_values()
        if isinstance(self.pace, Concurrent):
            self._check_blocks(self.pace)
        if isinstance(self.exchange, CentralSettings):
            self._check_central(self.exchange)
        self._check_free_running()

    def _check_store(self) -> None:
        """Sequences come from a window; what is prepared once per rollout must not go into one."""
        window = isinstance(self.store, WindowSettings)
        if isinstance(self.algorithm, Vtrace) and not window:
            raise ValueError(
                "Vtrace learns from sequences, which a rollout store does not give; "
                "use store=WindowSettings(...)."
            )
        if isinstance(self.algorithm, (ActorCritic, Ppo)) and window:
            raise ValueError(
                f"{type(self.algorithm).__name__} knows nothing of older policies, whose steps a "
                "window holds; use store=RolloutSettings(...), or the algorithm Vtrace."
            )

    def _check_resets(self) -> None:
        """Steps that were not played can be left out of a rollout only."""
        mode = self.sampling.reset_mode
        if mode == "hold" and not isinstance(self.store, RolloutSettings):
            raise ValueError(
                "reset_mode='hold' leaves steps without a game, which only a rollout can leave "
                "out; use reset_mode='reserve' or 'inline'."
            )
        if mode != "inline" and isinstance(self.pace, Concurrent):
            raise ValueError(
                f"reset_mode={mode!r} needs a pause after every rollout, which blocks of "
                "target_agent_steps do not have; use reset_mode='inline'."
            )

    def _check_values(self) -> None:
        if not isinstance(self.store, ReplaySettings):
            raise ValueError(
                f"{type(self.algorithm).__name__} learns from pairs of observations, which a "
                "rollout does not give; use store=ReplaySettings(...)."
            )
        if not self.pace.target_agent_steps:
            raise ValueError(
                f"{type(self.algorithm).__name__} needs a target network, but "
                "target_agent_steps=0 keeps none; 10000 is usual."
            )

    def _check_blocks(self, pace: Concurrent) -> None:
        if not isinstance(self.store, ReplaySettings) or isinstance(self.sampling, DynamicSettings):
            raise ValueError(
                "Learning beside playing needs steps that stay; use store=ReplaySettings(...), or "
                "pace=Alternate() with a rollout."
            )
        if getattr(self.algorithm, "normalise_pixels", False):
            raise ValueError(
                "normalise_pixels counts pixels while the replay stands still for a block; use "
                "normalise_pixels=False, or pace=Alternate(...)."
            )
        concurrent.check(pace, self.sampling, self.store)

    def _check_free_running(self) -> None:
        """Dynamic sampling, segments and the free-running pace belong together."""
        sampling, store, pace = self.sampling, self.store, self.pace
        kinds = (
            isinstance(sampling, DynamicSettings),
            isinstance(store, SegmentSettings),
            isinstance(pace, FreeRunning),
        )
        if not any(kinds):
            return
        if not (
            isinstance(sampling, DynamicSettings) and isinstance(store, SegmentSettings)
        ) or not (isinstance(pace, FreeRunning) and isinstance(self.algorithm, ActorCritic)):
            raise ValueError(
                "Agents that nobody waits for need all of sampling=DynamicSettings(...), "
                "store=SegmentSettings(...), pace=FreeRunning(...) and the algorithm ActorCritic."
            )
        if isinstance(self.exchange, CentralSettings):
            raise ValueError(
                "A free-running recipe shares its weights with no other learner; "
                "use exchange=Alone()."
            )
        sampling.check(store)

    def _check_central(self, exchange: CentralSettings) -> None:
        if isinstance(self.pace, Concurrent):
            raise ValueError(
                "Learners of a central store take turns of their own; use pace=Alternate() with "
                "CentralSettings."
            )
        if isinstance(self.store, WindowSettings):
            raise ValueError(
                "A central store was built for rollouts and replays; use store=RolloutSettings(...)"
                " or ReplaySettings(...)."
            )
        if getattr(self.algorithm, "normalise_pixels", False):
            raise ValueError(
                "normalise_pixels keeps statistics that learners of a central store do not share; "
                "use normalise_pixels=False."
            )
        if getattr(self.algorithm, "separate_losses", False):
            raise ValueError(
                "A central store holds the weights once, for one optimiser; use "
                "separate_losses=False."
            )
        if self.sampling.reset_mode != "inline":
            raise ValueError(
                "Learners of a central store start new games at once; use reset_mode='inline'."
            )
        if exchange.rule == "multi-step-adam" and self.optimiser.kind != "adam":
            raise ValueError(
                f"rule='multi-step-adam' needs kind='adam', not {self.optimiser.kind!r}."
            )

    def schedules(self, agent_steps: int = 0) -> tuple[Algorithm, Schedule]:
        """All that depends on a run's length: the algorithm with its schedules, and the learning
        rate, for a run of so many agent steps; 0 for the recipe's own."""
        span = agent_steps or self.agent_steps
        rate = self.optimiser.schedule(span, self.sampling.num_envs)
        return self.algorithm.spanning(span), rate

    @property
    def span_agent_steps(self) -> int | None:
        """Agent steps over which schedules are stretched; None where none spans the run."""
        same = self.schedules() == self.schedules(2 * self.agent_steps)
        return None if same else self.agent_steps

    def replace(self, **changes: Any) -> Recipe:
        """A copy with settings of any part changed by name."""
        return settings.override(self, changes)
