"""The concurrent loop of Fast DQN (Daley and Amato 2021): the target plays a block of steps while
the live weights learn from what was visible before it.

Takes the parts of a run, one or more samplers and a staged store; gives nothing back.
Knows no algorithm, engine, file or clock by name. `Concurrent` is the pace that runs it.

Nothing that a thread reads changes while it reads it: samplers act with the target and put into
rows of their own, the learner draws from what was visible before the block. Between two blocks all
wait, steps become visible in the order of environments and the target is copied. So neither the
schedule of threads nor whether learning runs beside playing or after it can change a result, and a
block that is left anywhere goes on from there: how many rounds each sampler has played and how many
updates are done is all there is to know of it.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Protocol, cast

import torch

from ..acting import RandomPolicy
from ..interfaces import Parameters, Policy, Run, Runtime, RuntimeContext, Saved, Store
from ..networks import share_cores_here
from ..records import Batch, EpisodeEnd, Slot, State, Views
from ..samplers import GameNumbers
from ..threads import WorkerThreads, heartbeat
from .synchronous import learn

TRAINER = "trainer"


class StagedStore(Store, Protocol):
    """A store with a slot per sampler, whose steps become visible when they are committed."""

    settings: Any
    """Has `training_intensity`, `batch_size` and `learning_starts_agent_steps`."""

    @property
    def num_drawable(self) -> int: ...

    def slot(self, writer: int = 0) -> Slot: ...

    def batches(self, num_updates: int | None = None) -> Iterator[Batch]: ...

    def commit(self) -> None: ...

    def cut(self) -> None:
        """All games are begun anew: the newest steps are truncated where they stand."""


class TargetParameters(Parameters, Protocol):
    """Parameters with a target, which acts."""

    def sync_target(self) -> None:
        """Copies the live weights into the target."""


class BlockRun(Run, Protocol):
    """A run whose turns are blocks."""

    def begin_block(self) -> int:
        """Agent steps before the block that begins, or that goes on."""

    def reached(self, agent_steps: int) -> None:
        """Counts the steps inside of a block."""

    def spends(self, is_learning: bool) -> None:
        """The time from now on passes for learning, or for playing."""

    def breaks_off(self) -> bool:
        """Whether the block has to be left where it is."""

    def end_block(self, lag_updates: int, ends: Sequence[EpisodeEnd]) -> None:
        """Counts a whole block with the games that ended in it."""


def loop(block: Block, run: BlockRun) -> None:
    while run.goes_on():
        began_at = run.begin_block()
        block.play_and_learn(run, began_at)
        if block.is_done:
            block.commit(run)


@dataclass(frozen=True, kw_only=True)
class Concurrent:
    """Blocks of steps, played with the target and learned from one block later."""

    target_agent_steps: int = 10_000
    """Agent steps per block: after it all wait, steps become visible, the target is copied."""
    concurrent_training: bool = True
    """Whether a thread learns while the block is played; if not, learning follows playing."""
    synchronised_execution: bool = True
    """Whether one inference serves all environments of a round; if not, each has its own thread."""
    silent_seconds: float = 300.0
    """Seconds without a sign of life after which a thread counts as stuck and the run ends."""
    needs: ClassVar[frozenset[str]] = frozenset({"lasting steps", "lockstep"})
    gives: ClassVar[frozenset[str]] = frozenset({"target"})
    target_rate: ClassVar[float] = 0.0
    acts_with_target: ClassVar[bool] = True
    num_network_threads: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if self.target_agent_steps < 1 or self.silent_seconds <= 0:
            raise ValueError(
                f"target_agent_steps={self.target_agent_steps} must be at least 1 and "
                f"silent_seconds={self.silent_seconds} above 0."
            )

    @property
    def staged_agent_steps(self) -> int:
        return self.target_agent_steps

    def num_samplers(self, num_envs: int) -> int:
        return 1 if self.synchronised_execution else num_envs

    def check(self, sampling: Any, store: Any) -> None:
        """Refuses blocks that do not come out even."""
        block, per_round = self.target_agent_steps, sampling.num_envs * sampling.horizon_agent_steps
        if self.synchronised_execution and sampling.num_envs < 2:
            raise ValueError(
                f"synchronised_execution joins the inferences of several environments, but "
                f"num_envs={sampling.num_envs}; use 2 or more, or synchronised_execution=False."
            )
        if sampling.num_groups != 1:
            raise ValueError(
                f"num_groups={sampling.num_groups}: blocks are played by one group; use 1."
            )
        if block % per_round:
            raise ValueError(
                f"target_agent_steps={block} is not a multiple of num_envs={sampling.num_envs} x "
                f"rollout_agent_steps={sampling.horizon_agent_steps}; use {block // per_round or 1}"
                f" x {per_round} = {(block // per_round or 1) * per_round}."
            )
        if block * store.training_intensity % store.batch_size:
            raise ValueError(
                f"target_agent_steps={block} x training_intensity={store.training_intensity:g} is "
                f"not a multiple of batch_size={store.batch_size}: a block must owe whole updates; "
                "an intensity of batch_size / 4 is one update per 4 steps."
            )

    def build(self, context: RuntimeContext) -> Runtime:
        return ConcurrentRuntime(self, context)


class Block:
    """The parts with their threads, and how far they are in the present block."""

    def __init__(self, pace: Concurrent, context: RuntimeContext) -> None:
        self.parts, self.samplers, self._pace = context.parts, context.samplers, pace
        self._store = cast(StagedStore, context.parts.store)
        self._parameters = cast(TargetParameters, context.parts.parameters)
        self._learning = dataclasses.replace(
            self.parts, store=cast(Store, BlockStore(self._store, self))
        )
        self._names = [f"sampler-{number}" for number in range(len(self.samplers))]
        self._threads = WorkerThreads(pace.silent_seconds, share_cores_here)
        self._envs_each = context.num_envs // len(self.samplers)
        self._numbers = GameNumbers(context.num_envs)
        self._num_actions = context.spaces.num_actions
        self._round_agent_steps = context.num_envs * context.rollout_agent_steps
        self._num_rounds = pace.target_agent_steps // self._round_agent_steps
        owed = pace.target_agent_steps * self._store.settings.training_intensity
        self._num_updates: int = round(owed / self._store.settings.batch_size)
        self._played_rounds, self._updates = [0] * len(self.samplers), 0
        self._is_left = threading.Event()

    def prepopulate(self) -> None:
        """Random steps that count nowhere, until there are enough; then new games begin."""
        policy, played = RandomPolicy(self._num_actions), 0
        enough = self._store.settings.learning_starts_agent_steps
        while played < enough or not self._store.num_drawable:
            for writer in range(len(self.samplers)):
                self._collect(writer, policy, agent_steps=0)
            self._store.commit()
            played += self._round_agent_steps
        self._store.cut()
        self._store.commit()
        for sampler in self.samplers:
            sampler.abandon()
        self._drain()

    def play_and_learn(self, run: BlockRun, began_at: int) -> None:
        """The block, and the updates that the one before it owes; or what is left of them."""
        watch = partial(self._watch, run, began_at)
        self._is_left.clear()
        try:
            for writer, name in enumerate(self._names):
                self._threads.start(name, partial(self._play, writer, began_at))
            if not self._pace.concurrent_training:
                self._threads.wait(watch)
            if not self._is_left.is_set():
                self._threads.start(TRAINER, partial(learn, self._learning, run))
            self._threads.wait(watch)
        finally:
            run.reached(began_at + self._played_agent_steps)

    def _watch(self, run: BlockRun, began_at: int) -> None:
        """What the waiting thread does now and then."""
        run.spends(self._is_learning)
        run.reached(began_at + self._played_agent_steps)
        if run.breaks_off():
            self._is_left.set()

    def commit(self, run: BlockRun) -> None:
        """The steps become visible, and the target is copied."""
        lag_updates = self.parts.parameters.version - self.parts.policy.version
        self._store.commit()
        self._parameters.sync_target()
        self._played_rounds, self._updates = [0] * len(self.samplers), 0
        run.end_block(lag_updates, self._numbers.give(self._drain()))

    @property
    def is_done(self) -> bool:
        return self._played_all and self._learned_all

    @property
    def _played_agent_steps(self) -> int:
        return self._round_agent_steps // len(self.samplers) * sum(self._played_rounds)

    @property
    def _played_all(self) -> bool:
        return min(self._played_rounds) == self._num_rounds

    @property
    def _learned_all(self) -> bool:
        return self._updates == self._num_updates

    @property
    def _is_learning(self) -> bool:
        may_learn = self._pace.concurrent_training or self._played_all
        return may_learn and not self._learned_all

    @property
    def _leaves(self) -> bool:
        """Whether a thread ends before its work does."""
        return self._threads.is_stopping or self._is_left.is_set()

    def _play(self, writer: int, began_at: int) -> None:
        """What is left of the block for one sampler."""
        while self._played_rounds[writer] < self._num_rounds and not self._leaves:
            before = self._played_rounds[writer] * self._round_agent_steps
            self._collect(writer, self.parts.policy, began_at + before)
            self._played_rounds[writer] += 1
            heartbeat()

    def _collect(self, writer: int, policy: Policy, agent_steps: int) -> None:
        """One slot of one sampler; `agent_steps` are those before it."""
        into = self._store.slot(writer)
        into.agent_steps = agent_steps
        slot = self.samplers[writer].collect(policy, into=into)
        with torch.no_grad():
            self._store.put(self.parts.algorithm.prepare(self.parts.parameters.read(), slot))

    def batches(self) -> Iterator[Batch]:
        """What is left of the block's updates; a batch is drawn only when it is learned from."""
        for batch in self._store.batches(self._num_updates - self._updates):
            yield batch
            self._updates += 1
            heartbeat()
            if self._leaves:
                return

    def _drain(self) -> list[EpisodeEnd]:
        """Finished games, sampler by sampler; environments counted over all of them."""
        return [
            end._replace(env=end.env + number * self._envs_each)
            for number, sampler in enumerate(self.samplers)
            for end in sampler.drain_episodes()
        ]

    def state(self) -> State:
        """How far the block is; the steps and weights that this has led to are other parts'."""
        rounds = {"played_rounds": list(self._played_rounds), "updates": self._updates}
        return {**rounds, "games": self._numbers.state()}

    def load(self, state: State) -> None:
        self._played_rounds, self._updates = list(state["played_rounds"]), state["updates"]
        self._numbers.load(state["games"])

    def close(self) -> None:
        self._threads.close()


