"""What surrounds the parts of a loop: time marks, turns that can be left, reuse, instruments.

Takes parts and what is wanted around them; gives parts with the same methods, so that the loop has
no line for any of it. Knows no algorithm, engine or file by name.

A turn is one rollout with its updates. It can be left between two updates, and gone on with after
a resume: the store gives the batches that are left.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor

from ..carried import Carried
from ..interfaces import Algorithm, Metric, Parts, Policy, Run, Store
from ..networks import ActivationCache
from ..records import Acted, Batch, EpisodeEnd, Experience, LossResult, Slot, Views
from .clock import ENVIRONMENT, LEARNING, OTHER, TimeSplit
from .instruments import Instruments
from .progress import Progress


class LeavableRun(Run, Protocol):
    """A run whose turns can be left between two updates."""

    progress: Progress
    time_split: TimeSplit
    drain_episodes: Callable[[], Sequence[EpisodeEnd]]
    """Games finished since the last call: the loop's sampler's."""

    def log(self, metrics: Mapping[str, Metric]) -> None:
        """Keeps metrics that belong to no update."""

    def breaks_off(self) -> bool:
        """Whether a turn has to be left where it is."""


class Wrapper:
    """Every attribute of the part inside, but for what a subclass defines."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class TurnStore(Wrapper):
    """A store that begins a turn with its slot, and leaves it when the run asks for it."""

    def __init__(self, inner: Store, run: LeavableRun, log_intensity: bool) -> None:
        super().__init__(inner)
        self._run, self._log_intensity = run, log_intensity

    def slot(self) -> Slot:
        into: Slot = self._inner.slot()
        into.agent_steps = self._run.progress.begin_turn().began_at
        return into

    def put(self, experience: Experience) -> None:
        self._inner.put(experience)
        turn = self._run.progress.begin_turn()
        turn.collected_agent_steps = experience.slot.actions.numel()

    def batches(self) -> Iterator[Batch]:
        run, turn = self._run, self._run.progress.begin_turn()
        run.time_split.mark(LEARNING)
        for batch in self._inner.batches():
            yield batch
            turn.learned_agent_steps += len(batch.actions)
            if self._inner.owes and run.breaks_off():
                return
        turn.is_done = True
        if self._log_intensity:
            intensity = turn.learned_agent_steps / turn.collected_agent_steps
            run.log({"perf/training_intensity": intensity})
        run.time_split.mark(OTHER)


class TimedAlgorithm(Wrapper):
    """Preparing a rollout is learning's time, and needs no gradient."""

    def __init__(self, inner: Algorithm, time_split: TimeSplit) -> None:
        super().__init__(inner)
        self._time_split = time_split

    def prepare(self, views: Views, slot: Slot) -> Experience:
        self._time_split.mark(LEARNING)
        with torch.no_grad():
            experience: Experience = self._inner.prepare(views, slot)
        return experience


class ReusingStore(Wrapper):
    """A new rollout: what was computed for the last one is of no use any more."""

    def __init__(self, inner: Store, cache: ActivationCache) -> None:
        super().__init__(inner)
        self._cache = cache

    def slot(self) -> Slot:
        self._cache.start_rollout()
        into: Slot = self._inner.slot()
        return into


class ReusingPolicy(Wrapper):
    """Acts, and keeps what the network has computed."""

    def __init__(self, inner: Policy, cache: ActivationCache) -> None:
        super().__init__(inner)
        self._cache = cache

    def __call__(
        self,
        observations: Tensor,
        uniforms: Tensor,
        agent_steps: int,
        carried: Carried | None = None,
    ) -> Acted:
        with self._cache.writing():
            acted: Acted = self._inner(observations, uniforms, agent_steps, carried)
        return acted


class ReusingAlgorithm(Wrapper):
    """Learns from what the network has computed while it acted."""

    def __init__(self, inner: Algorithm, cache: ActivationCache) -> None:
        super().__init__(inner)
        self._cache = cache

    def prepare(self, views: Views, slot: Slot) -> Experience:
        with self._cache.writing():
            experience: Experience = self._inner.prepare(views, slot)
        return experience

    def loss(self, views: Views, batch: Batch) -> LossResult:
        with self._cache.reading():
            result: LossResult = self._inner.loss(views, batch)
        return result


class MeasuredAlgorithm(Wrapper):
    """Adds the angle between the gradients of half a batch and of all of it, at its updates."""

    def __init__(self, inner: Algorithm, instruments: Instruments) -> None:
        super().__init__(inner)
        self._instruments = instruments

    def loss(self, views: Views, batch: Batch) -> LossResult:
        result: LossResult = self._inner.loss(views, batch)
        cosine = self._instruments.cosine_at(views, batch, result, self._inner.loss)
        return dataclasses.replace(result, metrics={**result.metrics, **cosine})


def reusing(parts: Parts, cache: ActivationCache) -> Parts:
    """Parts that go forward once where a rollout is learned from whole and at once."""
    if not cache.capacity_rows:
        return parts
    return dataclasses.replace(
        parts,
        policy=ReusingPolicy(parts.policy, cache),
        store=ReusingStore(parts.store, cache),
        algorithm=ReusingAlgorithm(parts.algorithm, cache),
    )


def measured(parts: Parts, instruments: Instruments) -> Parts:
    """Parts whose updates are measured, where that is asked for."""
    if not instruments.settings.cosine_every_updates:
        return parts
    algorithm = MeasuredAlgorithm(parts.algorithm, instruments)
    return dataclasses.replace(parts, algorithm=algorithm)


def in_turns(parts: Parts, run: LeavableRun, log_intensity: bool = False) -> Parts:
    """Parts whose turns can be left and gone on with, and whose time is split."""
    return dataclasses.replace(
        parts,
        store=TurnStore(parts.store, run, log_intensity),
        algorithm=TimedAlgorithm(parts.algorithm, run.time_split),
    )


class InBlocks(Wrapper):
    """A run whose turns are blocks that several samplers play."""

    def begin_block(self) -> int:
        """Agent steps before the block that begins, or that goes on."""
        began_at: int = self._inner.progress.begin_turn().began_at
        return began_at

    def reached(self, agent_steps: int) -> None:
        """Counts the steps inside of a block."""
        self._inner.progress.agent_steps = agent_steps

    def spends(self, is_learning: bool) -> None:
        """The time from now on passes for learning, or for playing."""
        self._inner.time_split.mark(LEARNING if is_learning else ENVIRONMENT)

    def end_block(self, lag_updates: int, ends: Sequence[EpisodeEnd]) -> None:
        """Counts a whole block with the games that ended in it."""
        progress: Progress = self._inner.progress
        progress.log({"perf/policy_lag": float(lag_updates)})
        progress.count_episodes(ends)
        progress.begin_turn().is_done = True
