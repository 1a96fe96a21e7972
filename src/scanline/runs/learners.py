"""Several learners as one run: one of them leads, the others follow.

Takes the `Learners` of a run; gives what they exchange at every turn, the run of a learner that
follows, and parts that a checkpoint holds once per learner.
Knows no algorithm and no way of starting processes.

The leading learner decides everything that depends on the clock, on signals or on scores, and
tells it once per turn; the others do the same work and obey. Rows of a replay are written by the
learner that has them, on its own machine, everything else by the leading one: a checkpoint is
complete once every learner has written its rows, and is used only while each still has them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from ..interfaces import Metric, Saved
from ..parameters import Learners, LocalParameters
from ..records import EpisodeEnd, Slot, State
from ..samplers import GameNumbers
from .checkpoint import SEGMENTS
from .folder import CHECKPOINTS
from .garbage import frozen_garbage
from .leader import GO, SAVE, STOP, Beginning, Growing
from .progress import Progress
from .replay_segments import Segments, check_files, files_of, remove_unneeded
from .signals import Signals
from .state_files import DamagedFile, SegmentFile


class PerLearner:
    """A part of which every learner has its own; the checkpoint holds all of them.

    `state` and `load` are exchanges: every learner must call them, in the same order. A checkpoint
    of a run that lost a learner is not complete: then the part starts anew on all of them.
    """

    def __init__(self, part: Saved, learners: Learners, anew: Callable[[], object]) -> None:
        self._part, self._learners, self._anew = part, learners, anew

    def state(self) -> State:
        if not self._learners.is_whole:
            return {"complete": False, "learners": []}
        return {"complete": True, "learners": self._learners.gathered(self._part.state())}

    def grow(self) -> None:
        """No exchange: rows are written by the learner that has them."""
        if isinstance(self._part, Growing):
            self._part.grow()

    def load(self, state: State) -> None:
        """On the leading learner with what was saved, elsewhere with nothing."""
        if self._learners.ordered(int(state.get("complete", False))):
            self._part.load(self._learners.scattered(state.get("learners")))
        else:
            self._anew()


class Shared:
    """A part that is equal on all learners: the leading one's is saved, and loaded by all."""

    def __init__(self, part: Saved, learners: Learners) -> None:
        self._part, self._learners = part, learners

    def state(self) -> State:
        return self._part.state() if self._learners.leads else {}

    def load(self, state: State) -> None:
        self._part.load(self._learners.broadcast(state))


class WantedFiles(NamedTuple):
    """Files of rows that a checkpoint refers to; each learner says whether it has its own."""

    folder: Path
    """Where they are on the leading learner's machine."""
    files: Sequence[SegmentFile]


