"""Fast DQN's pace (Daley and Amato 2021): play a block with the target while the replay is frozen.

Takes the parts of a run, one or more samplers and a staged replay; gives nothing back.
Knows no algorithm, engine or file by name.

Nothing that a thread reads changes while it reads it: samplers act with the target and put into
rows of their own, the learner draws from what was visible before the block. Between two blocks all
wait, steps become visible in the order of environments and the target is copied. So neither the
schedule of threads nor whether learning runs beside playing or after it can change a result, and a
block that is broken off anywhere goes on from there: how many rounds each sampler has played and
how many updates are done is all there is to know of it.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import torch

from ..acting import RandomPolicy
from ..interfaces import Parts, Policy, Store
from ..networks import share_cores_here
from ..parameters import LocalParameters
from ..records import Batch, EpisodeEnd, State
from ..runs.clock import ENVIRONMENT, LEARNING
from ..runs.game_numbers import GameNumbers
from ..runs.leader import LeaderRun
from ..runs.wrappers import Wrapper
from ..samplers import LockstepSampler, SamplingSettings
from ..stores import Replay, ReplaySettings
from ..threads import WorkerThreads, heartbeat
from .synchronous import learn

TRAINER = "trainer"


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

    def __post_init__(self) -> None:
        if self.target_agent_steps < 1 or self.silent_seconds <= 0:
            raise ValueError(
                f"target_agent_steps={self.target_agent_steps} must be at least 1 and "
                f"silent_seconds={self.silent_seconds} above 0."
            )

    def num_samplers(self, num_envs: int) -> int:
        return 1 if self.synchronised_execution else num_envs


def check(pace: Concurrent, sampling: SamplingSettings, store: ReplaySettings) -> None:
    """Refuses blocks that do not come out even."""
    block, per_round = pace.target_agent_steps, sampling.num_envs * sampling.horizon_agent_steps
    if pace.synchronised_execution and sampling.num_envs < 2:
        raise ValueError(
            f"synchronised_execution joins the inferences of several environments, but num_envs="
            f"{sampling.num_envs}; use 2 or more, or synchronised_execution=False."
        )
    if sampling.num_groups != 1:
        raise ValueError(
            f"num_groups={sampling.num_groups}: blocks are played by one group; use 1."
        )
    if block % per_round:
        raise ValueError(
            f"target_agent_steps={block} is not a multiple of num_envs={sampling.num_envs} x "
            f"rollout_agent_steps={sampling.horizon_agent_steps}; use {block // per_round or 1} x "
            f"{per_round} = {(block // per_round or 1) * per_round}."
        )
    if block * store.training_intensity % store.batch_size:
        raise ValueError(
            f"target_agent_steps={block} x training_intensity={store.training_intensity:g} is not "
            f"a multiple of batch_size={store.batch_size}: a block must owe whole updates; an "
            "intensity of batch_size / 4 is one update per 4 steps."
        )


class Blocks:
    """The loop's parts with their threads, and how far they are in the block."""

    def __init__(
        self,
        parts: Parts,
        learner: LocalParameters,
        samplers: Sequence[LockstepSampler],
        pace: Concurrent,
        settings: Blocking,
    ) -> None:
        assert isinstance(parts.store, Replay)
        self.samplers, self.numbers = samplers, GameNumbers(settings.num_envs)
        self._parts, self._learner = parts, learner
        self._parts_of_block = dataclasses.replace(parts, store=BlockStore(parts.store, self))
        self._replay, self._pace, self._settings = parts.store, pace, settings
        names = [f"sampler-{number}" for number in range(len(samplers))]
        self._names = names
        self._threads = WorkerThreads(pace.silent_seconds, share_cores_here)
        self._num_rounds = pace.target_agent_steps // settings.round_agent_steps
        self._played_rounds = [0] * len(samplers)
        self._updates = 0
        self._breaks_off = threading.Event()

    def prepopulate(self) -> None:
        """Random steps that count nowhere, until there are enough; then new games begin."""
        policy = RandomPolicy(self.samplers[0].engine.spaces.num_actions)
        played = 0
        while played < self._settings.prepopulation_agent_steps or not self._replay.num_drawable:
            for writer in range(len(self.samplers)):
                self._collect(writer, policy, agent_steps=0)
            self._replay.commit()
            played += self._settings.round_agent_steps
        self._replay.cut()
        self._replay.commit()
        for sampler in self.samplers:
            sampler.abandon()
        self._drain()

    def loop(self, run: LeaderRun) -> None:
        """Block after block, as long as the run goes on."""
        while run.goes_on():
            self._block(run)

    def _block(self, session: LeaderRun) -> None:
        """One block, and the updates that the block before it owes; or what is left of them."""
        began_at = session.progress.begin_turn().began_at
        look = partial(self._look, session, began_at)
        self._breaks_off.clear()
        try:
            for writer, name in enumerate(self._names):
                self._threads.start(name, partial(self._play, writer, began_at))
            if not self._pace.concurrent_training:
                self._threads.wait(look)
            if not self._breaks_off.is_set():
                self._threads.start(TRAINER, partial(learn, self._parts_of_block, session))
            self._threads.wait(look)
        finally:
            session.progress.agent_steps = began_at + self._played_agent_steps
        if self._played_all and self._learned_all:
            self._end_block(session)

    def _look(self, session: LeaderRun, began_at: int) -> None:
        """What the waiting thread does now and then."""
        learns = self._pace.concurrent_training or self._played_all
        session.time_split.mark(LEARNING if learns and not self._learned_all else ENVIRONMENT)
        session.progress.agent_steps = began_at + self._played_agent_steps
        if session.breaks_off():
            self._breaks_off.set()

    def _end_block(self, session: LeaderRun) -> None:
        lag_updates = session.progress.updates - self._parts.policy.version
        self._replay.commit()
        self._learner.sync_target()
        self._played_rounds, self._updates = [0] * len(self.samplers), 0
        lag = {"perf/policy_lag": float(lag_updates)}
        session.report(0, 0, lag, self.numbers.give(self._drain()))  # steps are counted already
        session.progress.begin_turn().is_done = True

    @property
    def _played_agent_steps(self) -> int:
        of_one = self._settings.round_agent_steps // len(self.samplers)
        return of_one * sum(self._played_rounds)

    @property
    def _played_all(self) -> bool:
        return min(self._played_rounds) == self._num_rounds

    @property
    def _learned_all(self) -> bool:
        return self._updates == self._settings.block_updates

    @property
    def _leaves(self) -> bool:
        """Whether a thread ends before its work does."""
        return self._threads.is_stopping or self._breaks_off.is_set()

    def close(self) -> None:
        self._threads.close()

    def _play(self, writer: int, began_at: int) -> None:
        """What is left of the block for one sampler."""
        while self._played_rounds[writer] < self._num_rounds and not self._leaves:
            before = self._played_rounds[writer] * self._settings.round_agent_steps
            self._collect(writer, self._parts.policy, began_at + before)
            self._played_rounds[writer] += 1
            heartbeat()

    def _collect(self, writer: int, policy: Policy, agent_steps: int) -> None:
        """One slot of one sampler; `agent_steps` are those before it."""
        into = self._replay.slot(writer)
        into.agent_steps = agent_steps
        slot = self.samplers[writer].collect(policy, into=into)
        with torch.no_grad():
            views = self._parts.parameters.read()
            self._replay.put(self._parts.algorithm.prepare(views, slot))

    def batches(self) -> Iterator[Batch]:
        """What is left of the block's updates; a batch is drawn only when it is learned from."""
        for batch in self._replay.batches(self._settings.block_updates - self._updates):
            yield batch
            self._updates += 1
            heartbeat()
            if self._leaves:
                return

    def state(self) -> State:
        """How far the block is; the steps and weights that this has led to are others' state."""
        return {"played_rounds": list(self._played_rounds), "updates": self._updates}

    def load(self, state: State) -> None:
        self._played_rounds, self._updates = list(state["played_rounds"]), state["updates"]

    def _drain(self) -> list[EpisodeEnd]:
        """Finished games, sampler by sampler; environments counted over all of them."""
        return [
            end._replace(env=end.env + sampler.engine.settings.first_env_id)
            for sampler in self.samplers
            for end in sampler.drain_episodes()
        ]


class BlockStore(Wrapper):
    """The replay, with the batches of a block."""

    def __init__(self, inner: Store, blocks: Blocks) -> None:
        super().__init__(inner)
        self.batches = blocks.batches


@dataclass(frozen=True, kw_only=True)
class Blocking:
    """Sizes of a block, from the settings of sampling and store."""

    num_envs: int
    round_agent_steps: int
    """Agent steps of all environments per slot."""
    block_updates: int
    prepopulation_agent_steps: int

    @classmethod
    def of(cls, pace: Concurrent, sampling: SamplingSettings, store: ReplaySettings) -> Blocking:
        check(pace, sampling, store)
        owed = pace.target_agent_steps * store.training_intensity / store.batch_size
        return cls(
            num_envs=sampling.num_envs,
            round_agent_steps=sampling.num_envs * sampling.horizon_agent_steps,
            block_updates=round(owed),
            prepopulation_agent_steps=store.learning_starts_agent_steps,
        )
