"""The records that parts hand to each other, and the protocols they keep.

Takes and gives nothing: only shapes and contracts live here. Every array is time first,
`[T, B, ...]`; `B` counts environments, `S` is the depth of the frame stack.
Knows no engine, network, store or algorithm, so that all of them can agree on it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from . import stacks
from .carried import Carried, Sequences, allocated
from .carried import Column as Column
from .random import SAMPLED, Choice
from .spaces import Spaces as Spaces
from .stacks import Array as Array

State = dict[str, Any]
"""What a part saves: tensors, arrays, numbers, strings, and lists or dictionaries of these."""


@dataclass(frozen=True, eq=False)
class StepArrays:
    """Where an engine writes one step of `b` environments: views into the caller's arrays.

    Each is equal to itself alone, so that an engine can remember what it knows of one.
    """

    frame: Array  # [b, *frame] the newest frame; after an end, the first of the next episode
    depth: Array  # [b] uint8, valid frames of the stack, 1 right after a reset, at most S
    reward: Array  # [b] float32, clipped as the protocol says
    raw_reward: Array  # [b] float32
    terminated: Array  # [b] bool, the game ended
    truncated: Array  # [b] bool, a limit ended the episode
    life_lost: Array  # [b] bool, a life was lost and the game goes on
    lives: Array  # [b] int32
    final_frame: Array  # [b, *frame] last frame of the episode, where terminated or truncated
    start_frames: Array  # [b, num_start_frames, *frame] before `frame`, where depth is 1

    @classmethod
    def allocate(cls, spaces: Spaces, num_envs: int) -> StepArrays:
        """Arrays of their own, of environments that have just begun."""
        frame, dtype = spaces.frame_shape, spaces.frame_dtype
        return cls(
            frame=np.zeros((num_envs, *frame), dtype),
            depth=np.ones(num_envs, np.uint8),
            reward=np.zeros(num_envs, np.float32),
            raw_reward=np.zeros(num_envs, np.float32),
            terminated=np.zeros(num_envs, np.bool_),
            truncated=np.zeros(num_envs, np.bool_),
            life_lost=np.zeros(num_envs, np.bool_),
            lives=np.zeros(num_envs, np.int32),
            final_frame=np.zeros((num_envs, *frame), dtype),
            start_frames=np.zeros((num_envs, spaces.num_start_frames, *frame), dtype),
        )


class PolicyValue(NamedTuple):
    """Outputs of an actor-critic network."""

    logits: Tensor  # [N, A]
    value: Tensor  # [N]


class QValues(NamedTuple):
    """Outputs of a Q network."""

    q: Tensor  # [N, A]

    @property
    def value(self) -> Tensor:
        """[N] of the best action."""
        return self.q.amax(dim=-1)


class QDistribution(NamedTuple):
    """Outputs of a categorical Q network."""

    logits: Tensor  # [N, A, atoms]


Outputs = Any
"""What a network gives: one of the named tuples above, or a user's own."""


@dataclass(frozen=True)
class Views:
    """Named parameter sets that an algorithm may look at."""

    live: torch.nn.Module
    """The parameters that learning changes."""
    target: torch.nn.Module | None = None
    """A lagged copy."""
    behaviour: torch.nn.Module | None = None
    """The parameters that act, where they are not the live ones."""
    state: Mapping[str, Tensor] = field(default_factory=dict)
    """The algorithm's own tensors, as `init` made them and `prepare` last gave them."""


@dataclass(frozen=True)
class ActContext:
    """What `act` may use besides the outputs of the network."""

    views: Views
    uniforms: Tensor
    """[b, n] numbers in [0, 1), n as the algorithm's `draws_per_step` says, keyed by environment
    and its step: the only chance in acting."""
    agent_steps: int
    """Global count at this step: the argument of every schedule."""
    choice: Choice = SAMPLED
    """How actions are chosen; training samples."""


class Acted(NamedTuple):
    """What `act` decides."""

    actions: Tensor  # [b] int64
    columns: Mapping[str, Tensor]  # each [b, ...], stored with the step
    carried: Mapping[str, Tensor] = MappingProxyType({})  # each [b, ...], of a network with memory


_STEPS = ("actions", "reward", "raw_reward", "terminated", "truncated", "life_lost")
"""Arrays [T, B] of every slot."""


