"""The free-running pace: agents, predictors and trainers around one model, as in GA3C.

Takes a dynamic sampler, a segment queue, published weights and an algorithm; threads act and learn
side by side until told to stop, and the session is told what they did.
Knows no algorithm, engine or file by name.

Predictors serve whatever agents wait, trainers learn from whatever segments are there, and nobody
waits for a round to end. The main thread only counts, shows, saves and adjusts. The first error of
a thread ends the run; closing the queues wakes all others.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch

from ..acting import NetworkPolicy
from ..interfaces import Algorithm
from ..networks import share_cores_here
from ..parameters import Published, named
from ..processes import granted_cores
from ..records import Slot, State
from ..runs.clock import ACTING, ENVIRONMENT, LEARNING, OTHER
from ..runs.controller import Controller, ControllerSettings, Counts
from ..runs.lags import Lags
from ..runs.leader import LeaderRun
from ..samplers import DynamicSampler
from ..stores import SegmentQueue
from ..threads import Heartbeats, StuckError, WorkerThreads, heartbeat

_TURN_SECONDS = 0.1
_PATIENCE_SECONDS = 0.1
_RECEIVE_SECONDS = 0.02

RECEIVER, PREDICTOR, TRAINER = "receiver", "predictor", "trainer"
RUN = "run"


@dataclass(frozen=True, kw_only=True)
class FreeRunning:
    """Acting and learning at the same time, each as fast as it can."""

    num_predictors: int = 2
    """Threads that decide for waiting agents."""
    num_trainers: int = 2
    """Threads that learn from segments."""
    start_agents: int = 0
    """Agents that act at first; 0 for all of them."""
    torn_reads: bool = False
    """GA3C's lock-free mode: weights may be read while they are written."""
    silent_seconds: float = 300.0
    """Seconds without a sign of life after which a thread counts as stuck and the run ends."""
    controller: ControllerSettings = field(default_factory=ControllerSettings)
    target_agent_steps: ClassVar[int] = 0

    def __post_init__(self) -> None:
        if self.num_predictors < 1 or self.num_trainers < 1 or self.start_agents < 0:
            raise ValueError(
                f"num_predictors={self.num_predictors} and num_trainers={self.num_trainers} must "
                f"be at least 1, start_agents={self.start_agents} at least 0."
            )


@dataclass(frozen=True, kw_only=True)
class Works:
    """The parts that run freely."""

    sampler: DynamicSampler
    store: SegmentQueue
    algorithm: Algorithm
    published: Published
    learning_rate: Callable[[int], float]
    """Of agent steps."""


@dataclass
class Tally:
    """What trainers did since the last look."""

    updates: int = 0
    learned_agent_steps: int = 0
    lags: Lags = field(default_factory=Lags)
    sums: dict[str, tuple[float, int]] = field(default_factory=dict)

    def add(self, metrics: Mapping[str, Any]) -> None:
        for name, value in metrics.items():
            total, count = self.sums.get(name, (0.0, 0))
            if name.startswith("charts/"):
                total, count = 0.0, 0
            self.sums[name] = (total + float(value), count + 1)

    def means(self) -> dict[str, float]:
        return {name: total / count for name, (total, count) in self.sums.items()}


