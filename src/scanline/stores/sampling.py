"""Sampling rules: which stored steps a batch is made of.

Takes, at every commit, the window of rows that may be drawn; gives places of the ring for a batch,
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
from .sum_tree import SumTree, tree_bytes


@dataclass(frozen=True)
class RingRange:
    """Rows that may be drawn of every environment: first <= row < last, both [B] int64."""

    first: Array
    last: Array

    @classmethod
    def empty(cls, num_envs: int) -> RingRange:
        return cls(np.zeros(num_envs, np.int64), np.zeros(num_envs, np.int64))

    @property
    def num_steps(self) -> int:
        return int((self.last - self.first).sum())


@dataclass(frozen=True)
class RingLayout:
    """How rows and environments become places."""

    num_rows: int
    num_envs: int
    first_env_id: int = 0
    """Global number of the first environment."""

    @property
    def num_places(self) -> int:
        return self.num_rows * self.num_envs

    def places(self, first: Array, last: Array) -> Array:
        """Places of all rows first <= row < last of every environment; none where last <= first."""
        counts = np.maximum(last - first, 0)
        envs = np.repeat(np.arange(self.num_envs), counts)
        begins = np.cumsum(counts) - counts
        rows = np.arange(len(envs)) + np.repeat(first - begins, counts)
        places: Array = rows % self.num_rows * self.num_envs + envs
        return places


@dataclass(frozen=True)
class Draws:
    """Whose draws: what keys their chance besides their number."""

    seed: int
    purpose: str = "replay"
    first_env_id: int = 0
    """Global number of the first environment, so that every learner has chance of its own."""


@dataclass(frozen=True)
class Draw:
    """Which draw this is: the key of its chance, and the argument of schedules."""

    of: Draws
    number: int
    agent_steps: int

    @cached_property
    def random(self) -> torch.Generator:
        """Of this draw alone."""
        draws = self.of
        return random.generator(draws.seed, draws.purpose, self.number, draws.first_env_id)


class Rule(Protocol):
    """The part of a sampling rule that holds state."""

    weights: Tensor | None
    """[N] weights of the last draw; None where all are 1."""

    def move(self, window: RingRange) -> None:
        """Draws from this window from now on."""

    def draw(self, draw: Draw, places: Array) -> None:
        """Fills places [N]."""

    def learn(self, places: Array, priorities: Array) -> None:
        """Takes new priorities of places that were drawn."""

    def state(self) -> State: ...

    def load(self, state: State) -> None: ...


class Sampling(Protocol):
    """Settings of a rule."""

    def start(self, layout: RingLayout, batch_size: int) -> Rule: ...

    def num_bytes(self, num_places: int) -> int:
        """Memory that the rule takes for so many places."""


@dataclass(frozen=True, kw_only=True)
class UniformSampling:
    """Every step alike."""

    spread: Literal["steps", "per-env"] = "steps"
    """'steps': any step of any environment; 'per-env': environments take turns and chance, keyed by
    their global numbers, picks the step, so that learners do not change the draw."""

    def start(self, layout: RingLayout, batch_size: int) -> Rule:
        rule = UniformRule if self.spread == "steps" else UniformPerEnvRule
        return rule(layout, batch_size)

    def num_bytes(self, num_places: int) -> int:
        return 0


class UniformRule:
    """Draws with replacement; needs no memory of its own."""

    def __init__(self, layout: RingLayout, batch_size: int) -> None:
        self.weights: Tensor | None = None
        self._layout = layout
        self._uniforms = torch.empty(batch_size, dtype=torch.float64)
        self._number = np.zeros(batch_size, np.int64)
        self.move(RingRange.empty(layout.num_envs))

    def move(self, window: RingRange) -> None:
        self._bounds = np.cumsum(window.last - window.first)
        # Row of number k in environment b is k + shift[b], numbers counted over all environments.
        self._shift = window.last - self._bounds

    def draw(self, draw: Draw, places: Array) -> None:
        torch.rand(len(places), generator=draw.random, dtype=torch.float64, out=self._uniforms)
        np.multiply(to_array(self._uniforms), self._bounds[-1], out=self._number, casting="unsafe")
        envs = np.searchsorted(self._bounds, self._number, side="right")
        np.add(self._number, self._shift[envs], out=places)
        places %= self._layout.num_rows
        places *= self._layout.num_envs
        places += envs

    def learn(self, places: Array, priorities: Array) -> None:
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

    def move(self, window: RingRange) -> None:
        if not (window.last - window.first == window.num_steps // self._layout.num_envs).all():
            raise ValueError(
                "spread='per-env' needs as many stored steps of one environment as of the next; "
                "use spread='steps'."
            )
        self._first, self._num_steps = window.first, window.num_steps // self._layout.num_envs

    def draw(self, draw: Draw, places: Array) -> None:
        layout = self._layout
        turns, envs = np.divmod(draw.number * len(places) + np.arange(len(places)), layout.num_envs)
        drawn = random.uniforms(draw.of.seed, draw.of.purpose, layout.first_env_id + envs, turns)
        chance = drawn[:, 0].astype(np.float64) + drawn[:, 1] * 2.0**-24  # 48 bits
        number = (chance * self._num_steps).astype(np.int64)
        rows = (self._first[envs] + number) % layout.num_rows
        np.add(rows * layout.num_envs, envs, out=places)


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

    def num_bytes(self, num_places: int) -> int:
        return tree_bytes(num_places)

    def weight_exponent(self, agent_steps: int) -> float:
        return Linear(
            start=self.weight_exponent_start,
            end=self.weight_exponent_end,
            duration_agent_steps=self.weight_exponent_agent_steps,
        )(agent_steps)


class PrioritisedRule:
    """A sum tree of priorities; a step is new with the largest one known, so it is soon seen."""

    def __init__(self, settings: PrioritisedSampling, layout: RingLayout, batch_size: int) -> None:
        self._settings, self._layout = settings, layout
        self._tree = SumTree(layout.num_places)
        self._largest = 1.0
        self._window = RingRange.empty(layout.num_envs)
        self._uniforms = torch.empty(batch_size, dtype=torch.float64)
        self._strata = np.arange(batch_size) / batch_size
        self.weights: Tensor | None = torch.empty(batch_size)

    def move(self, window: RingRange) -> None:
        old, self._window = self._window, window
        left = self._layout.places(old.first, np.minimum(old.last, window.first))
        entered = self._layout.places(np.maximum(old.last, window.first), window.last)
        values = np.zeros(len(left) + len(entered))
        values[len(left) :] = self._largest
        self._tree.set(np.concatenate([left, entered]), values)

    def draw(self, draw: Draw, places: Array) -> None:
        """One place from each of N equal parts of the whole sum."""
        torch.rand(len(places), generator=draw.random, dtype=torch.float64, out=self._uniforms)
        marks = to_array(self._uniforms)
        marks /= len(places)
        marks += self._strata
        marks *= self._tree.total
        self._tree.find(marks, places)
        self._weigh(places, self._settings.weight_exponent(draw.agent_steps))

    def _weigh(self, places: Array, exponent: float) -> None:
        """(N P)^-beta over its maximum: number of steps and total sum cancel."""
        assert self.weights is not None
        drawn = self._tree.at(places)
        np.divide(drawn.min(), drawn, out=drawn)
        np.power(drawn, exponent, out=to_array(self.weights), casting="same_kind")

    def learn(self, places: Array, priorities: Array) -> None:
        exponent, offset = self._settings.priority_exponent, self._settings.priority_offset
        values = np.power(np.abs(priorities, dtype=np.float64) + offset, exponent)
        # A step that has left the window since it was drawn stays out of reach.
        values[self._tree.at(places) == 0.0] = 0.0
        self._tree.set(places, values)
        self._largest = max(self._largest, float(values.max()))

    def state(self) -> State:
        return {
            "leaves": self._tree.leaves.copy(),
            "largest": self._largest,
            "first": self._window.first,
            "last": self._window.last,
        }

    def load(self, state: State) -> None:
        self._tree.load(np.asarray(state["leaves"]))
        self._largest = float(state["largest"])
        self._window = RingRange(np.asarray(state["first"]), np.asarray(state["last"]))
