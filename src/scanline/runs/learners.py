"""Several learners as one run: who counts games, who saves what, who follows whom.

Takes the `Learners` of a run; gives the leading learner's side of a session, the session of a
learner that follows, and parts that a checkpoint holds once per learner.
Knows no algorithm and no way of starting processes.

The leading learner decides everything that depends on the clock, on signals or on scores, and
tells it once per turn; the others do the same work and obey. Rows of a replay are written by the
learner that has them, everything else by the leading one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from ..interfaces import Metric, Saved
from ..parameters import Learners, LocalParameters
from ..records import EpisodeEnd, Slot, State
from .game_numbers import GameNumbers
from .garbage import frozen_garbage
from .leader import GO, SAVE, STOP, Beginning, Growing
from .progress import Progress
from .replay_segments import Segments
from .signals import Signals


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
        self._part.load(self._learners.told(state))


class Exchange:
    """What learners tell each other at every turn, the same calls on every one of them."""

    def __init__(self, learners: Learners, parameters: LocalParameters, num_envs: int) -> None:
        """`num_envs`: environments of one learner."""
        self.learners, self._parameters, self._num_envs = learners, parameters, num_envs

    def ordered(self, order: int = GO) -> int:
        """The leading learner's order; parameters are compared now and then, and when saved."""
        order = self.learners.ordered(order)
        network, version = self._parameters.network, self._parameters.version
        self.learners.check(network, version, now=order != GO)
        return order

    def gathered(self, ends: Sequence[EpisodeEnd]) -> list[EpisodeEnd]:
        """On the leading learner the games that all have finished, by global environments."""
        if not self.learners.total(len(ends)):
            return []
        return [
            end._replace(env=rank * self._num_envs + end.env)
            for rank, theirs in enumerate(self.learners.gathered(list(ends)))
            for end in theirs
        ]


class Leading:
    """The leading learner's side: the `Peers` of its session."""

    def __init__(self, exchange: Exchange, numbers: GameNumbers) -> None:
        self._exchange, self._numbers = exchange, numbers

    def begin(self, told: Beginning) -> None:
        self._exchange.learners.told(told)

    def gathered(self, ends: Sequence[EpisodeEnd]) -> Sequence[EpisodeEnd]:
        return self._numbers.give(self._exchange.gathered(ends))

    def order(self, order: int) -> None:
        self._exchange.ordered(order)

    def give_up(self) -> bool:
        self._exchange.learners.is_whole = False
        return False


class Following:
    """What a session is to the loop of a learner that does not lead."""

    def __init__(self, exchange: Exchange, progress: Progress) -> None:
        """Hears first how far the run is and where it lies."""
        self.progress, self.time_split = progress, progress.time_split
        self._exchange = exchange
        self._told: Beginning = exchange.learners.told()
        self._saved: Mapping[str, Saved] = {}
        self._signals = Signals(speaks=False)
        self.drain_episodes: Callable[[], Sequence[EpisodeEnd]] = list
        """Games finished since the last call; set by the loop that has them."""

    def segments(self, name: str) -> Segments:
        """Rows of this learner, beside the leading learner's checkpoints."""
        return Segments(self._told.segments, name)

    @property
    def replay_segment_agent_steps(self) -> int:
        return self._told.replay_segment_agent_steps

    @contextmanager
    def running(
        self, saved: Mapping[str, Saved], begin: Callable[[bool], object]
    ) -> Iterator[None]:
        """Loads with the leading learner or begins anew, and saves with it at the end."""
        self._saved = saved
        if self._told.resumed_at is None:
            begin(False)
        else:
            self.progress.advance(self._told.resumed_at)
            self.progress.turn = self._told.turn
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
        return self._exchange.ordered() == STOP

    def collected(self, slot: Slot) -> None:
        self.progress.advance(slot.num_steps * slot.agent_steps_per_step)
        self._exchange.gathered(self.drain_episodes())

    def updated(self, metrics: Mapping[str, Metric], norms: Mapping[str, Metric]) -> None:
        """The leading learner logs its own."""

    def log(self, metrics: Mapping[str, Metric]) -> None:
        """The leading learner logs its own."""

    def _obey(self) -> int:
        order = self._exchange.ordered()
        for part in self._saved.values():
            if isinstance(part, Growing):
                part.grow()
            if order == SAVE:
                part.state()
        return order
