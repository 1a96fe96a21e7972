"""Batches of a replay: from indices of the ring to the arrays that a loss sees.

Takes drawn indices [N]; fills observations, those n steps later, n-step sums of rewards and the
stored columns, in memory made once. Knows neither how indices are chosen nor what a loss does.

N-step sums are computed when a batch is drawn and not when a step is written: the ring then holds
only what happened, and rows never change once written, so that a checkpoint may append them.
Padding is a matter of addresses: a plane older than its episode is read from the ring's frame of
zeros, or from the episode's first frame, so stacks of all ages are one read. Small arrays and
frames are NumPy's: `np.take` copies on the calling thread, which leaves torch's threads to others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from ..devices import HOST, Device, PackedArrays
from ..records import Array, Batch, Spaces, to_array
from .ring import GOES_ON, TERMINAL, TRUNCATED, FramePool, Ring
from .sampling import Draw, Rule

Shapes = dict[str, tuple[tuple[int, ...], torch.dtype]]
"""Shape and type of arrays by name."""
_NOT_GIVEN = {"frame", "depth", "reward", "end"}
"""Columns of the ring that a batch carries in another form."""


@dataclass(frozen=True)
class Sums:
    """What n consecutive steps add up to: one entry per drawn step, made once."""

    reward: Array  # [N] float32
    discount: Array  # [N] float32, 0 where nothing follows
    span: Array  # [N] int64, steps until the observation that the discount belongs to
    end: Array  # [N] uint8, how the last step of the span ended

    @classmethod
    def allocate(cls, num: int) -> Sums:
        kinds = (np.float32, np.float32, np.int64, np.uint8)
        return cls(*(np.zeros(num, kind) for kind in kinds))


@dataclass(frozen=True, kw_only=True)
class NStep:
    """Discounted sum of up to n rewards, cut at every end."""

    n_step: int = 1
    """Agent steps from an observation to the one that it bootstraps from."""
    discount: float = 0.99
    """Factor per agent step on the future."""

    def __post_init__(self) -> None:
        if self.n_step < 1:
            raise ValueError(f"n_step={self.n_step} reads no reward; use 1 or more.")
        if not 0.0 <= self.discount <= 1.0:
            raise ValueError(f"discount={self.discount} must lie in 0..1.")

    def accumulate(self, reward: Array, end: Array, into: Sums) -> None:
        """Reads rewards and ends [n, N]; fills `into`."""
        np.copyto(into.reward, reward[0])
        np.copyto(into.end, end[0])
        into.span.fill(1)
        for ahead in range(1, self.n_step):
            alive = into.end == GOES_ON
            # An ended path adds nothing: what follows in the ring belongs to another episode.
            later = reward[ahead] * np.float32(self.discount**ahead)
            np.add(into.reward, later, out=into.reward, where=alive)
            np.add(into.span, 1, out=into.span, where=alive)
            np.copyto(into.end, end[ahead], where=alive)
        np.power(self.discount, into.span, out=into.discount, casting="same_kind")
        into.discount[into.end == TERMINAL] = 0.0


class BatchSide:
    """Memory of one batch: NumPy writes it, and it goes to the learner's device in one piece."""

    def __init__(self, device: Device, shapes: Shapes) -> None:
        self.packed = PackedArrays(device, shapes)
        self.host = {name: to_array(array) for name, array in self.packed.host.items()}
        if "pair" in self.host:
            pair = self.host["pair"]
            self.planes = pair.reshape(-1, int(np.prod(pair.shape[3:])))


