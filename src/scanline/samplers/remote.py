"""Remote sampler: actors on other machines fill the slots, each for its share of environments.

Takes a cluster's actors, the learner's weights and the store's slots; gives a full slot as soon as
any actor has brought a rollout. Knows no engine, algorithm or optimiser.

Every actor has an engine and a copy of the network, and is asked for one rollout per call, a few
calls ahead, so that it goes on while the learner learns. Weights travel by version: one object per
version, sent to an actor only when it has an older one. The version is stored with every step. An
actor that is lost is replaced, and its games are counted as abandoned.
Nothing is collected that the learner does not take: acting stands still while learning is behind,
and the store owes no update before the steps are there, so a replay's ratio holds from both sides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ..cluster import ClusterSettings, RayActors
from ..interfaces import Policy
from ..records import Array, EpisodeEnd, Slot, Spaces, State, Views, to_array
from ..settings import at_least
from .episodes import GameNumbers
from .wire import Message, SlotReceiver, num_bytes

_STATE = "state/"
"""Prefix of the algorithm's own tensors among the weights."""


@dataclass(frozen=True, kw_only=True)
class RemoteSettings(ClusterSettings):
    """Where actors run, which is no part of a recipe: in this process, or on a Ray cluster."""

    rollouts_ahead: int = 2
    """Rollouts that each remote actor is asked for at a time: 1 acts with the newest weights and
    waits for the learner, 2 goes on meanwhile."""
    publish_every_updates: int = 1
    """Updates between two versions of the weights that remote actors see."""
    deflate: bool = False
    """Deflate frames of remote actors: a sixth to a third of the bytes for a few microseconds per
    step, where the network is the limit."""

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(1, self, "rollouts_ahead", "publish_every_updates")

    @property
    def needs(self) -> frozenset[str]:
        """What remote actors need of the choices of a recipe."""
        return frozenset({"writers"} if self.remote_actors else ())

    @property
    def gives(self) -> frozenset[str]:
        return frozenset()


class WriterStore(Protocol):
    """A store with slots for several writers."""

    def slot(self, writer: int) -> Slot:
        """Where the next rollout of a writer goes."""

    def cut(self, writer: int) -> None:
        """The games of a writer end here, unfinished."""


class RemoteSampler:
    """Rollouts of N actors, in the order in which they arrive."""

    def __init__(
        self,
        actors: RayActors,
        settings: RemoteSettings,
        store: WriterStore,
        weights: Callable[[], tuple[Views, int]],
        spaces: Spaces,
        mark: Callable[[str], Any] = lambda part: None,
    ) -> None:
        """`weights`: those to act with and the updates in them."""
        self._actors, self._settings, self._store, self._weights = actors, settings, store, weights
        self._spaces, self._mark = spaces, mark
        self._num_each = store.slot(0).actions.shape[1]
        self._games = GameNumbers(self._num_each * len(actors))
        self._ends: list[EpisodeEnd] = []
        self._receivers = [SlotReceiver(spaces, self._num_each) for _ in range(len(actors))]
        self._published: tuple[int, Any] = (-1, None)
        self._sent = [-1] * len(actors)
        """Version of the weights that each actor has."""
        self._unasked: list[int] = []
        """Actors that are to be asked for a rollout, as often as they stand here."""
        self.games_go_on = True
        """Whether the games in play are those of the state that was loaded: never after a load."""
        self.num_steps = self.num_bytes = 0
        """Agent steps that were received, and the bytes that they took."""

    def begin(self) -> None:
        for number in range(len(self._actors)):
            self._actors.begin(number)
        self._actors.wait()
        self._unasked = [*range(len(self._actors))] * self._settings.rollouts_ahead

    def collect(self, policy: Policy, into: Slot) -> Slot:
        """The next rollout that arrives, in the slot of the actor that played it."""
        self._mark("acting")
        self._publish()
        message = None
        while message is None:
            for number in self._unasked:
                self._ask(number, into.agent_steps)
            number, message = self._actors.answer()
            self._unasked = [number] if message is not None else self._lost(number)
        self._mark("environment")
        slot = self._store.slot(number)
        slot.agent_steps = into.agent_steps
        self._receivers[number].unpack(message, slot)
        self._take_ends(number, message)
        self.num_steps += slot.actions.numel()
        self.num_bytes += num_bytes(message)
        self._mark("other")
        return slot

    def _publish(self) -> None:
        """One object per version, when enough updates have passed since the last."""
        views, version = self._weights()
        if self._published[1] is None or (
            version - self._published[0] >= self._settings.publish_every_updates
        ):
            self._published = (version, self._actors.share(weights_of(views)))

    def _ask(self, number: int, agent_steps: int) -> None:
        version, shared = self._published
        weights = None if self._sent[number] == version else shared
        self._sent[number] = version
        self._actors.ask(number, "play", weights, version, agent_steps)

    def _lost(self, number: int) -> list[int]:
        """Another actor has begun with new games, no weights and no calls; gives those to make."""
        self._sent[number] = -1
        self._receivers[number] = SlotReceiver(self._spaces, self._num_each)
        self._store.cut(number)
        first = number * self._num_each
        self._end_unfinished(range(first, first + self._num_each))
        return [number] * self._settings.rollouts_ahead

    def _end_unfinished(self, envs: Sequence[int] | range) -> None:
        self._ends += self._games.give(EpisodeEnd(env, np.nan, 0, 0) for env in envs)

    def _take_ends(self, number: int, message: Message) -> None:
        first = number * self._num_each
        rows = zip(message["end_env"], message["end_score"], message["end_length"], strict=True)
        self._ends += self._games.give(
            EpisodeEnd(first + int(env), float(score), int(length), 0)
            for env, score, length in rows
        )

    def abandon(self) -> None:
        """New games take the place of those in play."""
        self._end_unfinished(range(self._num_each * len(self._actors)))

    def drain_episodes(self) -> list[EpisodeEnd]:
        ends, self._ends = self._ends, []
        return ends

    def state(self) -> State:
        """What actors play is theirs: it is not saved."""
        return {"generation": max(self._actors.generations), "games": self._games.state()}

    def load(self, state: State) -> None:
        """Counts go on; all games begin anew."""
        self._games.load(state["games"])
        self._actors.generations = [state["generation"] + 1] * len(self._actors)
        self.games_go_on = False
        self.abandon()
        self.begin()

    def close(self) -> None:
        self._actors.close()


def weights_of(views: Views) -> dict[str, Array]:
    """The weights to act with, and the algorithm's own tensors, as arrays by name."""
    network = (views.behaviour or views.live).state_dict()
    state = {f"{_STATE}{name}": tensor for name, tensor in views.state.items()}
    return {name: to_array(tensor.detach()).copy() for name, tensor in (network | state).items()}


def state_and_network(
    weights: Mapping[str, Array],
) -> tuple[dict[str, Array], dict[str, Array]]:
    """What `weights_of` joined: the algorithm's tensors, and the network's."""
    state = {n.removeprefix(_STATE): a for n, a in weights.items() if n.startswith(_STATE)}
    return state, {n: a for n, a in weights.items() if not n.startswith(_STATE)}


def ends_message(ends: Sequence[EpisodeEnd]) -> Message:
    """Games that ended, as arrays [N]."""
    return {
        "end_env": np.array([end.env for end in ends], np.int64),
        "end_score": np.array([end.score for end in ends], np.float64),
        "end_length": np.array([end.length_agent_steps for end in ends], np.int64),
    }
