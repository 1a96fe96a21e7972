"""Training: a plan carried out, from its folder to its last word.

Takes a plan, or a recipe, a game and settings by name; gives a finished `Run`.
Knows the order of a run's life; the loop and the parts are others'.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import networks, reports, settings
from ..errors import refusals
from ..evaluation import EvaluationScores
from ..parameters import CentralSettings, Learners
from ..recipes import Recipe, user_code
from ..runners.free_running import FreeRunning
from ..runs import folder
from ..runs.clock import EVALUATION, TimeSplit
from ..runs.exactness import Exactness
from ..runs.leader import LeaderRun
from ..runs.learners import Following
from ..runs.limits import Limits, Stop
from ..runs.progress import Progress, ProgressSettings
from ..runs.signals import Interrupted, Signals
from . import exact, learners
from .assembly import Parts, Say, assemble
from .attachments import Attachments
from .fleet import FleetParts, assemble_fleet
from .free import FreeParts, assemble_free
from .plan import Plan, make_plan
from .scoring import evaluations_of, score

Runnable = Parts | FleetParts | FreeParts
"""What a run can run: begun, turned, saved, halted and closed."""


@dataclass(frozen=True)
class Run:
    """A finished or interrupted run."""

    folder: Path
    agent_steps: int
    training_seconds: float
    score: float | None
    """Mean of the last 100 training games; None before the first has finished."""
    stop: Stop
    confirmation: EvaluationScores | None = None
    """Evaluation games that confirm a reached target score."""
    inexact: tuple[str, ...] = ()
    """Why, resumed, it does not end bit for bit like a run that was never stopped; often empty."""
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


def carry_out(
    plan: Plan,
    *,
    out: str | Path | None,
    resume: bool,
    say: Say = print,
    signals: Signals | None = None,
) -> Run:
    """Trains by a plan, alone or with other learners; `signals` say how signals end it."""
    plan = learners.placed(centrally(plan))
    with networks.threads_restored(), learners.joined(plan, follow) as group:
        if group.leads:
            with signals or Signals() as signals:
                return lead(plan, group, out=out, resume=resume, say=say, signals=signals)
        follow(plan, group)
        stop = Stop("leader", "The leading learner has ended the run.")
        return Run(Path(out or ""), plan.recipe.agent_steps, 0.0, None, stop)


def centrally(plan: Plan) -> Plan:
    """The plan in which `--learners` counts those of a central store, where there is one."""
    if not isinstance(plan.recipe.exchange, CentralSettings) or plan.run.learners == 1:
        return plan
    return settings.override(plan, {"num_learners": plan.run.learners, "learners": 1})


def follow(plan: Plan, group: Learners) -> None:
    """The whole run of a learner that does not lead: no files, no words, no decisions."""
    time_split = TimeSplit()
    with refusals():
        parts = assemble(plan, time_split.mark, say=lambda sentence: None, learners=group)
    try:
        progress = Progress(ProgressSettings(), frame_skip=1, time_split=time_split)
        run = Following(parts.exchange, progress)
        with run.running(parts.saved(run), begin=parts.begin):
            parts.loop(run)
    finally:
        parts.close()


def lead(
    plan: Plan,
    group: Learners,
    *,
    out: str | Path | None,
    resume: bool,
    say: Say,
    signals: Signals,
) -> Run:
    """The whole run of the learner that logs, saves and decides."""
    time_split = TimeSplit()
    parts = prepared(plan, time_split.mark, say, group)
    try:
        run = open_run(parts, out, resume=resume, time_split=time_split, signals=signals)
        user_code.remember(plan.recipe, plan.game)
        run.say = say
        run.evaluations = evaluations_of(parts.plan, parts.policy, say)
        with run.running(parts.saved(run), resume=resume, begin=parts.begin):
            parts.loop(run)
        parts.halt()
        confirmation = None
        with suppress(Interrupted):  # all is saved: what is left can be done later
            confirmation = _confirmed(parts, run, say)
            _report(run.folder.path)
        return _finished(run, confirmation)
    finally:
        parts.close()


@refusals()
def prepared(
    plan: Plan,
    mark: Callable[[str], Any],
    say: Say = print,
    learners: Learners | None = None,
    attachments: Attachments | None = None,
) -> Runnable:
    """The parts of a run, by the kinds of the recipe's exchange and pace."""
    if isinstance(plan.recipe.exchange, CentralSettings):
        pause = attachments.pause if attachments is not None else None
        if attachments not in (None, Attachments(pause=pause)):
            raise ValueError("To learners in processes of their own only a pause can be attached.")
        return assemble_fleet(plan, say, pause)
    if isinstance(plan.recipe.pace, FreeRunning):
        return assemble_free(plan, say, attachments)
    return assemble(plan, mark, say, learners=learners, attachments=attachments)


@refusals()
def open_run(
    parts: Runnable,
    out: str | Path | None,
    *,
    resume: bool = False,
    time_split: TimeSplit | None = None,
    signals: Signals | None = None,
) -> LeaderRun:
    """The run's folder and all that surrounds its loop."""
    plan, protocol = parts.plan, parts.protocol
    versions = exact.versions(plan)
    limits = Limits(
        agent_steps=plan.recipe.agent_steps,
        seconds=plan.run.seconds,
        target_score=plan.run.target_score,
        stop_if_too_slow=plan.run.stop_if_too_slow,
    )
    output = plan.run.output
    progress = Progress(
        output.progress, frame_skip=protocol.frame_skip, time_split=time_split or TimeSplit()
    )
    run_folder = _folder(parts, out, resume, versions)
    title = f"{plan.recipe.name} on {plan.game}"
    run = LeaderRun(run_folder, progress, limits, output, title, parts.peers)
    run.signals = signals or run.signals
    run.exactness = Exactness(parts.inexact, exact.conditions(plan, versions))
    return run


def _folder(
    parts: Runnable, out: str | Path | None, resume: bool, versions: Mapping[str, str]
) -> folder.RunFolder:
    plan = parts.plan
    path = Path(out or folder.default_folder(plan.game, plan.recipe.name, plan.run.seed))
    record = settings.to_dict(plan) | {"protocol": parts.protocol.to_dict()}
    begin = folder.RunFolder.resume if resume else folder.RunFolder.create
    return begin(path, record, versions)


def _report(path: Path) -> None:
    """The page of the run; a full disk costs the page, not the run."""
    try:
        reports.write([path])
    except OSError as error:
        warnings.warn(
            f"No report was written ({error}); `scanline report {path}` makes it later.",
            stacklevel=2,
        )


def _confirmed(parts: Runnable, run: LeaderRun, say: Say) -> EvaluationScores | None:
    """Evaluation games that confirm a reached target score."""
    if run.stop is None or run.stop.kind != "target_score":
        return None
    games = parts.plan.run.evaluation_games
    say(f"Playing {games} whole games to confirm the score ...")
    with run.time_split.during(EVALUATION), run.signals.interruptible():
        player = parts.policy(run.progress.agent_steps)
        confirmation = score(parts.plan, player, games=games)
    say(f"Confirmed by evaluation: {confirmation.sentence()}.")
    return confirmation


def _finished(run: LeaderRun, confirmation: EvaluationScores | None) -> Run:
    """What the run came to."""
    assert run.stop is not None
    progress = run.progress
    return Run(
        folder=run.folder.path,
        agent_steps=progress.agent_steps,
        training_seconds=run.time_split.training_seconds(),
        score=progress.scores.mean,
        stop=run.stop,
        confirmation=confirmation,
        inexact=tuple(run.exactness.reasons),
        best_evaluation=run.evaluations.best if run.evaluations else None,
    )
