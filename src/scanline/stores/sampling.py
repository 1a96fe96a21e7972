"""Sampling rules: which stored steps a batch is made of.

Takes, at every commit, the range of rows that may be drawn; gives indices of the ring for a batch,
and where draws are not uniform the weights that correct for it. Knows no frame, reward or network.

A rule's settings are a frozen record; `start` makes the part that holds state. The replay calls the
rule and never asks which one it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Protocol

import numpy as np
import torch
from torch import Tensor

from .. import random
from ..records import Array, State, to_array
from ..schedules import Linear
from .ring import RingLayout, RingRange

FAN_OUT = 32
"""Children of a node of the sum tree."""
_SHIFT = 5


@dataclass(frozen=True)
class Draw:
    """One draw: the key of its random numbers, and the argument of schedules."""

    seed: int
    purpose: str = "replay"
    first_env_id: int = 0
    """Global number of the first environment, so that every learner has random numbers of its
    own."""
    number: int = 0
    agent_steps: int = 0

    @cached_property
    def random(self) -> torch.Generator:
        """Of this draw alone."""
        return random.generator(self.seed, self.purpose, self.number, self.first_env_id)


class Rule(Protocol):
    """The part of a sampling rule that holds state."""

    weights: Tensor | None
    """[N] weights of the last draw; None where all are 1."""
    learns: bool
    """Whether it uses priorities; else they need not come from a device."""

    def move(self, drawable: RingRange) -> None:
        """Draws from this range from now on."""

    def draw(self, draw: Draw, indices: Array) -> None:
        """Fills indices [N]."""

    def learn(self, indices: Array, priorities: Array) -> None:
        """Takes new priorities of indices that were drawn."""

    def state(self) -> State: ...

    def load(self, state: State) -> None: ...


class Sampling(Protocol):
    """Settings of a rule."""

    def start(self, layout: RingLayout, batch_size: int) -> Rule: ...

    def num_bytes(self, size: int) -> int:
        """Memory that the rule takes for so many indices."""


@dataclass(frozen=True, kw_only=True)
class UniformSampling:
    """Every step alike."""

    spread: Literal["steps", "per-env"] = "steps"
    """'steps': any step of any environment; 'per-env': environments take turns and chance, keyed by
    their global numbers, picks the step, so that learners do not change the draw."""

    def start(self, layout: RingLayout, batch_size: int) -> Rule:
        rule = UniformRule if self.spread == "steps" else UniformPerEnvRule
        return rule(layout, batch_size)

    def num_bytes(self, size: int) -> int:
        return 0


class UniformRule:
    """Draws with replacement; needs no memory of its own."""

    learns = False

    def __init__(self, layout: RingLayout, batch_size: int) -> None:
        self.weights: Tensor | None = None
        self._layout = layout
        self._uniforms = torch.empty(batch_size, dtype=torch.float64)
        self._number = np.zeros(batch_size, np.int64)
        self.move(RingRange.empty(layout.num_envs))

    def move(self, drawable: RingRange) -> None:
        self._bounds = np.cumsum(drawable.last - drawable.first)
        # Row of number k in environment b is k + shift[b], numbers counted over all environments.
        self._shift = drawable.last - self._bounds

    def draw(self, draw: Draw, indices: Array) -> None:
        torch.rand(len(indices), generator=draw.random, dtype=torch.float64, out=self._uniforms)
        np.multiply(to_array(self._uniforms), self._bounds[-1], out=self._number, casting="unsafe")
        envs = np.searchsorted(self._bounds, self._number, side="right")
        indices[:] = self._layout.index(self._number + self._shift[envs], envs)

    def learn(self, indices: Array, priorities: Array) -> None:
        """Every step alike: priorities change nothing."""

    def state(self) -> State:
        return {}

    def load(self, state: State) -> None:
        """Holds nothing."""


class UniformPerEnvRule(UniformRule):
    """Environments take turns: of B environments each gives N / B steps of every batch.

    The k-th step of an environment depends on its global number and on k alone, so two learners
    with half of the environments and half of the batch each draw what one with all would draw.
    """

    def move(self, drawable: RingRange) -> None:
        num_steps = drawable.num_steps // self._layout.num_envs
        if not (drawable.last - drawable.first == num_steps).all():
            raise ValueError(
                "spread='per-env' needs as many stored steps of one environment as of the next; "
                "use spread='steps'."
            )
        self._first, self._num_steps = drawable.first, num_steps

    def draw(self, draw: Draw, indices: Array) -> None:
        layout, num = self._layout, len(indices)
        turns, envs = np.divmod(draw.number * num + np.arange(num), layout.num_envs)
        drawn = random.uniforms(draw.seed, draw.purpose, layout.first_env_id + envs, turns)
        chance = drawn[:, 0].astype(np.float64) + drawn[:, 1] * 2.0**-24  # 48 bits
        number = (chance * self._num_steps).astype(np.int64)
        indices[:] = layout.index(self._first[envs] + number, envs)


@dataclass(frozen=True, kw_only=True)
class PrioritisedSampling:
    """Steps in proportion to their last error, corrected by weights (Schaul 2016)."""

    priority_exponent: float = 0.5
    """Alpha: 0 draws every step alike, 1 in proportion to its priority."""
    priority_offset: float = 1e-6
    """Added to every priority, so that none is never drawn again."""
    weight_exponent_start: float = 0.4
    """Beta at the start: 0 corrects nothing, 1 corrects the draw entirely."""
    weight_exponent_end: float = 1.0
    """Beta at the end of its schedule."""
    weight_exponent_agent_steps: int = 50_000_000
    """Agent steps from the first beta to the last."""

    def __post_init__(self) -> None:
        if self.priority_exponent < 0 or self.priority_offset <= 0:
            raise ValueError(
                f"priority_exponent={self.priority_exponent} must be at least 0 and "
                f"priority_offset={self.priority_offset} above 0."
            )
        start, end = self.weight_exponent_start, self.weight_exponent_end
        if not (0.0 <= start <= 1.0 and 0.0 <= end <= 1.0):
            raise ValueError(
                f"weight_exponent_start={start} and weight_exponent_end={end} must lie in 0..1."
            )

    def start(self, layout: RingLayout, batch_size: int) -> Rule:
        return PrioritisedRule(self, layout, batch_size)

    def num_bytes(self, size: int) -> int:
        return tree_bytes(size)

    def weight_exponent(self, agent_steps: int) -> float:
        return Linear(
            start=self.weight_exponent_start,
            end=self.weight_exponent_end,
            duration_agent_steps=self.weight_exponent_agent_steps,
        )(agent_steps)


class PrioritisedRule:
    """A sum tree of priorities; a step is new with the largest one known, so it is soon seen."""

    learns = True

    def __init__(self, settings: PrioritisedSampling, layout: RingLayout, batch_size: int) -> None:
        self._settings, self._layout = settings, layout
        self._tree = SumTree(layout.size)
        self._largest = 1.0
        self._drawable = RingRange.empty(layout.num_envs)
        self._uniforms = torch.empty(batch_size, dtype=torch.float64)
        self._strata = np.arange(batch_size) / batch_size
        self.weights: Tensor | None = torch.empty(batch_size)

    def move(self, drawable: RingRange) -> None:
        old, self._drawable = self._drawable, drawable
        left = self._layout.indices(old.first, np.minimum(old.last, drawable.first))
        entered = self._layout.indices(np.maximum(old.last, drawable.first), drawable.last)
        values = np.zeros(len(left) + len(entered))
        values[len(left) :] = self._largest
        self._tree.set(np.concatenate([left, entered]), values)

    def draw(self, draw: Draw, indices: Array) -> None:
        """One index from each of N equal parts of the whole sum."""
        torch.rand(len(indices), generator=draw.random, dtype=torch.float64, out=self._uniforms)
        marks = to_array(self._uniforms)
        marks /= len(indices)
        marks += self._strata
        marks *= self._tree.total
        self._tree.find(marks, indices)
        self._weigh(indices, self._settings.weight_exponent(draw.agent_steps))

    def _weigh(self, indices: Array, exponent: float) -> None:
        """(N P)^-beta over its maximum: number of steps and total sum cancel."""
        assert self.weights is not None
        drawn = self._tree.at(indices)
        np.divide(drawn.min(), drawn, out=drawn)
        np.power(drawn, exponent, out=to_array(self.weights), casting="same_kind")

    def learn(self, indices: Array, priorities: Array) -> None:
        exponent, offset = self._settings.priority_exponent, self._settings.priority_offset
        values = np.power(np.abs(priorities, dtype=np.float64) + offset, exponent)
        # A step that has left the range since it was drawn stays out of reach.
        values[self._tree.at(indices) == 0.0] = 0.0
        self._tree.set(indices, values)
        self._largest = max(self._largest, float(values.max()))

    def state(self) -> State:
        return {
            "leaves": self._tree.leaves.copy(),
            "largest": self._largest,
            "first": self._drawable.first,
            "last": self._drawable.last,
        }

    def load(self, state: State) -> None:
        self._tree.load(np.asarray(state["leaves"]))
        self._largest = float(state["largest"])
        self._drawable = RingRange(np.asarray(state["first"]), np.asarray(state["last"]))


class SumTree:
    """Values >= 0 at `size` indices, all zero at first, and draws in proportion to them.

    Every node has 32 children instead of 2, so that a million indices need four levels: NumPy then
    works on a few wide rows, where twenty levels would cost twenty rounds of small calls. A node is
    always summed anew from its children. Nothing drifts, and equal values give equal trees whatever
    the history, which is what lets a checkpoint hold the leaves alone.
    """

    def __init__(self, size: int) -> None:
        # Leaves first; each [nodes / 32, 32] float64.
        self._levels = [np.zeros((n // FAN_OUT, FAN_OUT)) for n in level_lengths(size)]
        self._size = size
        self._sums = np.zeros((0, FAN_OUT + 1))

    @property
    def total(self) -> float:
        return float(self._levels[-1].sum())

    @property
    def leaves(self) -> Array:
        """The values [size]: a view, changed through `set` and `load` only."""
        return self._levels[0].reshape(-1)[: self._size]

    def at(self, indices: Array) -> Array:
        """Values of the indices."""
        return np.take(self._levels[0].reshape(-1), indices)

    def set(self, indices: Array, values: Array) -> None:
        """Changes the values of the indices; where one is named twice, the last value stays."""
        if not np.isfinite(values).all() or (values < 0).any():
            raise ValueError(
                "A sum tree was given a value that is negative or not finite; a loss that became "
                "nan or infinite does this. Lower the learning rate or clip the gradient."
            )
        self._levels[0].reshape(-1)[indices] = values
        for lower, upper in zip(self._levels, self._levels[1:], strict=False):
            indices = indices >> _SHIFT
            upper.reshape(-1)[indices] = np.take(lower, indices, axis=0).sum(axis=1)

    def find(self, marks: Array, indices: Array) -> None:
        """Writes into `indices` [N] where the running sum passes the marks [N]; marks are used up.

        An index with value zero is never found, even where a mark is off by rounding.
        """
        if len(self._sums) != len(marks):
            self._sums = np.zeros((len(marks), FAN_OUT + 1))
        sums = self._sums  # [N, 33], a zero and the running sums of a node
        starts = np.arange(len(marks)) * sums.shape[1]
        indices.fill(0)
        for level in reversed(self._levels):
            np.cumsum(np.take(level, indices, axis=0), axis=1, out=sums[:, 1:])
            np.minimum(marks, np.nextafter(sums[:, -1], 0.0), out=marks)
            child = (sums[:, 1:] <= marks[:, None]).sum(axis=1)
            marks -= np.take(sums, starts + child)
            indices <<= _SHIFT
            indices += child

    def load(self, leaves: Array) -> None:
        """Takes all values at once and sums the tree anew."""
        self.leaves[:] = leaves
        for lower, upper in zip(self._levels, self._levels[1:], strict=False):
            upper.reshape(-1)[: len(lower)] = lower.sum(axis=1)


def level_lengths(size: int) -> list[int]:
    """Nodes of every level, leaves first, each rounded up to whole parents."""
    lengths, length = list[int](), size
    while not lengths or length > 1:
        length = max(1, -(-length // FAN_OUT))
        lengths.append(length * FAN_OUT)
    return lengths


def tree_bytes(size: int) -> int:
    """Memory of a tree."""
    return 8 * sum(level_lengths(size))
