"""Frame stacks: the one place that turns single frames into observations.

Takes the last S frames of a batch, oldest first, and how many of them are valid; gives
observations [N, S, ...] with the protocol's padding, where the frames are; depths are on the host.
Knows no store and no engine.

Rollout and replay keep every frame once, an eighth of the memory of stored stacks. While no episode
is younger than S steps the result is a view: nothing is copied.

Some protocols fill a new stack with frames of NOOP steps. The environment gives these frames, S - 1
at the start of an episode; they belong to no step and are kept apart, as `SparseFrames`
(docs/decisions/0010).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from .devices import HOST, Device

Array = npt.NDArray[Any]

_GIVEN = ("noop-steps", "start-and-noop-steps")


def num_start_frames(padding: str, stack: int) -> int:
    """Frames that the environment gives to fill a new stack: S - 1, or none."""
    return stack - 1 if padding in _GIVEN else 0


class SparseFrames:
    """Frames of a few (step, environment) pairs: arrays in coordinate format, with a count.

    Of two entries of one pair the later one counts. Arrays are made once, for `capacity` entries
    of `shape`; when more come, arrays of at least twice the size take their place. Frames may be on
    a device; steps and environments are always in host memory.
    """

    def __init__(
        self, shape: tuple[int, ...], dtype: torch.dtype, capacity: int, device: Device = HOST
    ) -> None:
        self.count = 0
        self._frames = device.empty((capacity, *shape), dtype)
        self._at = torch.empty((2, capacity), dtype=torch.int64)

    @property
    def frames(self) -> Tensor:
        """[count, *shape]."""
        return self._frames[: self.count]

    @property
    def steps(self) -> Tensor:
        """[count] int64; steps before the first of an array are negative."""
        return self._at[0, : self.count]

    @property
    def envs(self) -> Tensor:
        """[count] int64."""
        return self._at[1, : self.count]

    def clear(self) -> None:
        self.count = 0

    def append(self, steps: Tensor | int, envs: Tensor, frames: Tensor) -> None:
        """Adds entries: frames [n, *shape] of these steps, one or [n], and environments [n]."""
        first, self.count = self.count, self.count + len(envs)
        if self.count > len(self._frames):
            self._grow(first)
        self.frames[first:] = frames
        self.steps[first:] = steps
        self.envs[first:] = envs

    def _grow(self, num_valid: int) -> None:
        frames, at = self._frames, self._at
        capacity = max(self.count, 2 * len(frames))
        self._frames = frames.new_empty((capacity, *frames.shape[1:]))
        self._at = at.new_empty((2, capacity))
        self._frames[:num_valid], self._at[:, :num_valid] = frames[:num_valid], at[:, :num_valid]

    def extend(self, other: SparseFrames, step: int = 0, env: int = 0) -> None:
        """Adds all entries of the other, with so much added to their steps and environments."""
        if other.count:
            self.append(other.steps + step, other.envs + env, other.frames)

    def part(
        self, first: int, last: int, envs: slice = slice(None), origin: int = 0
    ) -> SparseFrames:
        """Copies of the entries with first <= step < last of some environments; steps count from
        `origin`, environments from the first of the slice."""
        chosen = (self.steps >= first) & (self.steps < last) & (self.envs >= (envs.start or 0))
        if envs.stop is not None:
            chosen &= self.envs < envs.stop
        return self.chosen(chosen, origin, envs.start or 0)

    def chosen(self, which: Tensor, step: int = 0, env: int = 0) -> SparseFrames:
        """Copies of entries, by a mask or by their numbers; so much less in steps and envs."""
        found = self.emptied()
        if not self.count:
            return found
        numbers = which.nonzero().squeeze(-1) if which.dtype is torch.bool else which
        frames = self.frames[self.device.upload(numbers)]
        found.append(self.steps[numbers] - step, self.envs[numbers] - env, frames)
        return found

    @property
    def device(self) -> Device:
        return Device.of(self._frames)

    def emptied(self, device: Device | None = None) -> SparseFrames:
        """None of the entries, and room for none yet; on another device if one is given."""
        shape, dtype = tuple(self._frames.shape[1:]), self._frames.dtype
        return SparseFrames(shape, dtype, 0, device or self.device)

    def find(self, steps: Array, envs: Array) -> Tensor:
        """Frames [N, *shape] of these pairs [N], each of which has an entry."""
        keys, wanted = _key(self.steps.numpy(), self.envs.numpy()), _key(steps, envs)
        return self.frames[torch.from_numpy(newest(keys, wanted))]

    def state(self) -> dict[str, Any]:
        return {name: getattr(self, name).clone() for name in ("steps", "envs", "frames")}

    def load(self, state: Mapping[str, Any]) -> None:
        self.clear()
        self.append(state["steps"], state["envs"], state["frames"])


def _key(steps: Array, envs: Array) -> Array:
    key: Array = (steps << 32) + envs
    return key


def newest(keys: Array, wanted: Array) -> Array:
    """Number [N] of the last entry that has each wanted key [N]."""
    order = np.argsort(keys, kind="stable")
    found: Array = order[np.searchsorted(keys, wanted, side="right", sorter=order) - 1]
    assert (keys[found] == wanted).all()
    return found


@dataclass(frozen=True)
class Padding:
    """What replaces planes that are older than their episode."""

    rule: str
    """A `stack_padding` of a protocol."""
    starts: SparseFrames | None = None
    """Where the environment gives the frames: those before the first frame of each episode."""
    step: int = 0
    """Step of the first row of the planes, as the starts count."""
    envs: Array | None = None
    """Environments [b] of the columns, as the starts count; None where column 0 is number 0."""

    def apply(self, planes: Array, depth: Array) -> None:
        """Replaces planes [T, b, S, *frame] of which only the newest `depth` [T, b] are valid."""
        if self.rule in _GIVEN:
            self._fill(planes, depth)
        else:
            _pad(planes, planes.shape[2] - depth.astype(np.int64), self.rule)

    def _fill(self, planes: Array, depth: Array) -> None:
        for rows, columns, starts in self._given(depth, planes.shape[2] - 1):
            planes[rows, columns, : starts.shape[1]] = starts

    def _given(self, depth: Array, num_given: int) -> Iterator[tuple[Array, Array, Array]]:
        """Young stacks by age: their rows and columns [n], and the frames [n, k, *frame] that
        replace their k oldest planes."""
        assert self.starts is not None
        for age in range(num_given):
            rows, columns = np.nonzero(depth == age + 1)
            if rows.size:
                envs = columns if self.envs is None else self.envs[columns]
                starts = self.starts.find(self.step + rows - age, envs).numpy()
                yield rows, columns, starts[:, age:]

    def apply_there(self, planes: Tensor, depth: Array) -> None:
        """The same on a device: planes are replaced by a table that the host computes."""
        device, flat = Device.of(planes), planes.flatten(0, 2)
        numbers = np.arange(1, len(flat) + 1).reshape(planes.shape[:3])  # 0 is a plane of zeros
        if self.rule in _GIVEN:
            for rows, columns, starts in self._given(depth, planes.shape[2] - 1):
                places = numbers[rows, columns, : starts.shape[1]] - 1
                frames = device.upload(np.ascontiguousarray(starts)).flatten(0, 1)
                flat.index_copy_(0, device.upload(places.reshape(-1)), frames)
            return
        sources = numbers.copy()
        _pad(sources, planes.shape[2] - depth.astype(np.int64), self.rule)
        places = np.flatnonzero(sources != numbers)
        table = device.upload(np.stack([places, sources.reshape(-1)[places] - 1]))
        if self.rule == "repeat":
            flat.index_copy_(0, table[0], flat.index_select(0, table[1]))
        else:
            flat.index_fill_(0, table[0], 0)


class ObservationView:
    """Observations of arrays that are filled again and again: their views are made once.

    Takes planes [T, b, S, *frame] and depths [T, b], uint8 in host memory: views of those arrays.
    """

    def __init__(self, planes: Tensor, depth: Tensor, padding: Padding) -> None:
        self._planes, self._depth, self._padding = planes, depth, padding
        self._whole = planes.view(-1, *planes.shape[2:])
        self._depth_array = depth.numpy()
        self._full = bytes([planes.shape[2]]) * depth.numel()

    def observations(self) -> Tensor:
        """Observations [T * b, S, *frame] of what the arrays hold now."""
        if self._depth_array.tobytes() == self._full:  # the cheapest look at a few bytes
            return self._whole
        return _seen(self._planes, self._depth, self._padding).flatten(0, 1)


def step_planes(frames: Tensor) -> Tensor:
    """Planes [1, N, S, ...] of frames [S, N, ...], not padded."""
    return frames.transpose(0, 1)[None]


def window_planes(frames: Tensor, num_steps: int) -> Tensor:
    """Planes [T, B, S, ...] of frames [S - 1 + T, B, ...], not padded."""
    return frames.unfold(0, frames.shape[0] - num_steps + 1, 1).movedim(-1, 2)


def build(frames: Tensor, depth: Tensor, padding: Padding) -> Tensor:
    """Observations [N, S, ...] from frames [S, N, ...] and valid depths [N]."""
    return _seen(step_planes(frames), depth[None], padding)[0]


def windows(frames: Tensor, depth: Tensor, padding: Padding) -> Tensor:
    """Observations [T, B, S, ...] from frames [S - 1 + T, B, ...] and depths [T, B]."""
    return _seen(window_planes(frames, len(depth)), depth, padding)


def _seen(planes: Tensor, depth: Tensor, padding: Padding) -> Tensor:
    """The planes [T, b, S, *frame] themselves, or a copy, padded where an episode is young."""
    ages = depth.numpy()
    if ages.min() >= planes.shape[2]:
        return planes
    observations = planes.clone(memory_format=torch.contiguous_format)
    if observations.is_cpu:
        padding.apply(observations.numpy(), ages)
    else:
        padding.apply_there(observations, ages)
    return observations


def _pad(planes: Array, first: Array, rule: str) -> None:
    """Replaces planes [T, b, S, *frame] older than the episode, whose first frame is at `first`
    [T, b]: by zeros, or by that frame. NumPy moves whole planes, PyTorch number by number."""
    older = np.arange(planes.shape[2]) < first[..., None]
    if rule == "repeat":
        *rows, _ = np.nonzero(older)
        planes[older] = planes[(*rows, first[tuple(rows)])]
    else:
        planes[older] = 0
