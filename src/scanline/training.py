"""Assembly: settings to parts to runner. `train`, `evaluate`, `load_policy`.

Takes a recipe, a game and settings by name; gives a finished run, scores, or a policy to act with.
Knows how parts are put together and nothing of how they work.

Everything that a run depends on is in one frozen `Plan`, which is written into the run's folder:
resuming, evaluating and loading begin by reading it back.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from . import acting, engines, evaluation, networks, parameters, protocols, recipes, settings
from .engines import Engine, EngineSettings
from .evaluation import Scores
from .recipes import Recipe
from .records import Array, Saved, Slot
from .runners import checkpoint, folder, on_policy
from .runners.clock import Spans
from .runners.progress import Progress
from .runners.session import Session, SessionSettings
from .runners.stopping import Limits, Stop
from .samplers import LockstepSampler
from .stores import RolloutStore

Say = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class RunSettings:
    """What a run needs besides its recipe."""

    seed: int = 0
    """Key of every random number of the run."""
    seconds: float | None = None
    """Training time in seconds after which the run ends, evaluation not counted."""
    target_score: float | None = None
    """Mean score of the last 100 games that ends the run; evaluation games then confirm it."""
    engine: str | None = None
    """What steps the environments (`scanline list engines`); chosen by the game when not given."""
    num_threads: int | None = None
    """Engine threads; all cores that the system grants when not given."""
    num_workers: int | None = None
    """Worker processes of the engine `gymnasium`; 0 steps environments in this process."""
    torch_threads: int | None = None
    """Threads of PyTorch; all cores when not given. Recorded, because it changes float sums."""
    device: str = "cpu"
    """Where the network lives: cpu, cuda, cuda:1, mps."""
    reset: engines.ResetKind = "cached"
    """How a console starts anew: `ale` (exact) or `cached` (start states from a cache)."""
    mode: int | None = None
    """Game mode; the game's default when not given."""
    difficulty: int | None = None
    """Difficulty switches; the game's default when not given."""
    strict_protocol: bool = False
    """Refuse an engine that cannot honour the protocol, instead of taking its nearest one."""
    evaluation_games: int = 30
    """Games of the evaluation that confirms a target score."""
    session: SessionSettings = field(default_factory=SessionSettings)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Everything that a run depends on."""

    game: str
    """A game (`scanline list games`) or any Gymnasium id."""
    recipe: Recipe
    run: RunSettings = field(default_factory=RunSettings)

    def __post_init__(self) -> None:
        settings.check_unique(self)

    @property
    def engine(self) -> str:
        return self.run.engine or engines.default_name(self.game)


@dataclass(frozen=True)
class Run:
    """A finished or interrupted run."""

    folder: Path
    agent_steps: int
    training_seconds: float
    score: float | None
    """Mean of the last 100 training games; None before the first has finished."""
    stop: Stop
    confirmation: Scores | None = None
    """Evaluation games that confirm a reached target score."""


def make_plan(recipe: str | Recipe, game: str, **changes: Any) -> Plan:
    """A plan with settings of any part changed by name."""
    chosen = recipes.find(recipe) if isinstance(recipe, str) else recipe
    plan = Plan(game=game, recipe=chosen)
    if changes.get("protocol"):
        changes = {"strict_protocol": True, **changes}
    return settings.override(plan, changes)


def engine_settings(plan: Plan, **changes: Any) -> EngineSettings:
    """What the engine of a plan is built from."""
    run, sampling = plan.run, plan.recipe.sampling
    return EngineSettings(
        **{
            "game": plan.game,
            "num_envs": sampling.num_envs,
            "num_groups": sampling.num_groups,
            "protocol": protocols.get(plan.recipe.protocol),
            "seed": run.seed,
            "num_threads": run.num_threads,
            "num_workers": run.num_workers,
            "reset": run.reset,
            "mode": run.mode,
            "difficulty": run.difficulty,
            **changes,
        }
    )


def fitting_engine(plan: Plan, say: Say) -> tuple[Engine, Plan]:
    """The engine of a plan, and the plan with the protocol that the engine can honour."""
    try:
        return engines.build(plan.engine, engine_settings(plan)), plan
    except engines.ProtocolRefusedError as refusal:
        if plan.run.strict_protocol:
            raise
        say(f"{refusal} This run uses it.")
        plan = settings.override(plan, {"protocol": refusal.nearest})
        return engines.build(plan.engine, engine_settings(plan)), plan


@dataclass(frozen=True)
class Parts:
    """The parts of a synchronous run, and the plan that they follow."""

    plan: Plan
    engine: Engine
    loop: on_policy.Loop

    @property
    def saved(self) -> Mapping[str, Saved]:
        """What a checkpoint holds of them."""
        loop = self.loop
        return {"sampler": loop.sampler, "store": loop.store, "parameters": loop.parameters}


def assemble(plan: Plan, mark: Callable[[str], Any], say: Say = print) -> Parts:
    """Settings to parts."""
    if plan.run.torch_threads:
        torch.set_num_threads(plan.run.torch_threads)
    engine, plan = fitting_engine(plan, say)
    recipe, run, sampling = plan.recipe, plan.run, plan.recipe.sampling
    algorithm, spaces = recipe.algorithm, engine.spaces
    network = networks.build(recipe.network, spaces, algorithm.head, seed=run.seed)
    learner = parameters.LocalParameters(
        network.to(run.device),
        recipe.optimiser,
        max_grad_norm=recipe.optimiser.max_grad_norm,
        algorithm_state=algorithm.init(spaces),
    )
    slot = Slot.allocate(
        spaces, sampling.rollout_agent_steps, sampling.num_envs, algorithm.columns(spaces)
    )
    loop = on_policy.Loop(
        sampler=LockstepSampler(engine, run.seed, mark),
        policy=acting.NetworkPolicy(algorithm, lambda: (learner.views, learner.version)),
        store=RolloutStore(slot, recipe.store, run.seed),
        algorithm=algorithm,
        parameters=learner,
        learning_rate=recipe.optimiser.schedule(recipe.agent_steps, sampling.num_envs),
    )
    return Parts(plan, engine, loop)


def train(
    recipe: str | Recipe,
    game: str,
    *,
    out: str | Path | None = None,
    resume: bool = False,
    say: Say = print,
    **changes: Any,
) -> Run:
    """Trains until a limit is reached; settings of any part are given by name."""
    plan = make_plan(recipe, game, **changes)
    spans = Spans()
    parts = assemble(plan, spans.mark, say)
    try:
        return _train(parts, spans, _folder(parts, out, resume), resume)
    finally:
        parts.engine.close()


def _folder(parts: Parts, out: str | Path | None, resume: bool) -> folder.RunFolder:
    plan = parts.plan
    path = Path(out or folder.default_folder(plan.game, plan.recipe.name, plan.run.seed))
    record = settings.to_dict(plan) | {"protocol": parts.engine.settings.protocol.to_dict()}
    versions = folder.versions(plan.engine, "")
    begin = folder.RunFolder.resume if resume else folder.RunFolder.create
    return begin(path, record, versions)


def _train(parts: Parts, spans: Spans, run_folder: folder.RunFolder, resume: bool) -> Run:
    plan = parts.plan
    limits = Limits(
        agent_steps=plan.recipe.agent_steps,
        seconds=plan.run.seconds,
        target_score=plan.run.target_score,
    )
    progress = Progress(
        plan.run.session.progress, frame_skip=parts.engine.settings.protocol.frame_skip, spans=spans
    )
    session = Session(run_folder, progress, spans, limits, plan.run.session)
    with session.running(parts.saved, resume=resume):
        if progress.agent_steps == 0:
            parts.loop.sampler.reset(plan.recipe.sampling.decorrelation_agent_steps)
        on_policy.run(parts.loop, session)
    return _finished(parts, session)