@dataclass(eq=False)
class Slot:
    """One rollout's arrays, the store's, filled in place by the sampler: views stay valid."""

    frames: Tensor  # [S + T, B, *frame]; entry S - 1 + t is the newest frame of step t
    depth: Tensor  # [T + 1, B] uint8
    actions: Tensor  # [T, B] int64
    reward: Tensor  # [T, B]
    raw_reward: Tensor  # [T, B]
    terminated: Tensor  # [T, B] bool
    truncated: Tensor  # [T, B] bool
    life_lost: Tensor  # [T, B] bool
    version: Tensor  # [T] int64, updates in the weights that chose the step
    columns: dict[str, Tensor]  # each [T, B, ...]
    finals: stacks.SparseFrames
    """True last observations [F, S, *frame] of truncated steps, F of them; room for one of every
    environment, and more as they come."""
    starts: stacks.SparseFrames
    """Frames [F, num_start_frames, *frame] that fill the stacks of new episodes, where the
    environment gives them; at the step of an episode's first frame. The same room."""
    agent_steps: int = 0
    """Global count before the slot's first step."""
    last: dict[str, Tensor] = field(default_factory=dict)
    """Columns [B, ...] that acting gave after the last step, where that is known already."""
    padding: str = "zeros"
    """How stacks are filled right after a reset."""
    life_loss_ends_return: bool = False
    num_learners: int = 1
    """Learners that each fill such a slot at the same time."""
    valid: Tensor | None = None
    """[T, B] bool where some steps may not have been played; None where all were."""
    carried: dict[str, Tensor] = field(default_factory=dict)
    """Each [T + 1, B, ...]: what a network with memory carries into every step and out of the
    last one; initial already where an episode begins."""

    @classmethod
    def allocate(
        cls,
        spaces: Spaces,
        num_steps: int,
        num_envs: int,
        columns: Mapping[str, Column],
        carried: Mapping[str, Column] = MappingProxyType({}),
    ) -> Slot:
        """Arrays of one rollout: zeros, and initial values of what is carried."""
        steps = (num_steps, num_envs)
        frame, dtype = spaces.frame_shape, getattr(torch, spaces.frame_dtype)
        return cls(
            frames=torch.zeros((spaces.stack + num_steps, num_envs, *frame), dtype=dtype),
            depth=torch.ones((num_steps + 1, num_envs), dtype=torch.uint8),
            actions=torch.zeros(steps, dtype=torch.int64),
            reward=torch.zeros(steps),
            raw_reward=torch.zeros(steps),
            terminated=torch.zeros(steps, dtype=torch.bool),
            truncated=torch.zeros(steps, dtype=torch.bool),
            life_lost=torch.zeros(steps, dtype=torch.bool),
            version=torch.zeros(num_steps, dtype=torch.int64),
            columns={n: torch.zeros((*steps, *c.shape), dtype=c.dtype) for n, c in columns.items()},
            finals=stacks.SparseFrames((spaces.stack, *frame), dtype, num_envs),
            starts=stacks.SparseFrames((spaces.num_start_frames, *frame), dtype, num_envs),
            padding=spaces.stack_padding,
            life_loss_ends_return=spaces.life_loss_ends_return,
            carried=allocated(carried, num_steps + 1, num_envs),
        )

    @staticmethod
    def num_bytes(
        spaces: Spaces, num_steps: int, num_envs: int, columns: Mapping[str, Column]
    ) -> int:
        """Bytes of what `allocate` makes of the same arguments."""
        frames = spaces.stack + num_steps + spaces.stack + spaces.num_start_frames
        step = 8 + 2 * 4 + 3 + 1  # action, two rewards, three ends, depth
        step += sum(math.prod(each.shape) * each.dtype.itemsize for each in columns.values())
        return num_envs * (frames * spaces.frame_bytes + num_steps * step)

    def part(self, start: int, num_steps: int, envs: slice = slice(None)) -> Slot:
        """The same memory, fewer steps and environments; finals and starts are copies."""
        end, stack = start + num_steps, self.stack
        return replace(
            self,
            frames=self.frames[start : end + stack, envs],
            depth=self.depth[start : end + 1, envs],
            version=self.version[start:end],
            **{name: getattr(self, name)[start:end, envs] for name in _STEPS},
            columns={name: column[start:end, envs] for name, column in self.columns.items()},
            carried={name: each[start : end + 1, envs] for name, each in self.carried.items()},
            valid=None if self.valid is None else self.valid[start:end, envs],
            finals=self.finals.part(start, end, envs, origin=start),
            starts=self.starts.part(start + 2 - stack, end + 1, envs, origin=start),
            last={},
        )

    def note_playing(self, t: int, envs: slice, playing: Array) -> None:
        """Which of these environments have played step t; a slot filled again notes all steps."""
        if self.valid is None:
            self.valid = torch.ones_like(self.terminated)
        self.valid[t, envs] = torch.from_numpy(playing)

    @property
    def num_steps(self) -> int:
        return self.actions.shape[0]

    @property
    def stack(self) -> int:
        return self.frames.shape[0] - self.num_steps

    @property
    def agent_steps_per_step(self) -> int:
        """What one step of this slot adds to the global count, all learners together."""
        return self.actions.shape[1] * self.num_learners

    @property
    def agent_steps_after(self) -> int:
        """Global count after the slot's last step."""
        return self.agent_steps + self.num_steps * self.agent_steps_per_step

    @property
    def terminal(self) -> Tensor:
        """Steps without a future [T, B]: the game ended, or a life where that counts."""
        return self.terminated | self.life_lost if self.life_loss_ends_return else self.terminated

    def ends(self, t: Any = slice(None), envs: slice = slice(None)) -> Tensor:
        """Steps after which a return is cut: what is carried into the next one is initial."""
        ended = self.terminated[t, envs] | self.truncated[t, envs]
        return ended | self.life_lost[t, envs] if self.life_loss_ends_return else ended

    def carried_at(self, t: Any, envs: Any = slice(None)) -> Carried | None:
        """What a network with memory carries into one step, or into one of each environment."""
        state = {name: each[t, envs] for name, each in self.carried.items()}
        return Carried(state) if state else None

    def sequences(self, num_steps: int) -> Sequences | None:
        """The first T or T + 1 observations as a network with memory takes them; else None."""
        return Sequences.of(self.carried, self.ends(), num_steps) if self.carried else None

    def padding_from(self, t: int, envs: Array | None = None) -> stacks.Padding:
        """What fills young stacks from this step on, of some environments or all."""
        return stacks.Padding(self.padding, self.starts, t, envs)

    def observation_view(self, t: int, envs: slice = slice(None)) -> stacks.ObservationView:
        """Observations of these environments before step t; t = T is after the last step."""
        planes = stacks.step_planes(self.frames[t : t + self.stack, envs])
        numbers = np.arange(self.depth.shape[1])[envs]
        return stacks.ObservationView(
            planes, self.depth[t : t + 1, envs], self.padding_from(t, numbers)
        )

    @cached_property
    def _views(self) -> dict[int, stacks.ObservationView]:
        """Views of all environments by step, made when first asked for."""
        return {}

    def observation(self, t: int) -> Tensor:
        """Observations [B, S, *frame] before step t; t = T is the one after the last step."""
        if t not in self._views:
            self._views[t] = self.observation_view(t)
        return self._views[t].observations()

    def rollout_view(self) -> stacks.ObservationView:
        """Observations [T * B, S, *frame] before all steps, of a slot with all environments."""
        planes = stacks.window_planes(self.frames[:-1], self.num_steps)
        return stacks.ObservationView(planes, self.depth[:-1], self.padding_from(0))

    def observations(self) -> Tensor:
        """Observations [T * B, S, *frame] of all steps; a view unless an episode is young."""
        frames, depth = self.frames[:-1], self.depth[:-1]
        return stacks.windows(frames, depth, self.padding_from(0)).flatten(0, 1)

    def states(self) -> Tensor:
        """Observations [(T + 1) * B, S, *frame]: of all steps, and those after the last one."""
        return stacks.windows(self.frames, self.depth, self.padding_from(0)).flatten(0, 1)


