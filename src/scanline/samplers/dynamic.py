"""Dynamic sampler: agents in flight, served in whatever batches are ready.

Takes an engine whose groups are agents; one thread receives finished steps, any number of threads
`collect`: they decide for agents that wait, until a segment is full. Knows no store or learner.

An agent is a group of environments that waits for actions, is stepped by the engine, and waits
again; none waits for the slowest one. Its steps go into a segment, a slot of its own. When that is
full, the next decision, which is made for the observation after its last step, completes it, and
the agent goes on in the empty slot that a collecting thread brings.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor

from .. import random
from ..devices import HOST, Device, download
from ..engines.interface import Engine, EngineError
from ..interfaces import BuildContext, Policy
from ..records import Array, EpisodeEnd, Slot, State, to_array
from ..settings import at_least
from ..stores import SegmentSettings
from ..threads import BoundedQueue, heartbeat
from .episodes import Episodes
from .lockstep import DecorrelationDraw
from .resets import ResetMode
from .slot_views import Scratch, StackState

_PATIENCE_SECONDS = 0.1
"""Longest wait for agents before a heartbeat."""
_SENT_SECONDS = 60.0
"""Longest wait for the count of a step that the engine was faster to finish."""


@dataclass(frozen=True, kw_only=True)
class DynamicSettings:
    """How agents are served."""

    needs: ClassVar[frozenset[str]] = frozenset({"segments", "free threads"})
    gives: ClassVar[frozenset[str]] = frozenset({"agents"})

    num_envs: int = 32
    """Environments; all of them act unless a controller lets fewer."""
    envs_per_agent: int = 1
    """Environments that an agent steps together; GA3C's agents have one."""
    rollout_agent_steps: int = 5
    """Agent steps of every environment per segment."""
    min_predictions: int = 1
    """Agents for which a predictor waits before it decides, up to the timeout."""
    max_predictions: int = 128
    """Most environments of one inference."""
    prediction_timeout_seconds: float = 0.002
    """Longest wait for `min_predictions` once there is one, in seconds."""
    decorrelation_agent_steps: ClassVar[int] = 0
    decorrelation_draw: ClassVar[DecorrelationDraw] = "up-to"
    reset_mode: ClassVar[ResetMode] = "inline"
    reserves: ClassVar[int] = 0

    def __post_init__(self) -> None:
        if self.num_envs < 1 or self.envs_per_agent < 1 or self.num_envs % self.envs_per_agent:
            raise ValueError(
                f"num_envs={self.num_envs} does not divide among agents of envs_per_agent="
                f"{self.envs_per_agent}; use a multiple of it."
            )
        at_least(1, self, "rollout_agent_steps")
        most = self.max_predictions // self.envs_per_agent
        if not 1 <= self.min_predictions <= most or self.prediction_timeout_seconds < 0:
            raise ValueError(
                f"min_predictions={self.min_predictions} agents must be at least 1 and fit into "
                f"max_predictions={self.max_predictions} environments, {self.envs_per_agent} each."
            )

    @property
    def num_groups(self) -> int:
        """Agents: each is a group of the engine."""
        return self.num_envs // self.envs_per_agent

    @property
    def horizon_agent_steps(self) -> int:
        return self.rollout_agent_steps

    def build(self, context: BuildContext) -> DynamicSampler:
        return DynamicSampler(context.engine, self, context.seed, context.device)

    def check(self, store: SegmentSettings) -> None:
        """Refuses a queue that can never hold what an update needs."""
        joined = store.joined_segments(self.rollout_agent_steps * self.envs_per_agent)
        if joined > store.queue_segments:
            raise ValueError(
                f"min_batch_agent_steps={store.min_batch_agent_steps} needs {joined} segments, but "
                f"queue_segments={store.queue_segments}; use at least {joined}."
            )


class Segment:
    """A slot and its arrays as NumPy sees them: ten times as quick to index as tensors."""

    def __init__(self, slot: Slot, scratch: Scratch) -> None:
        self.slot, envs = slot, slice(0, slot.actions.shape[1])
        self.targets = [scratch.step_arrays(slot, t, envs) for t in range(slot.num_steps)]
        """Where the engine writes each step."""
        self.first, self.last = StackState.of(slot, 0), StackState.of(slot, slot.num_steps)
        self.actions, self.version = to_array(slot.host.actions), to_array(slot.version)
        is_there = slot.staging is not None
        self.columns: dict[str, Any] = {
            name: column if is_there else to_array(column) for name, column in slot.columns.items()
        }
        """Arrays of the host, or tensors of the slot's device."""
        self._frames, self._depth = to_array(slot.host.frames), to_array(slot.depth)

    def observe(self, t: int, out: Array) -> None:
        """Writes the observations [b, S, *frame] before step t."""
        stack = self.slot.stack
        if self._depth[t].min() < stack:
            out[:] = to_array(self.slot.observation(t))
        else:
            out[:] = self._frames[t : t + stack].swapaxes(0, 1)


