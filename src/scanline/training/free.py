"""Free-running recipes: a plan to agents, predictors and trainers around one model.

Takes a `Plan` whose pace is free-running; gives `FreeParts`, which a session runs like the parts of
any other recipe. Knows how parts are put together and nothing of how they work.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .. import acting, parameters, random, settings
from ..engines import Engine
from ..engines import build as build_engine
from ..interfaces import Saved
from ..parameters import Learners, LocalParameters, Published
from ..processes import granted_cores
from ..protocols import Protocol
from ..records import State
from ..runners.free_running import FreeRun, FreeRunning, Works
from ..runs.leader import LeaderRun
from ..samplers import DynamicSampler, DynamicSettings
from ..stores import SegmentQueue, SegmentSettings
from .assembly import Say, engine_settings, fitting, share_cores
from .attachments import Attachments, unless_paused
from .models import build_learner
from .plan import Plan
from .policies import policy_from


class Run:
    """The threads with their engine, which is built anew with other games after a resume."""

    def __init__(
        self, plan: Plan, engine: Engine, published: Published, attachments: Attachments
    ) -> None:
        self.plan, self.engine, self.published = plan, engine, published
        self._attachments, self._num_resumes = attachments, 0
        self.free = free_run(plan, engine, published, attachments)

    def state(self) -> State:
        return {"num_resumes": self._num_resumes, **self.free.state()}

    def load(self, state: State) -> None:
        self._num_resumes = state["num_resumes"] + 1
        seed = int(random.seeds(self.plan.run.seed, "resumed", [self._num_resumes])[0])
        self.engine.close()
        plan = settings.override(self.plan, {"seed": seed})
        self.engine = free_engine(plan, self._attachments)
        self.free = free_run(plan, self.engine, self.published, self._attachments)
        self.free.load(state)

    def close(self) -> None:
        self.free.close()
        self.engine.close()


def free_engine(plan: Plan, attachments: Attachments) -> Engine:
    return build_engine(plan.engine, engine_settings(plan, is_paused=attachments.pause))


def free_run(plan: Plan, engine: Engine, published: Published, attachments: Attachments) -> FreeRun:
    """Sampler, store and threads over an engine."""
    recipe = plan.recipe
    sampling, kind, pace = recipe.sampling, recipe.store, recipe.pace
    assert isinstance(sampling, DynamicSettings) and isinstance(kind, SegmentSettings)
    assert isinstance(pace, FreeRunning)
    algorithm, learning_rate = recipe.schedules()
    columns = algorithm.columns(engine.spaces)
    store = SegmentQueue(engine.spaces, columns, sampling.shape(), kind)
    works = Works(
        sampler=DynamicSampler(engine, store, sampling, plan.run.seed),
        store=store,
        algorithm=attachments.around(algorithm),
        published=published,
        learning_rate=unless_paused(learning_rate, attachments.pause),
    )
    return FreeRun(works, pace, plan.run.seed)


@dataclass(frozen=True)
class FreeParts:
    """A free-running run, as a session sees it."""

    plan: Plan
    protocol: Protocol
    run: Run
    inexact = ("its agents, predictors and trainers do not wait for each other",)
    peers = None

    @property
    def parameters(self) -> LocalParameters:
        return self.run.published.parameters

    def policy(self, agent_steps: int) -> acting.EvaluationPolicy:
        """Plays with the newest published weights, schedules at so many agent steps."""
        return policy_from(self.plan, self.run.published.source(), agent_steps)

    def note(self) -> dict[str, Any]:
        """Numbers of threads, histograms, and what the controller measured.

        The histograms: policy lag in updates to agent steps, environments of an inference to
        inferences, and segments that wait for a trainer to looks at them.
        """
        free = self.run.free
        return {
            **free.controller.counts._asdict(),
            "policy_lag": dict(sorted(free.lags.counts.items())),
            "prediction_batch": dict(sorted(free.batch_sizes.counts.items())),
            "training_queue": dict(sorted(free.queue_sizes.counts.items())),
            "controller": free.controller.rows(),
        }

    def begin(self, is_resumed: bool) -> None:
        """Starts games and threads, before the clock and the view of the run."""
        self.run.free.start()

    def loop(self, run: LeaderRun) -> None:
        while run.goes_on():
            self.run.free.turn(run)

    def saved(self, session: LeaderRun) -> Mapping[str, Saved]:
        return {"parameters": self.run.published, "free_run": self.run}

    def halt(self) -> None:
        self.run.free.close()

    def close(self) -> None:
        self.run.close()


def assemble_free(plan: Plan, say: Say, attachments: Attachments | None = None) -> FreeParts:
    """Engine, model and threads; they start with the run."""
    pace, attached = plan.recipe.pace, attachments or Attachments()
    assert isinstance(pace, FreeRunning)
    # Each thread brings a core to work: threads inside of them would fight for it.
    num = max(1, granted_cores() // (pace.num_predictors + pace.num_trainers))
    share_cores(
        settings.override(plan, {"torch_threads": plan.run.torch_threads or num}), Learners()
    )
    engine, plan = fitting(plan, say, lambda fitted: free_engine(fitted, attached))
    try:
        learner = build_learner(plan, engine.spaces, plan.run.seed)
        published = parameters.Published(learner, pace.torn_reads)
        return FreeParts(plan, engine.settings.protocol, Run(plan, engine, published, attached))
    except BaseException:
        engine.close()
        raise