@dataclass(frozen=True)
class Experience:
    """What `prepare` gives to the store: the slot and what was computed from it."""

    slot: Slot
    columns: Mapping[str, Tensor] = field(default_factory=dict)  # each [T, B, ...]
    state: Mapping[str, Tensor] | None = None
    """New values of the algorithm's own state, if it has one."""


@dataclass(frozen=True)
class Batch:
    """What one loss sees."""

    observations: Tensor  # [N, S, *frame]; with `slot` its states, [(T + 1) * B, S, *frame]
    actions: Tensor  # [N]
    columns: Mapping[str, Tensor]  # each [N, ...]: rewards, returns, log-probabilities, ...
    agent_steps: int
    """Global count when the batch was drawn: the argument of every schedule."""
    update: int
    """Number of this update, the key of its random draws."""
    random: torch.Generator | None = None
    """Keyed by the update, and on the CPU: the only chance in a loss. Every store gives one."""
    next_observations: Tensor | None = None
    """[N, S, *frame] n steps later, for losses that bootstrap from a pair."""
    slot: Slot | None = None
    """The same steps as whole sequences [T, B], for losses that need time."""
    weights: Tensor | None = None
    """[N] importance weights of a prioritised draw."""
    indices: Tensor | None = None
    """[N] places in the store, for `feedback`."""
    sequences: Sequences | None = None
    """Of a network with memory: how the rows of `observations` are sequences."""

    def outputs(self, network: torch.nn.Module, inputs: Tensor | None = None) -> Outputs:
        """What any network gives for the observations, or for inputs made of them, [N, ...]."""
        rows = self.observations if inputs is None else inputs
        return network(rows) if self.sequences is None else self.sequences.outputs(network, rows)

    def next_outputs(self, network: torch.nn.Module, inputs: Tensor) -> Outputs:
        """The same for the next observations, or for inputs made of them."""
        sequences = self.sequences
        return network(inputs) if sequences is None else sequences.next_outputs(network, inputs)


@dataclass(frozen=True)
class LossResult:
    """What `loss` judges."""

    losses: Mapping[str, Tensor]
    """A scalar per parameter group; 'all' for a network with one group."""
    metrics: Mapping[str, Tensor | float] = field(default_factory=dict)
    """Detached scalars, read only when a row is written."""
    priorities: Tensor | None = None
    """[N] new priorities of the batch."""


class EpisodeEnd(NamedTuple):
    """One finished game."""

    env: int
    score: float
    """Sum of raw rewards over the whole game, lives included; no number if it was abandoned."""
    length_agent_steps: int
    started_at: int
    """Number of games started before it, over all environments."""


def to_array(tensor: Tensor) -> Array:
    """The same memory as a NumPy array."""
    array: Array = tensor.numpy(force=True)
    return array