class FreeRun:
    """All threads of a run; used by the main thread."""

    def __init__(self, parts: Works, pace: FreeRunning, seed: int) -> None:
        self.parts, self.pace = parts, pace
        most = parts.sampler.settings.num_groups
        agents = min(pace.start_agents or most, most)
        start = Counts(agents, pace.num_predictors, pace.num_trainers)
        self.controller = Controller(pace.controller, start, most, self._set, seed)
        self.lags = Lags()
        """Of the whole run."""
        self.batch_sizes = Lags()
        """Environments per inference, of the whole run."""
        self.queue_sizes = Lags()
        """Segments that waited for a trainer, at the looks of the main thread."""
        self._threads = WorkerThreads(pace.silent_seconds, share_cores_here)
        self._heartbeats = Heartbeats[str](pace.silent_seconds)
        self._tally, self._tallying = Tally(), threading.Lock()
        self._updates = itertools.count()
        self._seen = Seen()

    def start(self) -> None:
        """Starts the games and the threads."""
        self.parts.sampler.begin(self.controller.counts.agents)
        self._seen = Seen.of(self.parts)
        self._heartbeats.beat(RUN)
        self._threads.repeat(RECEIVER, 1, lambda: self.parts.sampler.receive(_RECEIVE_SECONDS))
        self._set(self.controller.counts)

    def _set(self, counts: Counts) -> None:
        self.parts.sampler.let_act(counts.agents)
        self._threads.repeat(PREDICTOR, counts.predictors, self._predict)
        self._threads.repeat(TRAINER, counts.trainers, self._train)

    def turn(self, session: LeaderRun) -> None:
        """Waits a moment, then tells the session what happened meanwhile."""
        session.time_split.mark(OTHER)
        time.sleep(_TURN_SECONDS)
        self._threads.check()
        self._tell(session)
        self._refuse_standstill()
        self.controller.tick(session.time_split.training_seconds(), session.progress.updates)

    def _predict(self) -> None:
        """One inference for whoever waits."""
        sampler, published = self.parts.sampler, self.parts.published
        groups = sampler.waiting(_PATIENCE_SECONDS)
        if not groups:
            return
        with published.reading() as snapshot:
            policy = NetworkPolicy(self.parts.algorithm, lambda: (snapshot.views, snapshot.version))
            sampler.serve(groups, policy, sampler.agent_steps, waiting=heartbeat)
        with self._tallying:
            self.batch_sizes.add({len(groups) * sampler.settings.envs_per_agent: 1})

    def _train(self) -> None:
        """One update, once there is enough to learn from."""
        slot = self.parts.store.joined(_PATIENCE_SECONDS)
        if slot is None:
            return
        agent_steps = self.parts.sampler.agent_steps
        rate = self.parts.learning_rate(agent_steps)
        with self.parts.published.reading() as snapshot:
            with torch.no_grad():
                experience = self.parts.algorithm.prepare(snapshot.views, slot)
            batch = self.parts.store.batch(experience, agent_steps, next(self._updates))
            result = self.parts.algorithm.loss(snapshot.views, batch)
            norms, before = self.parts.published.apply(
                result.losses, snapshot, rate, experience.state
            )
        self._note(slot, before, {**result.metrics, **named(norms), "charts/learning_rate": rate})

    def _note(self, slot: Slot, updates_before: int, metrics: Mapping[str, Any]) -> None:
        with self._tallying:
            self._tally.updates += 1
            self._tally.learned_agent_steps += slot.actions.numel()
            self._tally.lags.note(updates_before - slot.version)
            self._tally.add(metrics)

    def _tell(self, session: LeaderRun) -> None:
        with self._tallying:
            tally, self._tally = self._tally, Tally()
        self.lags.add(tally.lags.counts)
        now = Seen.of(self.parts)
        self.queue_sizes.add({now.segments: 1})
        new_steps = now.agent_steps - self._seen.agent_steps
        metrics = {
            **tally.means(),
            **tally.lags.metrics(),
            **now.metrics(self._seen, self.controller.counts),
        }
        session.log_rates(now.rates(self._seen, self.controller.counts))
        session.time_split.share(now.split_seconds(self._seen, self.controller.counts))
        if new_steps or tally.updates:
            self._heartbeats.beat(RUN)
        self._seen = now
        ends = self.parts.sampler.drain_episodes()
        session.report(new_steps, tally.updates, metrics, ends)

    def _refuse_standstill(self) -> None:
        """Threads may all be alive and wait for one another, or for a step that never comes."""
        if self._heartbeats.silent([RUN]):
            raise StuckError(
                f"Neither a step nor an update for {self._heartbeats.patience_seconds:g} seconds: "
                f"{self._cause()}"
            )

    def _cause(self) -> str:
        """What all threads wait for, and what there is of it."""
        sampler, store, seen = self.parts.sampler, self.parts.store, self._seen
        under_way, active = sampler.num_under_way, self.controller.counts.agents
        if seen.segments >= store.num_joined:
            cause = f"the trainers take none of {seen.segments} segments, enough for an update"
        elif seen.requests:
            cause = f"the predictors decide for none of {seen.requests} waiting agents"
        else:
            cause = f"the engine finishes no step of the {under_way} agents that it has"
        return (
            f"{cause}. Of {active} agents {under_way} are in the engine and {seen.requests} wait "
            f"for a decision; of the {store.num_joined} segments that an update needs "
            f"{seen.segments} are there."
        )

    def close(self) -> None:
        """Ends all threads; may be called twice."""
        self.parts.sampler.close()
        self._threads.close()

    def state(self) -> State:
        return {"sampler": self.parts.sampler.state(), "controller": self.controller.state()}

    def load(self, state: State) -> None:
        self.parts.sampler.load(state["sampler"])
        self.controller.load(state["controller"])


