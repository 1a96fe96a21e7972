"""Free-running recipes: a plan to agents, predictors and trainers around one model.

Takes a `Plan` whose pace is free-running; gives `FreeParts`, which a session runs like the parts of
any other recipe. Knows how parts are put together and nothing of how they work.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

from .. import acting, interfaces, random, settings
from ..engines import Engine
from ..engines import build as build_engine
from ..interfaces import Saved
from ..parameters import Learners, LocalParameters
from ..processes import granted_cores
from ..protocols import Protocol
from ..runners.free_running import FreeRunning, FreeRuntime
from ..runs.leader import LeaderRun
from ..samplers import DynamicSettings
from ..stores import SegmentSettings
from .assembly import Say, engine_settings, fitting, share_cores
from .attachments import Attachments
from .models import build_learner
from .plan import Plan
from .policies import policy_from


@dataclass
class FreeContext:
    """What the settings of a free-running recipe build their parts from."""

    plan: Plan
    engine: Engine
    attachments: Attachments

    @property
    def seed(self) -> int:
        return self.plan.run.seed

    @property
    def spaces(self) -> Any:
        return self.engine.spaces

    @property
    def columns(self) -> Any:
        return self.plan.recipe.algorithm.columns(self.spaces)

    @property
    def rollout_agent_steps(self) -> int:
        return self.plan.recipe.sampling.horizon_agent_steps

    @cached_property
    def parts(self) -> interfaces.Parts:
        recipe = self.plan.recipe
        assert isinstance(recipe.sampling, DynamicSettings)
        assert isinstance(recipe.store, SegmentSettings)
        algorithm = self.attachments.around(recipe.schedules()[0])
        learner = build_learner(
            self.plan, self.spaces, self.plan.run.seed, is_paused=self.attachments.pause
        )
        return interfaces.Parts(
            sampler=cast(Any, recipe.sampling.build(cast(Any, self))),
            policy=acting.NetworkPolicy(algorithm, lambda: (learner.views, learner.version)),
            store=recipe.store.build(cast(Any, self)),
            algorithm=algorithm,
            parameters=learner,
        )

    def renewed(self, num_resumes: int) -> FreeContext:
        seed = int(random.seeds(self.plan.run.seed, "resumed", [num_resumes])[0])
        self.engine.close()
        plan = settings.override(self.plan, {"seed": seed})
        return FreeContext(plan, free_engine(plan, self.attachments), self.attachments)

    def close(self) -> None:
        self.engine.close()


def free_engine(plan: Plan, attachments: Attachments) -> Engine:
    return build_engine(plan.engine, engine_settings(plan, is_paused=attachments.pause))


@dataclass(frozen=True)
class FreeParts:
    """A free-running run, as a session sees it."""

    plan: Plan
    protocol: Protocol
    runtime: FreeRuntime
    peers = None

    @property
    def inexact(self) -> tuple[str, ...]:
        return self.runtime.inexact

    @property
    def parameters(self) -> LocalParameters:
        return self.runtime.published.parameters

    def policy(self, agent_steps: int) -> acting.EvaluationPolicy:
        """Plays with the newest published weights, schedules at so many agent steps."""
        return policy_from(self.plan, self.runtime.weights, agent_steps)

    def note(self) -> Mapping[str, Any]:
        return self.runtime.note()

    def begin(self, is_resumed: bool) -> None:
        self.runtime.begin(is_resumed)

    def loop(self, run: LeaderRun) -> None:
        self.runtime.run(run)

    def saved(self, run: LeaderRun) -> Mapping[str, Saved]:
        return self.runtime.saved()

    def halt(self) -> None:
        self.runtime.halt()

    def close(self) -> None:
        self.runtime.close()


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
        runtime = pace.build(cast(Any, FreeContext(plan, engine, attached)))
        return FreeParts(plan, engine.settings.protocol, runtime)
    except BaseException:
        engine.close()
        raise