class Decision(NamedTuple):
    """What a policy with so many updates has decided for one agent."""

    actions: Array  # [b]
    actions_there: Tensor  # [b], where the policy is
    columns: dict[str, Any]  # each [b, ...]: arrays of the host, or tensors of a device
    version: int


@dataclass(eq=False)
class Agent:
    """A group of environments: its segment and its place in it."""

    segment: Segment
    draws: random.EnvStream
    t: int = 0
    env_steps: int = 0
    ready_seconds: float = 0.0
    next: Decision | None = None
    """Of an agent whose segment is full: for the step after it."""


class DynamicSampler:
    """Agents of one engine. `receive` is for one thread, `collect` for any number."""

    def __init__(
        self, engine: Engine, settings: DynamicSettings, seed: int, device: Device = HOST
    ) -> None:
        self.engine, self.settings, self._seed, self._device = engine, settings, seed, device
        self._size = settings.envs_per_agent
        self._all = slice(0, self._size)
        self._scratch = Scratch.allocate(engine.spaces, self._size)  # of the receiving thread
        self._segments: dict[int, Segment] = {}
        self.requests: BoundedQueue[int] = BoundedQueue(settings.num_groups)
        """Agents that wait for a decision."""
        self._full: deque[int] = deque()
        """Agents that have one, and wait for an empty segment."""
        self.episodes = Episodes(settings.num_envs)
        self.agent_steps = 0
        """Steps that were received, of all environments."""
        self.batch_sizes: Counter[int] = Counter()
        """Environments of an inference, to inferences."""
        self.wait_seconds = 0.0
        """Time that environments have waited for a decision, all together."""
        self._num_sent = self._num_received = 0
        self._counting, self._parking = threading.Lock(), threading.Lock()
        self._num_active = settings.num_groups
        self._parked: set[int] = set()
        self._sent = threading.Semaphore(0)
        self._agents: list[Agent] = []

    @property
    def num_under_way(self) -> int:
        """Agents whose step the engine has not finished."""
        return self._num_sent - self._num_received

    def start(self, slot: Callable[[], Slot], num_active: int) -> None:
        """Starts all games, each agent in a segment that `slot` gives, and lets some agents act."""
        self._num_active = num_active
        ids = self.engine.settings.first_env_id + np.arange(self.settings.num_envs)
        for group in range(self.settings.num_groups):
            own = ids[group * self._size : (group + 1) * self._size]
            into = slot()
            draws = random.EnvStream(self._seed, "act", own)
            self._agents.append(Agent(self._segment(into), draws))
            # A reset writes the newest frame and the depth before step 0.
            before = self._scratch.step_arrays(into, -1, self._all)
            self.engine.reset(group, before)
            self._scratch.keep_starts(into, -1, self._all, before.depth)
            into.upload_frames(-1)
            self._ask(group)

    def receive(self, timeout_seconds: float) -> None:
        """Takes in finished steps, and asks for the decisions that follow them."""
        if not self._sent.acquire(timeout=timeout_seconds):
            return  # no agent is under way
        self._sent.release()
        for group in self.engine.poll(timeout_seconds):
            if not self._sent.acquire(timeout=_SENT_SECONDS):
                raise EngineError(f"Agent {group} has finished a step that was never sent.")
            agent = self._agents[group]
            arrays = agent.segment.targets[agent.t]
            self.engine.recv(group, arrays)
            agent.segment.slot.upload_frames(agent.t)
            if arrays.truncated.any():
                self._scratch.keep_finals(agent.segment.slot, agent.t, self._all, arrays.truncated)
            self._scratch.keep_starts(agent.segment.slot, agent.t, self._all, arrays.depth)
            with self._counting:
                envs = slice(group * self._size, (group + 1) * self._size)
                ended = arrays.terminated | arrays.truncated
                self.episodes.note(envs, arrays.raw_reward, ended)
                self.agent_steps += self._size
                self._num_received += 1
            agent.t, agent.env_steps = agent.t + 1, agent.env_steps + 1
            self._ask(group)

    def _ask(self, group: int) -> None:
        self._agents[group].ready_seconds = time.perf_counter()
        with self._parking:
            if group >= self._num_active:
                self._parked.add(group)
                return
        self.requests.put(group, 0.0)

    def let_act(self, num_agents: int) -> None:
        """So many agents act from now on; the others stop after the step they are in."""
        with self._parking:
            self._num_active = num_agents
            woken = sorted(group for group in self._parked if group < num_agents)
            self._parked -= set(woken)
        for group in woken:
            self.requests.put(group, 0.0)

    def collect(self, policy: Policy, into: Slot) -> Slot:
        """Serves waiting agents until a segment is full; its agent goes on in `into`."""
        settings = self.settings
        while True:
            try:
                group = self._full.popleft()
            except IndexError:
                groups = self.requests.take(
                    settings.min_predictions,
                    settings.max_predictions // self._size,
                    timeout_seconds=settings.prediction_timeout_seconds,
                    patience_seconds=_PATIENCE_SECONDS,
                )
                if groups:
                    self.serve(groups, policy)
                heartbeat()
            else:
                return self._completed(group, into)

    def serve(self, groups: Sequence[int], policy: Policy) -> None:
        """One inference for these agents; sends the actions of those whose segment has room."""
        agents = [self._agents[group] for group in groups]
        num_draws = policy.draws_per_step
        uniforms = torch.cat([agent.draws.at(agent.env_steps, num_draws) for agent in agents])
        acted = policy(self._observations(agents), self._device.upload(uniforms), self.agent_steps)
        actions, columns = download(acted.actions), dict[str, Any](acted.columns)
        if self._device.is_host:
            columns = {name: to_array(column) for name, column in columns.items()}
        version = policy.version
        waited_seconds = sum(time.perf_counter() - each.ready_seconds for each in agents)
        with self._counting:
            self.batch_sizes[len(actions)] += 1
            self.wait_seconds += waited_seconds * self._size
        for place, (group, agent) in enumerate(zip(groups, agents, strict=True)):
            rows = slice(place * self._size, (place + 1) * self._size)
            own = {name: column[rows] for name, column in columns.items()}
            decision = Decision(actions[rows], acted.actions[rows], own, version)
            if agent.t == agent.segment.slot.num_steps:
                agent.next = decision
                self._full.append(group)
            else:
                self._act(group, agent, decision)

    def _act(self, group: int, agent: Agent, decision: Decision) -> None:
        segment, t = agent.segment, agent.t
        segment.actions[t], segment.version[t] = decision.actions, decision.version
        if segment.slot.staging is not None:
            segment.slot.actions[t] = decision.actions_there
        for name, stored in segment.columns.items():
            stored[t] = decision.columns[name]
        self.engine.send(group, decision.actions)
        with self._counting:
            self._num_sent += 1
        self._sent.release()

    def _observations(self, agents: Sequence[Agent]) -> Tensor:
        """What all environments of these agents see, [N, S, *frame], where the policy is."""
        if not self._device.is_host:
            return torch.cat([agent.segment.slot.observation(agent.t) for agent in agents])
        spaces = self.engine.spaces
        shape = (len(agents), self._size, *spaces.observation_shape)
        found = np.empty(shape, spaces.frame_dtype)
        for agent, out in zip(agents, found, strict=True):
            agent.segment.observe(agent.t, out)
        return torch.from_numpy(found).flatten(0, 1)

    def _completed(self, group: int, into: Slot) -> Slot:
        """The full segment of an agent, which goes on in an empty one with its newest frames."""
        agent = self._agents[group]
        assert agent.next is not None
        old, new, decision = agent.segment, self._segment(into), agent.next
        old.last.copy_to(new.first)
        into.host.finals.clear()
        into.last = {}
        slot = old.slot
        if slot.staging is not None:
            into.frames[: slot.stack] = slot.frames[slot.num_steps :]
            slot.upload_steps()
        slot.last = {n: torch.as_tensor(c).clone() for n, c in decision.columns.items()}
        slot.agent_steps = self.agent_steps - slot.actions.numel()
        agent.segment, agent.t, agent.next = new, 0, None
        self._act(group, agent, decision)
        return slot

    def _segment(self, slot: Slot) -> Segment:
        """The arrays of a slot; made once for each."""
        if id(slot) not in self._segments:
            self._segments[id(slot)] = Segment(slot, self._scratch)
        return self._segments[id(slot)]

    def drain_episodes(self) -> list[EpisodeEnd]:
        """Games finished since the last call."""
        with self._counting:
            return self.episodes.drain().records()

    def state(self) -> State:
        with self._counting:
            return {"agent_steps": self.agent_steps, "episodes": self.episodes.state()}

    def load(self, state: State) -> None:
        """Counts go on; the games in play will never end, and new ones begin in their place."""
        self.agent_steps = state["agent_steps"]
        self.episodes.load(state["episodes"])
        self.episodes.abandon()

    def close(self) -> None:
        """Wakes every thread that waits; the engine is closed where it was built."""
        self.requests.close()
