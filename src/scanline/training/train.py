"""Training: a plan carried out, from its folder to its last word.

Takes a plan, or a recipe, a game and settings by name; gives a `TrainedRun`.
Knows the order of a run's life; the loop and the parts are others'.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import networks, reports, settings
from ..errors import refusals
from ..evaluation import EvaluationScores
from ..parameters import Learners
from ..recipes import Recipe, user_code
from ..runs import folder, loggers
from ..runs.checkpoint import load_chosen
from ..runs.clock import EVALUATION, TimeSplit
from ..runs.exactness import Exactness
from ..runs.leader import LeaderRun
from ..runs.learners import FollowerRun
from ..runs.limits import Limits, Stop
from ..runs.loggers import Logger
from ..runs.picture import About
from ..runs.progress import Progress, ProgressSettings
from ..runs.signals import Interrupted, Signals
from . import exact, footprint, learners
from .context import Say
from .hooks import Callback, Hooks
from .plan import Plan, make_plan
from .prepared import PreparedRun, prepared
from .scoring import evaluations_of, score


@dataclass(frozen=True)
class TrainedRun:
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


Run = TrainedRun
"""Its name in the package `scanline`."""


def train(  # noqa: PLR0913 (each is a choice of its own)
    recipe: str | Recipe,
    game: str,
    *,
    out: str | Path | None = None,
    resume: bool = False,
    say: Say = print,
    loggers: Sequence[Logger] = (),
    callback: Callback | None = None,
    **changes: Any,
) -> TrainedRun:
    """Trains until a limit is reached; settings of any part are given by name.

    Every row of the log goes to `loggers` too. After each the `callback` is called with a
    `TrainingProgress`; when it returns False the run ends as at a limit, and otherwise it changes
    nothing.
    """
    plan = make_plan(recipe, game, **changes)
    return carry_out(plan, out=out, resume=resume, say=say, hooks=Hooks(loggers, callback))


def carry_out(
    plan: Plan,
    *,
    out: str | Path | None,
    resume: bool,
    say: Say = print,
    signals: Signals | None = None,
    hooks: Hooks | None = None,
) -> TrainedRun:
    """Trains by a plan, alone or with other learners; `signals` say how signals end it."""
    plan = learners.placed(plan)
    resume = resume or learners.goes_on(plan, out)
    footprint.check(plan, say)
    around: dict[str, Any] = {"out": out, "resume": resume, "say": say, "hooks": hooks}
    is_saved = resume and any((Path(out or "") / "checkpoints").glob("*-agent-steps-*"))
    if plan.run.init is not None and not is_saved:
        load_chosen(Path(plan.run.init) / "checkpoints", None)  # refused here if there is none
    with networks.threads_restored(), learners.joined(plan, follow) as group:
        if group.leads:
            with signals or Signals() as signals:
                return lead(plan, group, signals=signals, **around)
        follow(plan, group, None if out is None else Path(out))
        stop = Stop("leader", "The leading learner has ended the run.")
        return TrainedRun(Path(out or ""), plan.recipe.agent_steps, 0.0, None, stop)


def follow(plan: Plan, group: Learners, out: Path | None = None) -> None:
    """The whole run of a learner that does not lead: no words, no decisions, and no files but the
    rows of its replay, in the folder `out` of its machine or in the leading learner's."""
    time_split = TimeSplit()
    parts = prepared(plan, time_split.mark, lambda sentence: None, group)
    with closing(parts.runtime) as runtime:
        assert parts.peers is not None
        progress = Progress(ProgressSettings(), frame_skip=1, time_split=time_split)
        run = FollowerRun(parts.peers, progress, out)
        with run.running(parts.saved(run), begin=runtime.begin):
            runtime.run(run)


def lead(  # noqa: PLR0913 (each is a choice of its own)
    plan: Plan,
    group: Learners,
    *,
    out: str | Path | None,
    resume: bool,
    say: Say,
    signals: Signals,
    hooks: Hooks | None = None,
) -> TrainedRun:
    """The whole run of the learner that logs, saves and decides."""
    time_split = TimeSplit()
    parts = prepared(plan, time_split.mark, say, group)
    with closing(parts.runtime) as runtime:
        run = open_run(parts, out, resume=resume, time_split=time_split, signals=signals)
        user_code.remember(plan.recipe, plan.game)
        (hooks or Hooks()).attach(run, lambda: runtime.weights()[0])
        run.say = say
        say(networks.used_kernels(runtime.weights()[0].live, plan.kernels))
        run.evaluations = evaluations_of(parts.plan, parts.policy, say)
        with run.running(parts.saved(run), resume=resume, begin=runtime.begin):
            runtime.run(run)
        runtime.halt()
        confirmation = None
        with suppress(Interrupted):  # all is saved: what is left can be done later
            confirmation = _confirmed(parts, run, say)
            _report(run.folder.path)
        return _finished(run, confirmation)


@refusals()
def open_run(
    parts: PreparedRun,
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
    progress.loggers = loggers.wanted(output.progress.tensorboard, output.progress.track)
    run_folder = _folder(parts, out, resume, versions)
    about = About(
        f"{plan.recipe.name} on {plan.game}, seed {plan.run.seed}",
        run_folder.path,
        plan.recipe.sampling.num_envs * (plan.learners if plan.recipe.exchange.is_central else 1),
        protocol.episode_limit_frames // protocol.frame_skip,
    )
    run = LeaderRun(run_folder, progress, limits, output, about, parts.peers)
    run.signals = signals or run.signals
    run.exactness = Exactness(parts.runtime.inexact, exact.conditions(plan, versions))
    return run


def _folder(
    parts: PreparedRun, out: str | Path | None, resume: bool, versions: Mapping[str, str]
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


def _confirmed(parts: PreparedRun, run: LeaderRun, say: Say) -> EvaluationScores | None:
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


def _finished(run: LeaderRun, confirmation: EvaluationScores | None) -> TrainedRun:
    """What the run came to."""
    assert run.stop is not None
    progress = run.progress
    return TrainedRun(
        folder=run.folder.path,
        agent_steps=progress.agent_steps,
        training_seconds=run.time_split.training_seconds(),
        score=progress.scores.mean,
        stop=run.stop,
        confirmation=confirmation,
        inexact=tuple(run.exactness.reasons),
        best_evaluation=run.evaluations.best if run.evaluations else None,
    )
