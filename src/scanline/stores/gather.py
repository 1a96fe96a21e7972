"""Gather: from places of the ring to the arrays of one batch.

Takes places [N]; fills observations, those n steps later, and the columns, in memory made once.
Knows neither how places were chosen nor what a loss does with the batch.

Padding is a matter of addresses: a plane older than its episode is read from the ring's frame of
zeros, or from the episode's first frame, so stacks of all ages are one read; frames that the
environment gave to fill a new stack lie beside the ring and are copied after it. Small arrays are
NumPy's, whose calls cost half of torch's. So are frames: `np.take` copies rows on the calling
thread, which leaves torch's threads to whoever computes at the same time.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from ..records import Array, Spaces, to_array
from .frame_pool import FramePool, start_place
from .n_step import GOES_ON, TRUNCATED, Accumulator, Sums
from .ring import NUMBERS, Ring

_NOT_GIVEN = {"frame", "depth", "reward", "end", *NUMBERS}
"""Columns of the ring that a batch carries in another form."""


class Gather:
    """The arrays of one batch: valid until the next one is read."""

    def __init__(
        self,
        ring: Ring,
        pools: Mapping[str, FramePool],
        spaces: Spaces,
        accumulator: Accumulator,
        batch_size: int,
    ) -> None:
        self._ring, self._pools, self._accumulator = ring, pools, accumulator
        self._padding, self._num_start_frames = spaces.stack_padding, spaces.num_start_frames
        n, stack, size = accumulator.n_step, spaces.stack, batch_size
        dtype = getattr(torch, spaces.frame_dtype)
        self._pair = torch.empty((2, size, *spaces.observation_shape), dtype=dtype)
        self._planes = to_array(self._pair.view(2 * size * stack, -1))
        self._sums = Sums.allocate(size)
        self._ahead = (np.arange(n) * ring.num_envs)[:, None]
        self._path = np.zeros((n, size), np.int64)
        self._rewards = np.zeros((n, size), np.float32)
        self._ends = np.zeros((n, size), np.uint8)
        self._places = np.zeros((2, size), np.int64)
        self._depths = np.zeros((2, size), np.uint8)
        self._age = np.arange(stack)[::-1].copy()  # how many steps old each plane is
        self._ages = np.zeros((2, size, stack), np.int64)
        self._addresses = np.zeros((2, size, stack), np.int64)
        self._missing = np.zeros((2, size, stack), np.bool_)
        stored = self._stored_columns(size)
        self._stored = {name: to_array(column) for name, column in stored.items()}
        self.actions = stored.pop("action")
        self.columns: Mapping[str, Tensor] = {
            "reward": torch.from_numpy(self._sums.reward),
            "discount": torch.from_numpy(self._sums.discount),
            **stored,
        }

    def _stored_columns(self, size: int) -> dict[str, Tensor]:
        """Empty columns [N, ...] of what a batch carries as it was stored."""
        arrays = self._ring.arrays
        own = [name for name in arrays if name not in _NOT_GIVEN]
        return {
            name: torch.zeros((size, *arrays[name].shape[2:]), dtype=arrays[name].dtype)
            for name in own
        }

    @property
    def observations(self) -> Tensor:
        """[N, S, *frame]."""
        return self._pair[0]

    @property
    def next_observations(self) -> Tensor:
        """[N, S, *frame], where the sum of rewards ends."""
        return self._pair[1]

    def read(self, places: Array) -> None:
        """Fills every array for the steps at these places."""
        self._read_path(places)
        self._read_planes(places)
        if self._num_start_frames:
            self._read_starts()
        self._read_finals(places)
        for name, column in self._stored.items():
            self._take(name, places, column)

    def _read_path(self, places: Array) -> None:
        np.add(places, self._ahead, out=self._path)
        self._path %= self._ring.num_places
        self._take("reward", self._path, self._rewards)
        self._take("end", self._path, self._ends)
        self._accumulator.accumulate(self._rewards, self._ends, self._sums)

    def _read_planes(self, places: Array) -> None:
        self._places[0] = places
        np.multiply(self._sums.span, self._ring.num_envs, out=self._places[1])
        self._places[1] += places
        self._places[1] %= self._ring.num_places
        self._take("depth", self._places, self._depths)
        self._address()
        addresses = self._addresses.reshape(-1)
        np.take(self._ring.frames, addresses, axis=0, out=self._planes, mode="clip")

    def _address(self) -> None:
        """Where every plane lies, by the padding rules of `stacks`."""
        depths = self._depths[..., None]
        if self._padding == "repeat":
            np.minimum(self._age, depths - 1, out=self._ages, casting="unsafe")
        else:
            np.copyto(self._ages, self._age)
        np.multiply(self._ages, -self._ring.num_envs, out=self._addresses)
        self._addresses += self._places[..., None]
        self._addresses %= self._ring.num_places
        if self._padding != "repeat":
            np.greater_equal(self._age, depths, out=self._missing)
            np.copyto(self._addresses, self._ring.zeros_place, where=self._missing)

    def _read_starts(self) -> None:
        """Fills young stacks with the frames that the environment gave at their start.

        What follows an end is not looked at: it may lie in rows that are being written.
        """
        is_young = self._depths <= self._num_start_frames
        is_young[1] &= self._sums.end == GOES_ON
        young = np.nonzero(is_young)
        depths = self._depths[young]
        found = self._pools["start"].at(start_place(self._ring, self._places[young], depths))
        for pair, item, depth, start in zip(*young, depths.tolist(), found, strict=True):
            self._pair[pair, item, : len(start) - depth + 1] = start[depth - 1 :]

    def _read_finals(self, places: Array) -> None:
        """Replaces what follows a truncated step: in the ring it is the next episode's start."""
        cut = np.flatnonzero(self._sums.end == TRUNCATED)
        if not cut.size:
            return
        last = places[cut] + (self._sums.span[cut] - 1) * self._ring.num_envs
        found = self._pools["final"].at(last % self._ring.num_places)
        self._pair[1, torch.from_numpy(cut)] = found

    def _take(self, name: str, places: Array, out: Array) -> None:
        np.take(self._ring.by_place[name], places, axis=0, out=out, mode="clip")
