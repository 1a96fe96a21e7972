"""The free-running loop: threads that collect and threads that learn around one model, as in GA3C.

Takes parts whose sampler has agents in flight, whose store is a queue and whose parameters are
published; threads act and learn side by side until they are closed, and the run is given reports.
Knows no algorithm, engine or file by name. `FreeRunning` is the pace that runs it.

Predictors serve agents that wait and queue full segments, trainers learn from segments that are
there, and none of them waits for a round to end. The main thread only counts, shows, saves and
adjusts. The first error of a thread ends the run; closing the queues wakes all others.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Protocol, cast

import torch

from ..acting import NetworkPolicy
from ..interfaces import Metric, Parts, Run, RuntimeContext, Saved, Store
from ..networks import share_cores_here
from ..parameters import LocalParameters, Published
from ..records import Batch, EpisodeEnd, Experience, Slot, State, Views
from ..runs.clock import OTHER, TimeSplit
from ..runs.controller import Controller, ControllerSettings, Counts
from ..runs.lags import Lags
from ..runs.progress import Progress, mean, numbers
from ..runs.thread_counters import ThreadCounters
from ..runs.wrappers import Wrapper
from ..threads import Heartbeats, StuckError, WorkerThreads
from .synchronous import learn

_TURN_SECONDS = 0.1
_RECEIVE_SECONDS = 0.02

RECEIVER, PREDICTOR, TRAINER = "receiver", "predictor", "trainer"
RUN = "run"


class ReportedRun(Run, Protocol):
    """A run that is given reports of what threads did."""

    progress: Progress
    time_split: TimeSplit

    def report(
        self,
        num_agent_steps: int,
        num_updates: int,
        metrics: Mapping[str, Metric],
        ends: Sequence[EpisodeEnd],
    ) -> None: ...

    def log_rates(self, rates: Mapping[str, float]) -> None: ...


def loop(threads: FreeThreads, run: ReportedRun) -> None:
    while run.goes_on():
        run.time_split.mark(OTHER)
        time.sleep(_TURN_SECONDS)
        threads.check()
        threads.report(run)
        threads.adjust(run)


def collect(parts: Parts, run: Run) -> None:
    """One segment of one agent."""
    slot = parts.sampler.collect(parts.policy, into=parts.store.slot())
    experience = parts.algorithm.prepare(parts.parameters.read(), slot)
    parts.parameters.keep(experience.state)
    parts.store.put(experience)
    run.collected(slot)


@dataclass(frozen=True, kw_only=True)
class FreeRunning:
    """Acting and learning at the same time, each as fast as it can."""

    needs: ClassVar[frozenset[str]] = frozenset({"agents", "segments", "one learner"})
    gives: ClassVar[frozenset[str]] = frozenset({"free threads", "pauses", "running statistics"})

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
    target_rate: ClassVar[float] = 0.0
    staged_agent_steps: ClassVar[int] = 0
    acts_with_target: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.num_predictors < 1 or self.num_trainers < 1 or self.start_agents < 0:
            raise ValueError(
                f"num_predictors={self.num_predictors} and num_trainers={self.num_trainers} must "
                f"be at least 1, start_agents={self.start_agents} at least 0."
            )

    @property
    def num_network_threads(self) -> int:
        return self.num_predictors + self.num_trainers

    def num_samplers(self, num_envs: int) -> int:
        return 1

    def check(self, sampling: Any, store: Any) -> None:
        """Refuses a queue that can never hold what an update needs."""
        sampling.check(store)

    def build(self, context: RuntimeContext) -> FreeRuntime:
        return FreeRuntime(self, context)


class Tally:
    """What trainers did since the last report; a `Run` for threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._clear()

    def _clear(self) -> None:
        self._updates, self._lags = 0, Lags()
        self._values: defaultdict[str, list[Metric]] = defaultdict(list)

    def goes_on(self) -> bool:
        return True

    def collected(self, slot: Slot) -> None:
        """The sampler counts steps when it receives them."""

    def learned(self, lags: torch.Tensor) -> None:
        """Keeps the policy lag of every step of a batch, in updates."""
        with self._lock:
            self._lags.note(lags)

    def updated(self, metrics: Mapping[str, Metric], norms: Mapping[str, Metric]) -> None:
        with self._lock:
            self._updates += 1
            for name, value in {**metrics, **norms}.items():
                if name.startswith("charts/"):
                    self._values[name].clear()
                self._values[name].append(value)

    def taken(self) -> tuple[int, dict[str, float], Lags]:
        """Updates, means of their metrics, and lags, since the last call."""
        with self._lock:
            values, found = self._values, (self._updates, self._lags)
            self._clear()
        means = {name: mean(numbers(each)) for name, each in values.items()}
        return found[0], means, found[1]


