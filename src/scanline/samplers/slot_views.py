"""Views of a slot: where an engine and a policy write, and what is copied from slot to slot.

Takes a slot and a range of its environments; gives NumPy views of one step, of the newest stacks
and of the whole rollout. Knows no engine, schedule or policy.

A slot is filled thousands of times and a view costs as much as a step's own work, so all views are
made once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from .. import stacks
from ..carried import Carried
from ..devices import HOST, Device
from ..records import Acted, Array, Frames, Slot, Spaces, StepArrays, to_array


@dataclass(frozen=True)
class StepView:
    """One step of some environments in a slot: their observations, and where it is written."""

    t: int
    group: int
    envs: slice
    observation_view: stacks.ObservationView
    actions: Array  # [b] int64
    actions_there: Tensor | None  # [b] int64 on the slot's device, where that is not the host
    columns: dict[str, Tensor]  # each [b, ...]
    version: Array  # [1] int64, shared by all environments of the slot
    arrays: StepArrays
    carried: Carried | None
    """What a network with memory carries into the step; None for others."""
    carried_after: dict[str, Tensor]  # each [b, ...], into the next step

    def keep(self, acted: Acted, actions: Array, version: int) -> None:
        """Writes what a policy with so many updates has decided; the actions on both sides."""
        self.actions[:] = actions
        if self.actions_there is not None:
            self.actions_there.copy_(acted.actions)
        for name, stored in self.columns.items():
            stored.copy_(acted.columns[name].detach())
        for name, after in self.carried_after.items():
            after.copy_(acted.carried[name])
        self.version[0] = version


@dataclass(frozen=True)
class StackState:
    """The newest frames of all environments, their depths, and the start frames of young stacks:
    what the next slot begins with."""

    frames: Frames  # [S, B, *frame], where the engine writes them
    depth: Array  # [B] uint8
    starts: stacks.SparseFrames
    step: int
    """Of the newest frame, as the starts count."""
    carried: dict[str, Tensor]
    """Each [B, ...], what a network with memory carries into the step; empty for others."""

    @classmethod
    def of(cls, slot: Slot, t: int) -> StackState:
        """Of the engine's side; what is carried, where the network is."""
        frames = _written(slot.host.frames[t : t + slot.stack])
        carried = {name: each[t] for name, each in slot.carried.items()}
        return cls(frames, to_array(slot.depth[t]), slot.starts, t, carried)

    def copy_to(self, other: StackState) -> None:
        """Overwrites the other's frames, depths, carried state and all its starts."""
        _overwrite(other.frames, self.frames)
        np.copyto(other.depth, self.depth)
        for name, state in self.carried.items():
            other.carried[name].copy_(state)
        if self.starts.frames.shape[1]:
            oldest = self.step + 2 - len(self.frames)
            kept = self.starts.part(oldest, self.step + 1, origin=self.step)
            other.starts.clear()
            other.starts.extend(kept, step=other.step)


@dataclass(frozen=True)
class Scratch:
    """Arrays that an engine writes and no slot keeps: [B] lives, [B, *frame] last frames, and
    [B, num_start_frames, *frame] frames that fill a new stack."""

    lives: Array
    final_frame: Frames
    start_frames: Array

    @classmethod
    def allocate(cls, spaces: Spaces, num_envs: int, frames_in: Device = HOST) -> Scratch:
        own = StepArrays.allocate(spaces, num_envs)
        final_frame = _written(frames_in.upload(own.final_frame))
        return cls(own.lives, final_frame, own.start_frames)

    def step_arrays(self, slot: Slot, t: int, envs: slice) -> StepArrays:
        """Where the engine writes step t of these environments."""
        slot = slot.host

        def view(tensor: Tensor) -> Array:
            return to_array(tensor[envs])

        return StepArrays(
            frame=_written(slot.frames[slot.stack + t][envs]),
            depth=view(slot.depth[t + 1]),
            reward=view(slot.reward[t]),
            raw_reward=view(slot.raw_reward[t]),
            terminated=view(slot.terminated[t]),
            truncated=view(slot.truncated[t]),
            life_lost=view(slot.life_lost[t]),
            lives=self.lives[envs],
            final_frame=self.final_frame[envs],
            start_frames=self.start_frames[envs],
        )

    def step_view(self, slot: Slot, t: int, group: int, envs: slice) -> StepView:
        """Step t of a group, which is these environments."""
        return StepView(
            t=t,
            group=group,
            envs=envs,
            observation_view=slot.observation_view(t, envs),
            actions=to_array(slot.host.actions[t, envs]),
            actions_there=None if slot.staging is None else slot.actions[t, envs],
            columns={name: column[t, envs] for name, column in slot.columns.items()},
            version=to_array(slot.version[t : t + 1]),
            arrays=self.step_arrays(slot, t, envs),
            carried=slot.carried_at(t, envs),
            carried_after={name: each[t + 1, envs] for name, each in slot.carried.items()},
        )

    def keep_starts(self, slot: Slot, t: int, envs: slice, depth: Array) -> None:
        """Keeps what fills the stacks [b] that are new after step t, where the engine gives it."""
        if self.start_frames.shape[1] and 1 in depth:
            new = np.flatnonzero(depth == 1) + envs.start
            frames = torch.from_numpy(self.start_frames[new])
            slot.starts.append(t + 1, torch.from_numpy(new), frames)

    def keep_finals(self, slot: Slot, t: int, envs: slice, truncated: Array) -> None:
        """Builds the true last observations of truncated episodes, where the engine writes."""
        slot = slot.host
        ended = np.flatnonzero(truncated) + envs.start
        numbers = torch.from_numpy(ended)
        there = slot.device.upload(numbers)
        last = torch.as_tensor(self.final_frame)[there]
        frames = torch.cat([slot.frames[t + 1 : t + slot.stack, there], last[None]])
        depth = (slot.depth[t, numbers] + 1).clamp(max=slot.stack)
        padding = slot.padding_from(t + 1, ended)
        slot.finals.append(t, numbers, stacks.build(frames, depth, padding))


def _written(frames: Tensor) -> Frames:
    """The same memory as an engine writes it."""
    return to_array(frames) if frames.is_cpu else frames


def _overwrite(target: Frames, source: Frames) -> None:
    if isinstance(target, np.ndarray):  # by NumPy: PyTorch would wake its threads
        np.copyto(target, source)
    else:
        for into, frames in zip(target, source, strict=True):  # the two may overlap
            into.copy_(frames)


@dataclass(frozen=True)
class RolloutViews:
    """Views of a whole slot, step by step."""

    first: StackState
    steps: list[list[StepView]]  # [T][group]
    last: StackState
    raw_reward: Array  # [T, B]
    terminated: Array  # [T, B]
    truncated: Array  # [T, B]

    @classmethod
    def of(cls, slot: Slot, groups: Sequence[slice], scratch: Scratch) -> RolloutViews:
        return cls(
            first=StackState.of(slot, 0),
            steps=[
                [scratch.step_view(slot, t, group, envs) for group, envs in enumerate(groups)]
                for t in range(slot.num_steps)
            ],
            last=StackState.of(slot, slot.num_steps),
            raw_reward=to_array(slot.host.raw_reward),
            terminated=to_array(slot.host.terminated),
            truncated=to_array(slot.host.truncated),
        )