class Gather:
    """Reads batches, each valid until the next but one is read, on a CPU until the next one.

    The learner may still be at one batch when the next one is read and goes up: of a device there
    are two sides that take turns.
    """

    def __init__(  # noqa: PLR0913 (each is a choice of its own)
        self,
        ring: Ring,
        pools: Mapping[str, FramePool],
        spaces: Spaces,
        n_step: NStep,
        num_rows: int,
        is_pair: bool = True,
        device: Device = HOST,
    ) -> None:
        """`is_pair`: whether what is n steps later is read too."""
        self.device, self.num_rows = device, num_rows
        self._ring, self._pools, self._n_step = ring, pools, n_step
        self._padding, self._num_start_frames = spaces.stack_padding, spaces.num_start_frames
        n, stack, size, sides = n_step.n_step, spaces.stack, num_rows, 2 if is_pair else 1
        self._shape = (sides, size, *spaces.observation_shape)
        self.sums = Sums.allocate(size)
        self._ahead = (np.arange(n) * ring.layout.num_envs)[:, None]
        self._path = np.zeros((n, size), np.int64)
        self._rewards = np.zeros((n, size), np.float32)
        self._ends = np.zeros((n, size), np.uint8)
        self._indices = np.zeros((sides, size), np.int64)
        self._depths = np.zeros((sides, size), np.uint8)
        self._age = np.arange(stack)[::-1].copy()  # how many steps old each plane is
        self._ages = np.zeros((sides, size, stack), np.int64)
        self._addresses = np.zeros((sides, size, stack), np.int64)
        self._missing = np.zeros((sides, size, stack), np.bool_)
        self._frames = to_array(ring.frames) if ring.place.is_host else None
        given = ring.arrays.keys() - _NOT_GIVEN
        self._stored = sorted(name for name in given if not name.startswith("carried/"))
        shapes = self._shapes(getattr(torch, spaces.frame_dtype), size)
        self._sides = [BatchSide(device, shapes) for _ in range(1 if device.is_host else 2)]
        self._patches: list[tuple[Array, Array]] = []

    def _shapes(self, dtype: torch.dtype, size: int) -> Shapes:
        """Frames where they are in host memory, else their addresses; and every column."""
        arrays, numbers = self._ring.arrays, ((size,), torch.float32)
        stored = {n: ((size, *arrays[n].shape[2:]), arrays[n].dtype) for n in self._stored}
        planes = {"addresses": (self._shape[:3], torch.int64)}
        if self._ring.place.is_host:
            planes = {"pair": (self._shape, dtype)}
        columns = ("reward", "discount", "weights")
        return {**planes, **dict.fromkeys(columns, numbers), **stored}

    def read(self, indices: Array, weights: Tensor | None) -> dict[str, Tensor]:
        """The steps at these indices: `pair` [2, N, S, *frame], what is n steps later second, if at
        all, and the columns [N, ...]."""
        self._sides.append(side := self._sides.pop(0))
        side.packed.begin()
        self._read_path(indices)
        self._address_planes(indices)
        self._patches.clear()
        if self._num_start_frames:
            self._read_starts()
        if self._shape[0] == 2:
            self._read_finals(indices)
        for name in self._stored:
            self._take(name, indices, side.host[name])
        side.host["reward"][:], side.host["discount"][:] = self.sums.reward, self.sums.discount
        if weights is not None:
            side.host["weights"][:] = to_array(weights)
        return self._sent(side)

    def _sent(self, side: BatchSide) -> dict[str, Tensor]:
        """The batch on the learner's device."""
        if self._frames is not None:
            addresses = self._addresses.reshape(-1)
            np.take(self._frames, addresses, axis=0, out=side.planes, mode="clip")
            for numbers, frames in self._patches:
                side.planes[numbers] = frames
            side.packed.upload()
            return dict(side.packed.there)
        side.host["addresses"][:] = self._addresses
        side.packed.upload()
        batch = dict(side.packed.there)
        planes = self._ring.frames.index_select(0, batch.pop("addresses").view(-1))
        for numbers, frames in self._patches:
            planes.index_copy_(0, self.device.upload(numbers), self.device.upload(frames))
        batch["pair"] = planes.view(self._shape)
        return batch

    def _read_path(self, indices: Array) -> None:
        np.add(indices, self._ahead, out=self._path)
        self._path %= self._ring.layout.size
        self._take("reward", self._path, self._rewards)
        self._take("end", self._path, self._ends)
        self._n_step.accumulate(self._rewards, self._ends, self.sums)

    def _address_planes(self, indices: Array) -> None:
        layout = self._ring.layout
        self._indices[:] = indices
        self._indices[1:] += self.sums.span * layout.num_envs
        self._indices %= layout.size
        self._take("depth", self._indices, self._depths)
        self._address()

    def _address(self) -> None:
        """Where every plane lies, by the padding rules of `stacks`."""
        layout, depths = self._ring.layout, self._depths[..., None]
        if self._padding == "repeat":
            np.minimum(self._age, depths - 1, out=self._ages, casting="unsafe")
        else:
            np.copyto(self._ages, self._age)
        np.multiply(self._ages, -layout.num_envs, out=self._addresses)
        self._addresses += self._indices[..., None]
        self._addresses %= layout.size
        if self._padding != "repeat":
            np.greater_equal(self._age, depths, out=self._missing)
            np.copyto(self._addresses, layout.size, where=self._missing)  # the frame of zeros

    def _read_starts(self) -> None:
        """Fills young stacks with the frames that the environment gave at their start.

        What follows an end is left alone: it may lie in rows that are being written.
        """
        is_young = self._depths <= self._num_start_frames
        is_young[1:] &= self.sums.end == GOES_ON
        for age in range(self._num_start_frames):
            pair, item = np.nonzero(is_young & (self._depths == age + 1))
            if item.size:
                first = self._indices[pair, item] - age * self._ring.layout.num_envs
                starts = to_array(self._pools["start"].at(first % self._ring.layout.size))
                self._patch(pair, item, starts[:, age:])

    def _read_finals(self, indices: Array) -> None:
        """Replaces what follows a truncated step: in the ring it is the next episode's start."""
        cut = np.flatnonzero(self.sums.end == TRUNCATED)
        if cut.size:
            layout = self._ring.layout
            last = indices[cut] + (self.sums.span[cut] - 1) * layout.num_envs
            finals = to_array(self._pools["final"].at(last % layout.size))
            self._patch(np.ones_like(cut), cut, finals)

    def _patch(self, pair: Array, item: Array, frames: Array) -> None:
        """Replaces the oldest planes of some observations by frames [n, k, *frame]."""
        _, size, stack = self._shape[:3]
        first = (pair * size + item) * stack
        numbers = (first[:, None] + np.arange(frames.shape[1])).reshape(-1)
        flat = np.ascontiguousarray(frames).reshape(len(numbers), -1)
        self._patches.append((numbers, flat))

    @property
    def ends(self) -> Array:
        """How the read steps themselves ended, [N]."""
        ends: Array = self._ends[0]
        return ends

    def _take(self, name: str, indices: Array, out: Array) -> None:
        np.take(self._ring.by_index[name], indices, axis=0, out=out, mode="clip")


