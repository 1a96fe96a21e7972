"""A recipe: one way to train, as a row of data with a choice per concept.

Takes settings of every part; gives a frozen tree that can be copied with some of them changed.
Knows how no part works inside: `training` turns a row into parts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from .. import networks, settings
from ..choices import ExchangeSettings, PaceSettings, SamplerSettings, StoreSettings
from ..interfaces import Algorithm
from ..parameters import Alone, RateSettings
from ..protocols import Protocol
from ..records import Spaces
from ..runners.synchronous import Alternate
from ..runs.evaluating import EvaluationSettings
from ..samplers import SamplingSettings
from ..schedules import Schedule
from ..stores import RolloutSettings
from . import fit

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
    protocol: str | Protocol = "baselines"
    """What one agent step means: a name (`scanline list protocols`), or rules of your own."""
    optimiser: RateSettings
    """How gradients become steps: `OptimiserSettings`, `TorchSettings` or your own."""
    sampling: SamplerSettings = field(default_factory=SamplingSettings)
    store: StoreSettings = field(default_factory=RolloutSettings)
    pace: PaceSettings = field(default_factory=Alternate)
    exchange: ExchangeSettings = field(default_factory=Alone)
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
        if not isinstance(self.algorithm, Algorithm):  # a user may have forgotten the base class
            raise TypeError(
                f"algorithm={self.algorithm!r} lacks functions of an algorithm; derive it from "
                "scanline.algorithms.Defaults and write `loss`."
            )
        self.check_fit(networks.has_memory(self.network))
        self.pace.check(self.sampling, self.store)

    def check_fit(self, has_memory: bool) -> None:
        """Refuses choices that do not fit together, or not with a network that carries a state."""
        choices = (self.pace, self.exchange, self.sampling, self.store, self.algorithm)
        memory = (fit.Memory(),) if has_memory else ()
        fit.refuse_unmet_needs((*choices, self.optimiser, *memory))

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
