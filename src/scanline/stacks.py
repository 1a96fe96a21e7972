"""Frame stacks: the one place that turns single frames into observations.

Takes the last S frames of a batch, oldest first, and how many of them are valid; gives
observations [N, S, ...] with the protocol's padding, all on the CPU. Knows no store and no engine.

Rollout and replay keep every frame once, an eighth of the memory of stored stacks. While no episode
is younger than S steps the result is a view: nothing is copied.

Some protocols fill a new stack with frames of NOOP steps. The environment gives these frames, S - 1
at the start of an episode; they belong to no step and are kept apart, as `Starts`
(docs/decisions/0010).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

Array = npt.NDArray[Any]
Starts = dict[tuple[int, int], Tensor]
"""Frames [S - 1, *frame], oldest first, that fill the stack of a new episode; by step and
environment of the episode's first frame. Steps before an array's first are negative."""

_GIVEN = ("noop-steps", "start-and-noop-steps")


def num_start_frames(padding: str, stack: int) -> int:
    """Frames that the environment gives to fill a new stack: S - 1, or none."""
    return stack - 1 if padding in _GIVEN else 0


def starts_from(starts: Starts, step: int, stack: int) -> Starts:
    """What stacks from a step on can need, with steps counted from there."""
    return {(t - step, env): s for (t, env), s in starts.items() if t - step > 1 - stack}


def starts_state(starts: Starts) -> dict[str, Any]:
    """The same, as a checkpoint holds it."""
    frames = [frames.clone() for frames in starts.values()]
    return {"at": [list(place) for place in starts], "frames": frames}


def starts_of(state: Mapping[str, Any]) -> Starts:
    """What `starts_state` gave."""
    return {(t, env): s for (t, env), s in zip(state["at"], state["frames"], strict=True)}


@dataclass(frozen=True)
class Padding:
    """What replaces planes that are older than their episode."""

    rule: str
    """A `stack_padding` of a protocol."""
    starts: Starts = field(default_factory=dict)
    """Where the environment gives the frames."""
    step: int = 0
    """Step of the first row of the planes, as the starts count."""
    env: int = 0
    """Environment of their first column."""

    def apply(self, planes: Array, depth: Array) -> None:
        """Replaces planes [T, b, S, *frame] of which only the newest `depth` [T, b] are valid."""
        if self.rule in _GIVEN:
            self._fill(planes, depth)
        else:
            _pad(planes, planes.shape[2] - depth.astype(np.int64), self.rule)

    def _fill(self, planes: Array, depth: Array) -> None:
        stack = planes.shape[2]
        for t, row in np.argwhere(depth < stack).tolist():
            age = int(depth[t, row]) - 1
            start = self.starts[self.step + t - age, self.env + row]
            planes[t, row, : stack - 1 - age] = start[age:].numpy()


class ObservationView:
    """What is seen in arrays that are filled again and again: their views are made once.

    Takes planes [T, b, S, *frame] and depths [T, b], uint8 on the CPU: views of those arrays.
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
    padding.apply(observations.numpy(), ages)
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
