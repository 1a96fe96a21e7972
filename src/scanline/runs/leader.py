"""The leading learner's run: what surrounds a loop from its start to its stop.

Takes the parts that a checkpoint holds and the settings of a run; gives the `Run` of a loop, which
counts what was collected and learned, logs, saves, shows, watches and stops.
Knows no algorithm and no order of acting and learning: that is the loop's.

Limits, signals and the view hold inside a long turn too: the loop asks `breaks_off` between two of
its updates or rounds. A turn that is broken off is saved as far as it came and finished after a
resume, so what is due at its end (rows, evaluation, limits of steps and score) does not depend on
where that was.

A loop that fails still leaves a checkpoint: what the parts can give is saved before the error is
raised again. Such a checkpoint continues the run, but not bit for bit, and says so.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol, runtime_checkable

from ..errors import UserError, refusals
from ..files import DiskError
from ..interfaces import Metric, Saved
from ..records import EpisodeEnd, Slot
from . import exactness
from .checkpoint import BEST, Checkpoint, Checkpoints, CheckpointSettings
from .clock import EVALUATION, OTHER
from .evaluating import Evaluations
from .exactness import Exactness, reasons_in
from .folder import RunFolder
from .garbage import frozen_garbage
from .limits import Limits, SaveSchedule, SaveSettings, Stop
from .live import LiveSettings, LiveView
from .picture import About
from .progress import Progress, ProgressSettings, Turn, turn_of
from .replay_segments import Segments, check_files
from .signals import Interrupted, Signals
from .state_files import SegmentFile
from .watchdog import Watchdog, WatchdogSettings

GO, SAVE, STOP = 0, 1, 2
"""What the leader sends to other learners before every turn, and once more after the last."""


class Beginning(NamedTuple):
    """What other learners must know before the first turn."""

    resumed_at: int | None
    """Agent steps of the checkpoint that is loaded next; None without one."""
    turn: Turn | None
    """The turn that was broken off there."""
    segments: Path
    """Where a learner of the same machine writes the rows of its replay."""
    needed_segments: frozenset[str]
    """Names of all files of rows, on any machine, that a checkpoint refers to."""
    replay_segment_agent_steps: int


class Peers(Protocol):
    """Other learners of the same run."""

    @property
    def start_again(self) -> bool:
        """Whether all learners, this one too, are started again when one of them is lost."""

    def check_files(self, folder: Path, files: Sequence[SegmentFile]) -> None:
        """Before `begin`: raises `DamagedFile` unless each learner has its own of these files."""

    def begin(self, beginning: Beginning) -> object:
        """Says first how far the run is."""

    def keep(self, names: frozenset[str]) -> object:
        """After a save: of files of rows only these are needed any more."""

    def gathered(self, ends: Sequence[EpisodeEnd]) -> Sequence[EpisodeEnd]:
        """The games that all learners have finished since the last call."""

    def order(self, order: int) -> object:
        """Sent before every turn and before a save: `GO`, `SAVE` or `STOP`."""

    def give_up(self) -> bool:
        """The run has failed here; says whether a checkpoint of it would still be complete."""


class NoPeers:
    """No other learners."""

    start_again = False

    def check_files(self, folder: Path, files: Sequence[SegmentFile]) -> None:
        check_files(folder, files)

    def begin(self, beginning: Beginning) -> None:
        pass

    def keep(self, names: frozenset[str]) -> None:
        pass

    def gathered(self, ends: Sequence[EpisodeEnd]) -> Sequence[EpisodeEnd]:
        return ends

    def order(self, order: int) -> None:
        pass

    def give_up(self) -> bool:
        return True


@runtime_checkable
class Growing(Protocol):
    """A part that may write some of its state before the next checkpoint needs it."""

    def grow(self) -> None: ...


class NotFiniteError(UserError, RuntimeError):
    """A loss or another metric became infinite or no number."""


@dataclass(frozen=True, kw_only=True)
class OutputSettings:
    """How a run is logged, saved, shown and watched."""

    progress: ProgressSettings = field(default_factory=ProgressSettings)
    saving: SaveSettings = field(default_factory=SaveSettings)
    checkpoints: CheckpointSettings = field(default_factory=CheckpointSettings)
    watchdog: WatchdogSettings = field(default_factory=WatchdogSettings)
    live: LiveSettings = field(default_factory=LiveSettings)


class LeaderRun:
    """One run, inside the `with` block of `running`."""

    def __init__(
        self,
        folder: RunFolder,
        progress: Progress,
        limits: Limits,
        settings: OutputSettings,
        about: About,
        peers: Peers | None = None,
    ) -> None:
        self.folder, self.progress, self.time_split = folder, progress, progress.time_split
        self.stop: Stop | None = None
        self._limits, self._settings, self._peers = limits, settings, peers or NoPeers()
        self._checkpoints = Checkpoints(folder.checkpoints, settings.checkpoints)
        self.signals = Signals()
        """What ends the run early, entered by the caller; set before `running`."""
        self._saves = SaveSchedule(settings.saving)
        self._live = LiveView(settings.live, progress, limits, about=about)
        self._saved: Mapping[str, Saved] = {}
        self.exactness = Exactness()
        """Why a resumed run may not end bit for bit like this one; set before `running`."""
        self.say: Callable[[str], None] = lambda sentence: None
        """Takes sentences for the user; set before `running`."""
        self.after_row: Callable[[], bool] = lambda: True
        """Called after every row; gives whether the run goes on; set before `running`."""
        self._growing: list[Growing] = []
        self.evaluations: Evaluations | None = None
        """Where pauses for evaluation are wanted; set before `running`."""
        self.drain_episodes: Callable[[], Sequence[EpisodeEnd]] = list
        """Games finished since the last call; set by the loop that has them."""

    @contextmanager
    def running(
        self,
        saved: Mapping[str, Saved],
        resume: bool,
        begin: Callable[[bool], object] = lambda is_resumed: None,
    ) -> Iterator[None]:
        """Opens everything, loads the last checkpoint or begins anew, and saves at the end.

        Time counts from here on: what `begin` takes, e.g. to start games or processes, is no
        training. It is called with whether a checkpoint was loaded.
        """
        evaluations = {"evaluations": self.evaluations} if self.evaluations is not None else {}
        own: dict[str, Saved] = {"progress": self.progress, "time_split": self.time_split}
        self._saved = {**saved, **own, **evaluations}
        self._growing = [part for part in saved.values() if isinstance(part, Growing)]
        with ExitStack() as stack:
            stack.callback(self.folder.close)
            stack.enter_context(self._live)
            self.signals.say = self._live.say
            self.time_split.restart()
            with self._live.during("Loading the checkpoint" if resume else "Starting the games"):
                is_resumed = self._loaded(self._latest() if resume else None)
                with self.time_split.untimed():
                    begin(is_resumed)
                if not is_resumed:
                    self.time_split.restart()
            self._mark(self.exactness.begin())
            self._saves.saved(self.progress.agent_steps)
            self.progress.open(self.folder.path, self.folder.record["settings"])
            stack.callback(self.progress.close)
            if self.evaluations is not None:
                self.evaluations.open(self.folder.path)
            stack.enter_context(self.signals.deferred())
            stack.enter_context(self._watchdog())
            stack.enter_context(frozen_garbage())
            self._live.begin()
            try:
                yield
            except (KeyboardInterrupt, NotFiniteError):
                raise  # stop at once; or nothing that is worth keeping
            except BaseException as error:
                self._rescue(error)
                raise
            if self.progress.write_last_row():
                self._refuse_not_finite()
            saves = self._settings.saving.save_at_end
            self._peers.order(SAVE if saves else STOP)
            if saves:
                self.save()
            if self.stop is not None:
                self._live.finish(self.stop, self.folder.path)

    @property
    def replay_segment_agent_steps(self) -> int:
        """Agent steps of a replay per segment; 0 where nothing is kept between checkpoints."""
        saving = self._settings.saving
        return saving.replay_segment_agent_steps if saving.save_at_end else 0

    def segments(self, name: str) -> Segments:
        """Rows beside the checkpoints, for a part that grows at one end; ask before `running`."""
        return self._checkpoints.segments(name)

    def goes_on(self) -> bool:
        """Whether the loop should go on; logs, saves and shows what is due."""
        self.time_split.mark(OTHER)
        if not self.progress.end_turn():
            return not self.breaks_off()
        ended = self._row_if_due()
        self._evaluate_if_due()
        self.stop = (
            self.signals.stop
            or ended
            or self._limits.reached(
                agent_steps=self.progress.agent_steps,
                seconds=self.time_split.training_seconds(),
                score=self.progress.scores.full_mean,
            )
        )
        for part in self._growing:
            part.grow()
        due = self.stop is None and self._saves.due(self.progress.agent_steps)
        self._peers.order(STOP if self.stop is not None else SAVE if due else GO)
        if due:
            self.save()
        self._live.refresh_if_due()
        return self.stop is None

    def _row_if_due(self) -> Stop | None:
        """What the callback takes is no training time."""
        if not self.progress.write_row_if_due():
            return None
        self._refuse_not_finite()
        with self.time_split.untimed():
            is_over = not self.after_row()
        return Stop("callback", "The callback has ended the run.") if is_over else None

    def breaks_off(self) -> bool:
        """Whether a signal or the clock ends the run in the midst of a turn; shows what is due."""
        self.stop = self.signals.stop
        if self.stop is None and self._limits.seconds is not None:
            self.stop = self._limits.time_is_over(self.time_split.training_seconds())
        self._peers.order(GO if self.stop is None else STOP)
        self._live.refresh_if_due()
        return self.stop is not None

    def _evaluate_if_due(self) -> None:
        """A signal ends the games at once; after a resume they are played from the first one.

        The weights of the best evaluation so far are kept.
        """
        agent_steps, evaluations = self.progress.agent_steps, self.evaluations
        if evaluations is None or not evaluations.due(agent_steps):
            return
        with (
            self.time_split.during(EVALUATION),
            self._live.during("Playing evaluation games"),
            suppress(Interrupted),
        ):
            # Taken before: weights of some runs move on while games are played.
            state = {"parameters": self._saved["parameters"].state()}
            evaluations.hold(agent_steps, around=self.signals.interruptible())
            if self._settings.saving.save_at_end and evaluations.best is evaluations.records[-1]:
                state["progress"] = {"agent_steps": agent_steps}
                one = CheckpointSettings(keep_checkpoints=1)
                Checkpoints(self.folder.checkpoints / BEST, one).save(state, agent_steps)

    def leave(self) -> None:
        """Ends other learners with a loop that ends before `goes_on` says so."""
        if self.stop is None:
            self._peers.order(STOP)

    def collected(self, slot: Slot) -> None:
        """Counts the steps of a rollout and takes the games that have ended."""
        self.progress.count_slot(slot)
        self.progress.count_episodes(self._peers.gathered(self.drain_episodes()))

    def report(
        self,
        num_agent_steps: int,
        num_updates: int,
        metrics: Mapping[str, Metric],
        ends: Sequence[EpisodeEnd],
    ) -> None:
        """Counts what workers, threads or processes, have done since their last report."""
        self.progress.advance(num_agent_steps)
        self.progress.updates += num_updates
        self.progress.log(metrics)
        self.progress.count_episodes(ends)

    def log_rates(self, rates: Mapping[str, float]) -> None:
        """Keeps rates of workers for the next row; they depend on the clock."""
        self.progress.log_rates(rates)

    def updated(self, metrics: Mapping[str, Metric], norms: Mapping[str, Metric]) -> None:
        """Counts an update and keeps its metrics."""
        self.progress.count_update({**metrics, **norms})

    def log(self, metrics: Mapping[str, Metric]) -> None:
        """Keeps metrics that belong to no update, for the next row."""
        self.progress.log(metrics)

    def save(self, *inexact: str) -> None:
        """Writes a checkpoint of all parts; with the reasons why it cannot be exact, if any."""
        with self._live.during("Saving"):
            state = {name: part.state() for name, part in self._saved.items()}
            self._mark(self.exactness.add([*inexact, *reasons_in(state)]))
            state = {**self.exactness.state(), **state}
            self._checkpoints.save(state, self.progress.agent_steps)
            self._peers.keep(frozenset(self._checkpoints.needed_segments()))
        self._saves.saved(self.progress.agent_steps)

    def _mark(self, reasons: Sequence[str]) -> None:
        """Shows reasons that were not known before, and writes them into the run's record."""
        if reasons:
            self.say(exactness.sentence(reasons))
            self.folder.mark_inexact(self.exactness.reasons)

    def _latest(self) -> Checkpoint | None:
        """The newest checkpoint of which every learner has its files."""
        return self._checkpoints.latest(self._peers.check_files)

    def _loaded(self, found: Checkpoint | None) -> bool:
        """Whether there was a checkpoint; a run killed before its first one begins again."""
        at, folder = found.agent_steps if found else None, self._checkpoints.segments_folder
        turn = turn_of(found.state["progress"]) if found else None
        needed = frozenset(self._checkpoints.needed_segments())
        rows = (folder.resolve(), needed, self.replay_segment_agent_steps)
        self._peers.begin(Beginning(at, turn, *rows))
        if found is None:
            return False
        with refusals():
            for name, part in self._saved.items():
                part.load(found.state[name])
        self._mark(self.exactness.resumed(found.state, found.agent_steps))
        return True

    def _rescue(self, failure: BaseException) -> None:
        """Saves what can be saved of a run that failed, without hiding why it failed.

        Where other learners' parts are out of reach, an earlier checkpoint is worth more, and so is
        the beginning where all start again: from there the run is exact.
        """
        is_better = self._checkpoints.any_complete or self._peers.start_again
        if not self._peers.give_up() and is_better:
            return
        try:
            self.save(f"saved when it failed after {self.progress.agent_steps:,} agent steps")
        except Exception as error:  # the first error is the one to show
            if isinstance(error, DiskError) and isinstance(failure, DiskError):
                return  # it says the same
            warnings.warn(f"No checkpoint could be saved of the failed run: {error}", stacklevel=2)

    def _watchdog(self) -> Watchdog:
        return Watchdog(
            self.folder.path,
            self._settings.watchdog,
            position=lambda: (self.progress.agent_steps, self.progress.updates),
            part=lambda: self.time_split.part,
        )

    def _refuse_not_finite(self) -> None:
        row = self.progress.last_row
        wrong = [k for k, v in row.items() if isinstance(v, float) and not math.isfinite(v)]
        if wrong:
            rate = row.get("charts/learning_rate")
            raise NotFiniteError(
                f"{', '.join(wrong)} is no finite number after {self.progress.agent_steps:,} agent "
                f"steps with a learning rate of {rate}; a smaller one usually helps "
                f"({self.folder.path} has the rows until then)."
            )
