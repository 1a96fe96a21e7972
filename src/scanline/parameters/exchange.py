"""Exchanges: how learners share weights, as settings that build the parameters of one learner.

`Alone` keeps the weights in this process and averages gradients where there are several learners;
`CentralSettings` moves weights of a store that all learners share.
Knows no algorithm, engine or process.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol, cast

from torch import nn

from .learner import CentralParameters, shared_store
from .local import AllReduce, LocalParameters
from .optimisers import OptimiserSettings, RateSettings


class ExchangeContext(Protocol):
    """What an exchange builds the parameters of a learner from."""

    @property
    def network(self) -> nn.Module:
        """On the learner's device."""

    @property
    def optimiser(self) -> RateSettings: ...

    @property
    def learning(self) -> Mapping[str, Any]:
        """Clip, target, algorithm state, learning rate and instruments, as keywords."""

    @property
    def all_reduce(self) -> AllReduce | None:
        """Averages over the learners that divide a batch; None for a learner alone."""

    @property
    def central_fds(self) -> tuple[int, int] | None:
        """Shared memory and locks of the central store; None in the process that makes it."""


@dataclass(frozen=True, kw_only=True)
class Alone:
    """The weights are one learner's, or equal on all of them: gradients are averaged."""

    learners: int = 1
    """Processes that learn together: environments and batches are divided among them."""
    needs: ClassVar[frozenset[str]] = frozenset()
    gives: ClassVar[frozenset[str]] = frozenset(
        {"one learner", "late resets", "equal statistics", "several losses"}
    )
    is_central: ClassVar[bool] = False
    poll_steps: ClassVar[int] = 0

    def __post_init__(self) -> None:
        if self.learners < 1:
            raise ValueError(f"learners={self.learners} must be at least 1.")

    def build(self, context: ExchangeContext) -> LocalParameters:
        return LocalParameters(
            context.network, context.optimiser, all_reduce=context.all_reduce, **context.learning
        )


@dataclass(frozen=True, kw_only=True)
class CentralSettings:
    """How learners share one set of weights."""

    learners: int = 0
    """Learner processes on this machine, each with all of the environments; 0 for one per core that
    the system grants."""
    rule: Literal["chunks", "multi-step-adam"] = "chunks"
    """'chunks': every update moves the central weights; 'multi-step-adam': learners move their own
    with Adam and merge now and then."""
    num_chunks: int = 3
    """Parts of the parameters with a lock each."""
    sync_updates: int = 1
    """Updates of a learner between two merges of multi-step Adam; 1 to 4 in the paper."""
    poll_steps: int = 0
    """Steps of every environment between two looks at the central weights while acting; 0 for
    none: a learner sees them when it updates."""
    lock_seconds: float = 60.0
    """Longest wait for a lock before a learner counts as stuck, in seconds."""
    gives: ClassVar[frozenset[str]] = frozenset()
    is_central: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for name, least in (("learners", 0), ("num_chunks", 1), ("sync_updates", 1)):
            if getattr(self, name) < least:
                raise ValueError(f"{name}={getattr(self, name)} must be at least {least}.")
        if self.poll_steps < 0 or self.lock_seconds <= 0:
            raise ValueError(
                f"poll_steps={self.poll_steps} must not be negative and "
                f"lock_seconds={self.lock_seconds} must be above 0."
            )
        if self.rule == "chunks" and self.sync_updates != 1:
            raise ValueError(
                f"sync_updates={self.sync_updates} belongs to rule='multi-step-adam'; "
                "with 'chunks' every update is central."
            )

    @property
    def needs(self) -> frozenset[str]:
        adam = ("adam",) if self.rule == "multi-step-adam" else ()
        return frozenset({"turns", "central updates", "shared memory", *adam})

    def build(self, context: ExchangeContext) -> CentralParameters:
        network = context.network
        optimiser = cast(OptimiserSettings, context.optimiser)  # by the need of shared memory
        store = shared_store(network, optimiser, self, context.central_fds)
        learner = CentralParameters(network, optimiser, store, self, **context.learning)
        if learner.views.target is not None:
            learner.sync_target()
        return learner