class Reader:
    """Draws for one learner; its arrays are valid until its next batch.

    Draws are keyed by the reader's purpose and their number, so that two learners can read one
    replay, each with batches of its own, and neither changes what the other sees.
    """

    def __init__(self, gather: Gather, rule: Rule, first: Draw, batch_size: int) -> None:
        self.rule, self.num_draws = rule, 0
        self._gather, self._first = gather, first
        self._indices = np.zeros(batch_size, np.int64)

    def draw(self, agent_steps: int) -> Batch:
        """One batch, keyed by the number of this draw."""
        draw = replace(self._first, number=self.num_draws, agent_steps=agent_steps)
        indices = np.zeros_like(self._indices)
        self.rule.draw(draw, indices)
        read = self._gather.read(indices, self.rule.weights)
        self.num_draws += 1
        observations, next_observations = read.pop("pair")
        weights = read.pop("weights")
        return Batch(
            observations=observations,
            actions=read.pop("action"),
            columns=read,
            agent_steps=agent_steps,
            update=self.num_draws - 1,
            random=draw.random,
            next_observations=next_observations,
            weights=None if self.rule.weights is None else weights,
            indices=torch.from_numpy(indices),
        )

    def learn(self, indices: Array, priorities: Array) -> None:
        """New priorities of drawn steps."""
        self.rule.learn(indices, priorities)