class LearnedStore:
    """The segment queue, as `learn` sees it; notes the policy lag of what was learned from."""

    def __init__(self, store: Store, published: Published, tally: Tally) -> None:
        self.batches: Callable[[], Iterator[Batch]] = store.batches
        self._published, self._tally = published, tally

    def feedback(self, batch: Batch, priorities: torch.Tensor | None) -> None:
        self._tally.learned(self._published.applied_at - batch.columns["version"])


class PreparingAlgorithm(Wrapper):
    """Prepares a segment without gradient, and without rewards that the store hides."""

    def __init__(self, inner: Any, store: Any) -> None:
        super().__init__(inner)
        self._store = store

    def prepare(self, views: Views, slot: Slot) -> Experience:
        self._store.hide_terminal_rewards(slot)
        with torch.no_grad():
            experience: Experience = self._inner.prepare(views, slot)
        return experience


class FreeThreads:
    """All threads of a run; used by the main thread."""

    def __init__(self, parts: Parts, published: Published, pace: FreeRunning, seed: int) -> None:
        self.sampler, self.store = cast(Any, parts.sampler), cast(Any, parts.store)
        algorithm = PreparingAlgorithm(parts.algorithm, parts.store)
        policy = NetworkPolicy(algorithm, published.leased, poll=lambda _: published.read())
        self._tally = Tally()
        self._parts = replace(parts, parameters=published, algorithm=algorithm, policy=policy)
        learned = cast(Store, LearnedStore(parts.store, published, self._tally))
        self._learning = replace(self._parts, store=learned)
        most = self.sampler.settings.num_groups
        agents = min(pace.start_agents or most, most)
        start = Counts(agents, pace.num_predictors, pace.num_trainers)
        self.controller = Controller(pace.controller, start, most, self._set, seed)
        self.lags = Lags()
        """Of the whole run."""
        self.queue_sizes: Counter[int] = Counter()
        """Segments that waited for a trainer, at every report, to reports."""
        self._threads = WorkerThreads(pace.silent_seconds, share_cores_here)
        self._heartbeats = Heartbeats[str](pace.silent_seconds)
        self._reported = ThreadCounters.of(self.sampler, self.store)

    def start(self) -> None:
        """Starts the games and the threads."""
        self.sampler.start(self.store.slot, self.controller.counts.agents)
        self._reported = ThreadCounters.of(self.sampler, self.store)
        self._heartbeats.beat(RUN)
        self._threads.repeat(RECEIVER, 1, partial(self.sampler.receive, _RECEIVE_SECONDS))
        self._set(self.controller.counts)

    def _set(self, counts: Counts) -> None:
        self.sampler.let_act(counts.agents)
        collecting = partial(collect, self._parts, self._tally)
        self._threads.repeat(PREDICTOR, counts.predictors, collecting)
        self._threads.repeat(TRAINER, counts.trainers, partial(learn, self._learning, self._tally))

    def report(self, run: ReportedRun) -> None:
        """What happened since the last report."""
        updates, means, lags = self._tally.taken()
        self.lags.add(lags.counts)
        before, now = self._reported, ThreadCounters.of(self.sampler, self.store)
        counts, self._reported = self.controller.counts, now
        self.queue_sizes[now.segments] += 1
        new_steps = now.agent_steps - before.agent_steps
        run.log_rates(now.rates(before, counts))
        run.time_split.share(now.split_seconds(before, counts))
        if new_steps or updates:
            self._heartbeats.beat(RUN)
        metrics = {**means, **lags.metrics(), **now.metrics(before, counts)}
        run.report(new_steps, updates, metrics, self.sampler.drain_episodes())

    def adjust(self, run: ReportedRun) -> None:
        """Lets the controller change the numbers of agents and threads."""
        self.controller.tick(run.time_split.training_seconds(), run.progress.updates)

    def check(self) -> None:
        """Raises the error of a thread; refuses a standstill, in which all threads are alive and
        wait for one another, or for a step that never comes."""
        self._threads.check()
        if self._heartbeats.silent([RUN]):
            raise StuckError(
                f"Neither a step nor an update for {self._heartbeats.patience_seconds:g} seconds: "
                f"{self._cause()}"
            )

    def _cause(self) -> str:
        """What all threads wait for, and what there is of it."""
        now, joined = self._reported, self.store.num_joined
        under_way, active = self.sampler.num_under_way, self.controller.counts.agents
        if now.segments >= joined:
            cause = f"the trainers take none of {now.segments} segments, enough for an update"
        elif now.requests:
            cause = f"the predictors decide for none of {now.requests} waiting agents"
        else:
            cause = f"the engine finishes no step of the {under_way} agents that it has"
        return (
            f"{cause}. Of {active} agents {under_way} are in the engine and {now.requests} wait "
            f"for a decision; of the {joined} segments that an update needs {now.segments} are "
            "there."
        )

    def close(self) -> None:
        """Ends all threads; may be called twice."""
        self.sampler.close()
        self.store.close()
        self._threads.close()