class BlockStore:
    """The replay, as `learn` sees it inside of a block."""

    def __init__(self, store: StagedStore, block: Block) -> None:
        self.feedback, self.batches = store.feedback, block.batches


class ConcurrentRuntime:
    """Threads that play and one that learns, block by block."""

    def __init__(self, pace: Concurrent, context: RuntimeContext) -> None:
        self._context, self.inexact = context, context.inexact
        self._block = Block(pace, context)

    def begin(self, is_resumed: bool) -> None:
        if is_resumed:
            return
        for sampler in self._block.samplers:
            sampler.begin()
        self._block.prepopulate()

    def run(self, run: Run) -> None:
        loop(self._block, self._context.in_blocks(run))

    def weights(self) -> tuple[Views, int]:
        parameters = self._block.parts.parameters
        return parameters.read(), parameters.version

    def saved(self) -> Mapping[str, Saved]:
        parts, samplers = self._block.parts, enumerate(self._block.samplers)
        named = {f"sampler_{number}" if number else "sampler": each for number, each in samplers}
        block = {"block": self._block, "parameters": parts.parameters}
        return {**named, "store": parts.store, **block}

    def note(self) -> Mapping[str, Any]:
        return {}

    def halt(self) -> None:
        """Threads wait between two blocks."""

    def close(self) -> None:
        self._block.close()
        self._context.close()
