"""Sequences of a replay: what a network with memory learns from.

Takes steps that a sampling rule has drawn; gives batches of the sequences that begin with them,
after a burn-in that brings the stored state up to date (Kapturowski 2019, R2D2). Knows neither how
steps are chosen nor what a loss does.

A sequence may go over the end of an episode: the state begins anew there. Steps whose future a
limit has cut are left out: what would follow them is not in the sequence. The priority of a
sequence mixes the largest and the mean error of its steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch

from ..carried import Column, Sequences
from ..devices import HOST, Device
from ..records import Array, Batch, Spaces, to_array
from .batches import Gather, NStep, Reader
from .ring import GOES_ON, TRUNCATED, FramePool, Ring
from .sampling import Draw, Rule, Sampling

_LARGEST_SHARE = 0.9
"""Of the largest error in a priority; the rest is the mean's (R2D2)."""


@dataclass(frozen=True)
class SequenceShape:
    """How many rows of an environment one draw reads."""

    learned: int = 1
    """Steps that are learned from."""
    burn_in: int = 0
    """Steps before them that bring the state up to date."""
    n_step: int = 1
    """Steps from an observation to the one that it bootstraps from."""

    @property
    def span(self) -> int:
        """Steps from the drawn one until the last observation that is needed."""
        return self.learned - 1 + self.n_step

    @property
    def num_rows(self) -> int:
        return self.burn_in + self.span + 1


def stored_columns(carried: Mapping[str, Column]) -> dict[str, Column]:
    """What a ring keeps of every step for a network with memory: the state before it."""
    return {_stored(name): column for name, column in carried.items()}


def _stored(name: str) -> str:
    return f"carried/{name}"


class SequenceReader:
    """Draws sequences for one learner; its arrays are valid until its next batch."""

    def __init__(
        self, gather: Gather, ring: Ring, rule: Rule, first: Draw, shape: SequenceShape
    ) -> None:
        """`gather` reads all rows of a batch, of which the rule draws the first learned ones."""
        self.rule, self.num_draws = rule, 0
        self._gather, self._ring, self._first, self._shape = gather, ring, first, shape
        num = gather.num_rows // shape.num_rows
        self._starts = np.zeros(num, np.int64)
        rows = np.arange(-shape.burn_in, shape.span + 1)
        self._ahead = (rows * ring.layout.num_envs)[:, None]
        self._upload = gather.device.upload
        self._carried = [name for name in ring.arrays if name.startswith(_stored(""))]

    def draw(self, agent_steps: int) -> Batch:
        """One batch, keyed by the number of this draw."""
        draw = replace(self._first, number=self.num_draws, agent_steps=agent_steps)
        self.rule.draw(draw, self._starts)
        rows = (self._starts + self._ahead) % self._ring.layout.size  # [L, N]
        read, num, upload = self._gather.read(rows.reshape(-1), None), rows.shape[1], self._upload
        self.num_draws += 1
        places, following = self._places(num)
        kept = upload(places + self._shape.burn_in * num)
        weights, observations = self.rule.weights, read.pop("pair")[0]
        del read["weights"]
        return Batch(
            observations=observations,
            actions=read.pop("action")[kept],
            columns={name: column[kept] for name, column in read.items()},
            agent_steps=agent_steps,
            update=self.num_draws - 1,
            random=draw.random,
            next_observations=observations,
            weights=None if weights is None else upload(to_array(weights)[places % num]),
            indices=torch.from_numpy(places % num),
            sequences=self._sequences(rows, places, following),
        )

    def _places(self, num: int) -> tuple[Array, Array]:
        """Rows after the burn-in that are learned from, and those of what follows them."""
        first, last = self._shape.burn_in * num, (self._shape.burn_in + self._shape.learned) * num
        sums = self._gather.sums
        places = np.flatnonzero(sums.end[first:last] != TRUNCATED)
        return places, places + sums.span[first:last][places] * num

    def _sequences(self, rows: Array, places: Array, following: Array) -> Sequences:
        begins = np.zeros(rows.shape, np.bool_)
        begins[1:] = self._gather.ends.reshape(rows.shape)[:-1] != GOES_ON
        state = {
            name.removeprefix(_stored("")): self._upload(self._ring.by_index[name][rows[0]])
            for name in self._carried
        }
        return Sequences(
            state,
            self._upload(begins),
            burn_in=self._shape.burn_in,
            chosen=self._upload(places),
            following=self._upload(following),
        )

    def learn(self, numbers: Array, priorities: Array) -> None:
        """New priorities of the last draw, from those of the steps of its sequences [N]."""
        self.rule.learn(self._starts, mixed(numbers, priorities, len(self._starts)))


def mixed(numbers: Array, errors: Array, num: int) -> Array:
    """Priorities [num] of sequences, from the errors of steps and the number of their sequence."""
    largest = np.zeros(num, np.float32)
    np.maximum.at(largest, numbers, errors)
    counts = np.maximum(np.bincount(numbers, minlength=num), 1)
    mean = np.bincount(numbers, weights=errors, minlength=num) / counts
    priorities: Array = _LARGEST_SHARE * largest + (1.0 - _LARGEST_SHARE) * mean
    return priorities.astype(np.float32)


def refuse_odd(sequence_agent_steps: int, burn_in_agent_steps: int, batch_size: int) -> None:
    """Of settings whose numbers do not go together."""
    if sequence_agent_steps and batch_size % sequence_agent_steps:
        raise ValueError(
            f"batch_size={batch_size} is no multiple of sequence_agent_steps="
            f"{sequence_agent_steps}; it counts the steps of all sequences of a batch."
        )
    if burn_in_agent_steps and not sequence_agent_steps:
        raise ValueError(
            f"burn_in_agent_steps={burn_in_agent_steps} goes before sequences; give "
            "sequence_agent_steps too, or 0."
        )


def num_batch_rows(batch_size: int, shape: SequenceShape) -> int:
    """Observations of a batch of so many learned steps."""
    return batch_size // shape.learned * shape.num_rows


@dataclass(frozen=True)
class Readers:
    """Makes what draws from one ring."""

    ring: Ring
    pools: Mapping[str, FramePool]
    spaces: Spaces
    n_step: NStep
    seed: int
    device: Device = HOST
    """Of the batches."""

    def of(
        self, batch_size: int, sampling: Sampling, shape: SequenceShape | None
    ) -> Reader | SequenceReader:
        """Draws sequences of a shape for a network with memory, else single steps."""
        if shape is None:
            return self.of_steps(batch_size, sampling)
        return self.of_sequences(batch_size, sampling, shape)

    def of_steps(self, batch_size: int, sampling: Sampling, purpose: str = "replay") -> Reader:
        """Draws single steps."""
        rule = sampling.start(self.ring.layout, batch_size)
        return Reader(self._gather(batch_size), rule, self._first(purpose), batch_size)

    def of_sequences(
        self, batch_size: int, sampling: Sampling, shape: SequenceShape
    ) -> SequenceReader:
        """Draws sequences with so many learned steps together, for a network with memory."""
        rule = sampling.start(self.ring.layout, batch_size // shape.learned)
        gather = self._gather(num_batch_rows(batch_size, shape), is_pair=False)
        return SequenceReader(gather, self.ring, rule, self._first("replay"), shape)

    def _gather(self, num_rows: int, is_pair: bool = True) -> Gather:
        size = (self.n_step, num_rows, is_pair)
        return Gather(self.ring, self.pools, self.spaces, *size, self.device)

    def _first(self, purpose: str) -> Draw:
        return Draw(self.seed, purpose, self.ring.layout.first_env_id)
