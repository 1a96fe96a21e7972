"""Training: a plan carried out, from its folder to its last word.

Takes a plan, or a recipe, a game and settings by name; gives a finished `Run`.
Knows the order of a run's life; the loop and the parts are others'.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import reports, settings
from ..evaluation import Scores
from ..parameters import Learners
from ..recipes import Recipe
from ..runners import folder
from ..runners.clock import Spans
from ..runners.learners import Following
from ..runners.progress import Progress, ProgressSettings
from ..runners.session import Session
from ..runners.stopping import Limits, Stop
from . import learners
from .assembly import Parts, Say, assemble, policy_of
from .plan import Plan, make_plan
from .scoring import evaluations_of, score


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
    best_evaluation: Mapping[str, Any] | None = None
    """The pause with the highest mean score, where the recipe has pauses."""


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
    return carry_out(plan, out=out, resume=resume, say=say)


def carry_out(plan: Plan, *, out: str | Path | None, resume: bool, say: Say = print) -> Run:
    """Trains by a plan, alone or with other learners."""
    plan = learners.placed(plan)
    with learners.joined(plan, follow) as group:
        if group.leads:
            return lead(plan, group, out=out, resume=resume, say=say)
        follow(plan, group)
        stop = Stop("leader", "The leading learner has ended the run.")
        return Run(Path(out or ""), plan.recipe.agent_steps, 0.0, None, stop)


def follow(plan: Plan, group: Learners) -> None:
    """The whole run of a learner that does not lead: no files, no words, no decisions."""
    spans = Spans()
    parts = assemble(plan, spans.mark, say=lambda sentence: None, learners=group)
    try:
        progress = Progress(ProgressSettings(), frame_skip=1, spans=spans)
        session = Following(parts.exchange, progress)
        with session.running(parts.saved(session), begin=parts.begin):
            while session.goes_on():
                parts.turn(session)
    finally:
        parts.close()


def lead(plan: Plan, group: Learners, *, out: str | Path | None, resume: bool, say: Say) -> Run:
    """The whole run of the learner that logs, saves and decides."""
    spans = Spans()
    parts = assemble(plan, spans.mark, say, learners=group)
    try:
        session = open_session(parts, out, resume=resume, spans=spans)
        session.evaluations = evaluations_of(
            parts.plan, policy_of(parts.plan, parts.loop.parameters)
        )
        with session.running(parts.saved(session), resume=resume, begin=parts.begin):
            while session.goes_on():
                parts.turn(session)
        run = _finished(parts, session)
        _report(run.folder)
        return run
    finally:
        parts.close()


def open_session(
    parts: Parts, out: str | Path | None, *, resume: bool = False, spans: Spans | None = None
) -> Session:
    """The run's folder and all that surrounds its loop."""
    plan, protocol = parts.plan, parts.engine.settings.protocol
    limits = Limits(
        agent_steps=plan.recipe.agent_steps,
        seconds=plan.run.seconds,
        target_score=plan.run.target_score,
    )
    settings_of_session = plan.run.session
    progress = Progress(
        settings_of_session.progress, frame_skip=protocol.frame_skip, spans=spans or Spans()
    )
    run_folder = _folder(parts, out, resume)
    title = f"{plan.recipe.name} on {plan.game}"
    return Session(run_folder, progress, limits, settings_of_session, title, parts.peers)


def _folder(parts: Parts, out: str | Path | None, resume: bool) -> folder.RunFolder:
    plan = parts.plan
    path = Path(out or folder.default_folder(plan.game, plan.recipe.name, plan.run.seed))
    record = settings.to_dict(plan) | {"protocol": parts.engine.settings.protocol.to_dict()}
    begin = folder.RunFolder.resume if resume else folder.RunFolder.create
    return begin(path, record, folder.versions(plan.engine, ""))


def _report(path: Path) -> None:
    """The page of the run; a full disk costs the page, not the run."""
    try:
        reports.write([path])
    except OSError as error:
        warnings.warn(
            f"No report was written ({error}); `scanline report {path}` makes it later.",
            stacklevel=2,
        )


def _finished(parts: Parts, session: Session) -> Run:
    """What the run came to; a reached target score is confirmed by evaluation games."""
    assert session.stop is not None
    confirmation = None
    if session.stop.kind == "target_score":
        policy = policy_of(parts.plan, parts.loop.parameters)
        confirmation = score(parts.plan, policy, games=parts.plan.run.evaluation_games)
    progress = session.progress
    return Run(
        folder=session.folder.path,
        agent_steps=progress.agent_steps,
        training_seconds=session.spans.training_seconds(),
        score=progress.scores.mean,
        stop=session.stop,
        confirmation=confirmation,
        best_evaluation=session.evaluations.best if session.evaluations else None,
    )