class LearnerGroup:
    """What learners exchange at every turn, by the same calls on every one of them.

    To the run of the leading learner these are its `Peers`.
    """

    def __init__(self, learners: Learners, parameters: LocalParameters, num_envs: int) -> None:
        """`num_envs`: environments of one learner."""
        self.learners, self._parameters, self._num_envs = learners, parameters, num_envs
        self.games = GameNumbers(num_envs * learners.count)

    @property
    def start_again(self) -> bool:
        return self.learners.start_again

    def check_files(self, folder: Path, files: Sequence[SegmentFile]) -> None:
        """On the leading learner: each looks for its own of these files, on its own machine."""
        self.learners.broadcast(WantedFiles(folder.resolve(), files))
        if fault := next(filter(None, self._faults(folder, files)), None):
            raise DamagedFile(fault)

    def begin(self, beginning: Beginning) -> None:
        """The leading learner says how far the run is."""
        self.learners.broadcast(beginning)

    def hear_beginning(self, out: Path | None) -> Beginning:
        """What the leading learner says first, with this learner's own folder of rows.

        `out` is the run's folder on this machine; None where it is the leading learner's.
        """
        own = None if out is None else out / CHECKPOINTS / SEGMENTS
        while isinstance(said := self.learners.broadcast(), WantedFiles):
            self._faults(own or said.folder, said.files)
        beginning: Beginning = said._replace(segments=own or said.segments)
        remove_unneeded(beginning.segments, self.learners.rank, beginning.needed_segments)
        return beginning

    def _faults(self, folder: Path, files: Sequence[SegmentFile]) -> list[str]:
        """On the leading learner what each of them lacks, or nothing for one that has all."""
        fault, rank = "", self.learners.rank
        try:
            check_files(folder, files_of(files, rank))
        except DamagedFile as error:
            fault = f"learner {rank} cannot use its rows: {error}"
        return self.learners.gathered(fault)

    def keep(self, names: frozenset[str]) -> None:
        """On the leading learner: says which files of rows are still needed."""
        if self.learners.is_whole:
            self.learners.broadcast(names)

    def hear_needed(self, folder: Path) -> None:
        """Removes this learner's files that are not needed any more."""
        remove_unneeded(folder, self.learners.rank, self.learners.broadcast())

    def order(self, order: int = GO) -> int:
        """The leading learner's order; parameters are compared now and then, and when saved."""
        order = self.learners.ordered(order)
        network, version = self._parameters.network, self._parameters.version
        self.learners.check(network, version, now=order != GO)
        return order

    def gathered(self, ends: Sequence[EpisodeEnd]) -> Sequence[EpisodeEnd]:
        """On the leading learner the games that all have finished, by global environments."""
        if not self.learners.total(len(ends)):
            return []
        return self.games.give(
            end._replace(env=rank * self._num_envs + end.env)
            for rank, theirs in enumerate(self.learners.gathered(list(ends)))
            for end in theirs
        )

    def give_up(self) -> bool:
        """The run has failed here: a checkpoint would lack the other learners' parts."""
        self.learners.is_whole = False
        return False

    def saved(self, parts: Mapping[str, Saved], anew: Callable[[], object]) -> dict[str, Saved]:
        """Parts as a checkpoint of all learners holds them: parameters are equal on all of them,
        every other part is each learner's own.

        `anew` starts new games where a checkpoint lacks those of a lost learner.
        """
        found: dict[str, Saved] = {
            name: PerLearner(part, self.learners, anew if name == "sampler" else lambda: None)
            for name, part in parts.items()
        }
        if self.learners.leads:
            found["games"] = self.games
        return {**found, "parameters": Shared(parts["parameters"], self.learners)}


class FollowerRun:
    """The run of a learner that does not lead."""

    def __init__(self, group: LearnerGroup, progress: Progress, out: Path | None = None) -> None:
        """Hears first how far the run is; `out` is its folder on this machine, if it is named."""
        self.progress, self.time_split = progress, progress.time_split
        self._group, self._beginning = group, group.hear_beginning(out)
        self._saved: Mapping[str, Saved] = {}
        self._signals = Signals(speaks=False)
        self.drain_episodes: Callable[[], Sequence[EpisodeEnd]] = list
        """Games finished since the last call; set by the loop that has them."""

    def segments(self, name: str) -> Segments:
        """Rows of this learner, in the folder of the run on its own machine."""
        return Segments(self._beginning.segments, name)

    @property
    def replay_segment_agent_steps(self) -> int:
        return self._beginning.replay_segment_agent_steps

    @contextmanager
    def running(
        self, saved: Mapping[str, Saved], begin: Callable[[bool], object]
    ) -> Iterator[None]:
        """Loads with the leading learner or begins anew, and saves with it at the end."""
        self._saved = saved
        if self._beginning.resumed_at is None:
            begin(False)
        else:
            self.progress.advance(self._beginning.resumed_at)
            self.progress.turn = self._beginning.turn
            for part in saved.values():
                part.load({})
        # Signals belong to the leading learner.
        with self._signals, self._signals.deferred(), frozen_garbage():
            yield
            self._obey()

    def goes_on(self) -> bool:
        """Obeys: goes on, saves and goes on, or ends."""
        if not self.progress.end_turn():
            return not self.breaks_off()
        return self._obey() != STOP

    def breaks_off(self) -> bool:
        """Obeys in the midst of a turn."""
        return self._group.order() == STOP

    def collected(self, slot: Slot) -> None:
        self.progress.advance(slot.num_steps * slot.agent_steps_per_step)
        self._group.gathered(self.drain_episodes())

    def updated(self, metrics: Mapping[str, Metric], norms: Mapping[str, Metric]) -> None:
        """The leading learner logs its own."""

    def log(self, metrics: Mapping[str, Metric]) -> None:
        """The leading learner logs its own."""

    def _obey(self) -> int:
        order = self._group.order()
        for part in self._saved.values():
            if isinstance(part, Growing):
                part.grow()
            if order == SAVE:
                part.state()
        if order == SAVE:
            self._group.hear_needed(self._beginning.segments)
        return order
