"""A slot: the arrays of one rollout, in host memory or on a device.

Takes spaces, a number of steps and environments, and a device; gives arrays that a sampler fills in
place, and observations from them. Knows no engine, store or algorithm.

A slot on a device has a second side in host memory, where an engine writes. New frames go up step
by step; rewards and ends follow once per rollout, as records of 12 bytes. An engine whose memory is
the device writes frames there at once: both sides then have the same frames.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from . import stacks
from .carried import Carried, Column, Sequences, allocated
from .devices import Device, Places
from .spaces import Spaces
from .stacks import Array

_STEPS = ("actions", "reward", "raw_reward", "terminated", "truncated", "life_lost")
"""Arrays [T, B] of every slot."""
_RECORD = {"reward": 0, "raw_reward": 1, "terminated": 8, "truncated": 9, "life_lost": 10}
"""Where in its record, counted in numbers of its own type, a device has what a step came to."""
_RECORD_BYTES = 12
_ON_HOST = Places()
_VALID = 11


@dataclass(eq=False)
class Slot:
    """One rollout's arrays, the store's, filled in place by the sampler: views stay valid.

    A slot may be on a device. An engine then writes into another one in host memory, its `host`,
    and what the device needs goes up from there. Depths, versions and starts are always in host
    memory: they decide what is computed.
    """

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
    staging: Slot | None = None
    """The host's side of a slot on a device."""
    records: Tensor | None = None
    """[T, B, 12] bytes: rewards and ends of a slot on a device, which are views of it."""

    @classmethod
    def allocate(
        cls,
        spaces: Spaces,
        num_steps: int,
        num_envs: int,
        columns: Mapping[str, Column],
        carried: Mapping[str, Column] = MappingProxyType({}),
        places: Places = _ON_HOST,
    ) -> Slot:
        """Arrays of one rollout: zeros, and initial values of what is carried."""
        device, frames_in = places
        steps = (num_steps, num_envs)
        frame, dtype = spaces.frame_shape, getattr(torch, spaces.frame_dtype)
        memory = device.staging if frames_in.is_host else device.zeros
        host = cls(
            frames=memory((spaces.stack + num_steps, num_envs, *frame), dtype),
            depth=torch.ones((num_steps + 1, num_envs), dtype=torch.uint8),
            actions=torch.zeros(steps, dtype=torch.int64),
            reward=torch.zeros(steps),
            raw_reward=torch.zeros(steps),
            terminated=torch.zeros(steps, dtype=torch.bool),
            truncated=torch.zeros(steps, dtype=torch.bool),
            life_lost=torch.zeros(steps, dtype=torch.bool),
            version=torch.zeros(num_steps, dtype=torch.int64),
            columns={n: device.zeros((*steps, *c.shape), c.dtype) for n, c in columns.items()},
            finals=stacks.SparseFrames((spaces.stack, *frame), dtype, num_envs, frames_in),
            starts=stacks.SparseFrames((spaces.num_start_frames, *frame), dtype, num_envs),
            padding=spaces.stack_padding,
            life_loss_ends_return=spaces.life_loss_ends_return,
            carried=allocated(carried, num_steps + 1, num_envs, device=device.pytorch),
        )
        return host if device.is_host else host._on(device)

    def _on(self, device: Device) -> Slot:
        """A slot on a device whose host side is this one."""
        records = device.zeros((*self.actions.shape, _RECORD_BYTES), torch.uint8)
        recorded: dict[str, Any] = {name: _recorded(records, name) for name in _RECORD}
        is_there = not self.frames.is_cpu
        return replace(
            self,
            frames=self.frames if is_there else device.zeros(self.frames.shape, self.frames.dtype),
            actions=device.zeros(self.actions.shape, torch.int64),
            **recorded,
            finals=self.finals.emptied(device),
            staging=self,
            records=records,
        )

    @property
    def host(self) -> Slot:
        """Where an engine writes: this slot, or its other side."""
        return self.staging or self

    @property
    def device(self) -> Device:
        return Device.of(self.frames)

    def upload_frames(self, t: int, envs: slice = slice(None)) -> None:
        """Brings the newest frames of step t up, once they are written."""
        if self.staging is not None and self.staging.frames.is_cpu:
            row = self.stack + t
            self.device.upload_into(self.frames[row, envs], self.staging.frames[row, envs])

    def upload(self) -> None:
        """Brings up a rollout that was written as a whole, all but its columns."""
        if self.staging is not None:
            self.device.upload_into(self.frames, self.staging.frames)
            self.device.upload_into(self.actions, self.staging.actions)
            self.upload_steps()

    def upload_steps(self) -> None:
        """Brings up what the steps came to, all of them together, once the rollout is full."""
        if self.staging is None:
            return
        assert self.records is not None
        host, device = self.staging, self.device
        packed = device.staging(self.records.shape, torch.uint8)
        for name in _RECORD:
            _recorded(packed, name).copy_(getattr(host, name))
        if host.valid is not None:
            packed.view(torch.bool)[..., _VALID] = host.valid
            self.valid = self.records.view(torch.bool)[..., _VALID]
        self.records.copy_(device.upload(packed))
        self.finals.clear()
        if host.finals.count:
            self.finals.append(
                host.finals.steps, host.finals.envs, device.upload(host.finals.frames)
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
        part = replace(
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
            records=None if self.records is None else self.records[start:end, envs],
            last={},
        )
        if self.staging is not None:
            host = self.staging.part(start, num_steps, envs)
            part.staging = replace(host, depth=part.depth, starts=part.starts)
        return part

    def note_playing(self, t: int, envs: slice, playing: Array) -> None:
        """Which of these environments have played step t; a slot filled again notes all steps."""
        if self.valid is None:
            self.valid = torch.ones_like(self.terminated)
        self.valid[t, envs] = torch.from_numpy(playing)

    def played(self) -> Tensor | None:
        """Places [n] of the steps [T * B] that were played; None where all were."""
        valid = self.host.valid
        if valid is None or bool(valid.all()):
            return None
        return self.device.upload(valid.flatten().nonzero().squeeze(-1))

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


def _recorded(records: Tensor, name: str) -> Tensor:
    """Views [T, B] of records [T, B, 12]."""
    place = _RECORD[name]
    return records.view(torch.float32 if place < 2 else torch.bool)[..., place]


def to_array(tensor: Tensor) -> Array:
    """The same memory as a NumPy array; of the host alone."""
    array: Array = tensor.detach().numpy()
    return array