class FreeRuntime:
    """Threads around one model; after a resume they play other games."""

    inexact = ("its agents, predictors and trainers do not wait for each other",)

    def __init__(self, pace: FreeRunning, context: RuntimeContext) -> None:
        self._pace, self._context, self._num_resumes = pace, context, 0
        learner = cast(LocalParameters, context.parts.parameters)
        self.published = Published(learner, pace.torn_reads)
        self.threads = FreeThreads(context.parts, self.published, pace, context.seed)

    def begin(self, is_resumed: bool) -> None:
        self.threads.start()

    def run(self, run: Run) -> None:
        loop(self.threads, cast(ReportedRun, run))

    def weights(self) -> tuple[Views, int]:
        self.published.read()
        return self.published.leased()

    def saved(self) -> Mapping[str, Saved]:
        return {"parameters": self.published, "agents": self}

    def note(self) -> Mapping[str, Any]:
        """Numbers of threads, histograms, and what the controller measured.

        The histograms: policy lag in updates to agent steps, environments of an inference to
        inferences, and segments that wait for a trainer to reports.
        """
        threads = self.threads
        return {
            **threads.controller.counts._asdict(),
            "policy_lag": dict(sorted(threads.lags.counts.items())),
            "prediction_batch": dict(sorted(threads.sampler.batch_sizes.items())),
            "training_queue": dict(sorted(threads.queue_sizes.items())),
            "controller": threads.controller.rows(),
        }

    def halt(self) -> None:
        self.threads.close()

    def close(self) -> None:
        self.threads.close()
        self._context.close()

    def state(self) -> State:
        threads = self.threads
        return {
            "num_resumes": self._num_resumes,
            "sampler": threads.sampler.state(),
            "store": threads.store.state(),
            "controller": threads.controller.state(),
        }

    def load(self, state: State) -> None:
        """Counts go on; an engine has new games, since those in play were not saved."""
        self._num_resumes = state["num_resumes"] + 1
        self._context = self._context.renewed(self._num_resumes)
        context = self._context
        self.threads = FreeThreads(context.parts, self.published, self._pace, context.seed)
        self.threads.sampler.load(state["sampler"])
        self.threads.store.load(state["store"])
        self.threads.controller.load(state["controller"])
