"""Learners with a central store: the processes of a run, and one learner's whole life.

Takes the context of a recipe with a central exchange; gives the `Runtime` of the parent, which owns
the store and listens. `learn` is what each process does.
Knows how parts are put together and nothing of how they work.

A learner is a small synchronous run of its own: engine, sampler, store and loop are those of every
recipe. Only its parameters know that there are others.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from .. import parameters
from ..interfaces import Saved
from ..parameters import CentralOwner
from ..processes import ParentLink
from ..records import State, Views
from ..runners import supervise
from ..runners.supervise import LearnerProcesses
from ..runs.clock import TimeSplit
from ..runs.garbage import frozen_garbage
from ..runs.leader import LeaderRun
from ..runs.reporting import LearnerStatistics, ReportingRun, SharedCounters, SupervisorRun
from . import learners
from .attachments import Attachments, Pause
from .context import Context, open_context, resumed
from .models import build_learner
from .placement import Place
from .plan import Plan


@dataclass(frozen=True)
class LearnerArguments:
    """What a learner process is started with, besides the plan."""

    place: Place
    num_resumes: int
    can_pause: bool
    store_fds: tuple[int, int]
    counters_fd: int


class CentralRuntime:
    """The parent of learners that do not wait for each other."""

    inexact = ("learners of a central store do not wait for each other",)

    def __init__(self, context: Context) -> None:
        self._plan, self._pause = context.plan, context.attachments.pause
        exchange, num = cast(Any, context.recipe.exchange), context.plan.learners
        owned = build_learner(context.plan, context.spaces, context.seed)
        self._store = parameters.shared_store(owned.network, cast(Any, context.optimiser), exchange)
        self._owner = CentralOwner(owned, self._store, exchange.lock_seconds)
        self._counters, self._workers = SharedCounters(num), LearnerProcesses(num)
        self._statistics = LearnerStatistics(num, context.plan.recipe.sampling.num_envs)
        self._num_resumes = 0

    def begin(self, is_resumed: bool) -> None:
        fds = (*self._store.fds, self._counters.shared.fd)
        learners.start(self._workers, learn, self._plan, self.arguments(), fds)

    def arguments(self) -> list[tuple[LearnerArguments]]:
        """Of every learner."""
        num, fds = self._workers.num_learners, (self._store.fds, self._counters.shared.fd)
        more = (self._num_resumes, self._pause is not None, *fds)
        return [(LearnerArguments(Place(rank, num), *more),) for rank in range(num)]

    def run(self, run: LeaderRun) -> None:
        supervise.loop(self, SupervisorRun(run, self._statistics))

    def reports(self) -> list[tuple[int, Any]]:
        """What learners have done since the last call."""
        if self._pause is not None:
            self._counters.pause(self._pause())
        return self._workers.reports()

    def weights(self) -> tuple[Views, int]:
        learner = self._owner.pull()
        return learner.views, learner.version

    def saved(self) -> Mapping[str, Saved]:
        return {"parameters": self._owner, "learners": self}

    def note(self) -> Mapping[str, Any]:
        """Histogram of the policy lag: updates to agent steps."""
        lags = self._statistics.lags.counts
        return {"learners": self._workers.num_learners, "policy_lag": dict(sorted(lags.items()))}

    def halt(self) -> None:
        self._counters.stop()
        self._workers.close()
        self._counters.shared.close_fd()

    def close(self) -> None:
        self.halt()
        self._store.free()

    def state(self) -> State:
        return {
            "agent_steps": self._counters.agent_steps.copy(),
            "num_resumes": self._num_resumes,
            "games": self._statistics.state(),
        }

    def load(self, state: State) -> None:
        """Counts go on; the games in play will never end, and new ones begin in their place."""
        total, counts = int(sum(state["agent_steps"])), self._counters.agent_steps
        counts[:] = total // len(counts)
        counts[0] += total % len(counts)
        self._num_resumes = state["num_resumes"] + 1
        self._statistics.load(state["games"])


class _SharedPause(Pause):
    """The pause of the parent, as a learner sees it."""

    def __init__(self, counters: SharedCounters) -> None:
        self._counters = counters

    def __call__(self) -> bool:
        return self._counters.is_paused


def learn(link: ParentLink, plan: Plan, arguments: LearnerArguments) -> None:
    """What a learner process does until the parent stops it."""
    place, time_split = arguments.place, TimeSplit()
    counters = SharedCounters(place.num_learners, arguments.counters_fd)
    pause = _SharedPause(counters) if arguments.can_pause else None
    context = open_context(
        resumed(plan, arguments.num_resumes),
        place=place,
        mark=time_split.mark,
        announce=lambda sentence: None,
        attachments=Attachments(pause=pause),
        central_fds=arguments.store_fds,
    )
    with closing(context):
        runtime = plan.recipe.pace.build(context)
        send = partial(link.answer, 0)
        run = ReportingRun(send, counters, place.rank, context.parameters, time_split)
        runtime.begin(is_resumed=False)
        link.answer(0)
        next(link.orders())
        with frozen_garbage():
            runtime.run(run)
