"""The records that parts hand to each other, and the protocols they keep.

Takes and gives nothing: only shapes and contracts live here. Every array is time first,
`[T, B, ...]`; `B` counts environments, `S` is the depth of the frame stack.
Knows no engine, network, store or algorithm, so that all of them can agree on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from .carried import Column as Column
from .carried import Sequences
from .random import SAMPLED, Choice
from .slots import Slot as Slot
from .slots import to_array as to_array
from .spaces import Spaces as Spaces
from .stacks import Array as Array

State = dict[str, Any]
"""What a part saves: tensors, arrays, numbers, strings, and lists or dictionaries of these."""


Frames = Any
"""Frames of a step: an array of the host, or a tensor where `Engine.memory` is."""


@dataclass(frozen=True, eq=False)
class StepArrays:
    """Where an engine writes one step of `b` environments: views into the caller's arrays.

    Each is equal to itself alone, so that an engine can remember what it knows of one.
    """

    frame: Frames  # [b, *frame] the newest frame; after an end, the first of the next episode
    depth: Array  # [b] uint8, valid frames of the stack, 1 right after a reset, at most S
    reward: Array  # [b] float32, clipped as the protocol says
    raw_reward: Array  # [b] float32
    terminated: Array  # [b] bool, the game ended
    truncated: Array  # [b] bool, a limit ended the episode
    life_lost: Array  # [b] bool, a life was lost and the game goes on
    lives: Array  # [b] int32
    final_frame: Frames  # [b, *frame] last frame of the episode, where terminated or truncated
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