@dataclass(frozen=True)
class Seen:
    """Counters at one moment, for rates between two of them."""

    clock_seconds: float = 0.0
    agent_steps: int = 0
    predictions: int = 0
    inferences: int = 0
    agent_wait_seconds: float = 0.0
    predictor_wait_seconds: float = 0.0
    trainer_wait_seconds: float = 0.0
    full_wait_seconds: float = 0.0
    requests: int = 0
    segments: int = 0

    @classmethod
    def of(cls, parts: Works) -> Seen:
        sampler, store = parts.sampler, parts.store
        return cls(
            time.monotonic(),
            sampler.agent_steps,
            sampler.num_predictions,
            sampler.num_inferences,
            sampler.wait_seconds,
            sampler.requests.take_seconds,
            store.full.take_seconds,
            store.full.put_seconds,
            len(sampler.requests),
            len(store.full),
        )

    def split_seconds(self, before: Seen, counts: Counts) -> dict[str, float]:
        """What busy threads did since then; what they left of the cores went to environments."""
        seconds = self.clock_seconds - before.clock_seconds
        waited = self.predictor_wait_seconds - before.predictor_wait_seconds
        starved = self.trainer_wait_seconds - before.trainer_wait_seconds
        acting = max(0.0, counts.predictors * seconds - waited)
        learning = max(0.0, counts.trainers * seconds - starved)
        left = max(0.0, granted_cores() * seconds - acting - learning)
        return {ACTING: acting, LEARNING: learning, ENVIRONMENT: left}

    def metrics(self, before: Seen, counts: Counts) -> dict[str, float]:
        """Batches since then, and what waits now, under the names of the log."""
        inferences = self.inferences - before.inferences
        return {
            "perf/prediction_batch": (self.predictions - before.predictions) / max(inferences, 1),
            "perf/prediction_queue": float(self.requests),
            "perf/training_queue": float(self.segments),
            "charts/agents": float(counts.agents),
            "charts/predictors": float(counts.predictors),
            "charts/trainers": float(counts.trainers),
        }

    def rates(self, before: Seen, counts: Counts) -> dict[str, float]:
        """What depends on the clock: rates and waits since then, under the names of the log."""
        seconds = max(self.clock_seconds - before.clock_seconds, 1e-9)
        predictions = self.predictions - before.predictions
        agent_wait = self.agent_wait_seconds - before.agent_wait_seconds
        predictor_wait = self.predictor_wait_seconds - before.predictor_wait_seconds
        trainer_wait = self.trainer_wait_seconds - before.trainer_wait_seconds
        return {
            "perf/predictions_per_second": predictions / seconds,
            "perf/agent_wait_seconds": agent_wait / max(predictions, 1),
            "perf/predictor_idle_share": predictor_wait / seconds / counts.predictors,
            "perf/trainer_idle_share": trainer_wait / seconds / counts.trainers,
            "perf/full_queue_share": (self.full_wait_seconds - before.full_wait_seconds) / seconds,
        }
