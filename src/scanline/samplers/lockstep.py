"""Lockstep sampler: one or more groups of environments take turns, step by step.

Takes an engine and a policy; fills one slot [T, B] of the store per call, in place.
Knows nothing of losses, optimisers or replay.

With one group the engine waits while the policy decides. With two, the engine's threads advance one
group while the policy decides for the other, so the cheaper of the two is hidden. Two groups cannot
help where engine and network share the same cores. The data of an environment depend on its own
actions only: for a policy that treats rows alone, any number of groups gives the same slot.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar, Literal, get_args
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor

from .. import random
from ..carried import Column, masked
from ..devices import Places, download
from ..engines.interface import Engine
from ..interfaces import BuildContext, Policy
from ..records import Array, EpisodeEnd, Slot, State, StepArrays, to_array
from .episodes import Episodes
from .resets import DeferredResetEngine, ResetMode
from .slot_views import RolloutViews, Scratch, StackState, StepView

DecorrelationDraw = Literal["up-to", "all"]
_ON_HOST = Places()

Mark = Callable[[str], None]
"""Called with the part ('acting', 'environment', 'other') that the time from now on belongs to."""


@dataclass(frozen=True, kw_only=True)
class SamplingSettings:
    """How experience is gathered."""

    gives: ClassVar[frozenset[str]] = frozenset({"lockstep", "carried state"})

    num_envs: int = 32
    """Environments stepped together."""
    rollout_agent_steps: int = 5
    """Agent steps of every environment per rollout; 0 where `rollout_samples` says how many."""
    rollout_samples: int = 0
    """Agent steps of all environments together per rollout; 0 where `rollout_agent_steps` says."""
    num_groups: int = 1
    """1: all environments in lockstep; 2: two halves take turns."""
    decorrelation_agent_steps: int = 0
    """Most random agent steps that an environment plays before training, so that games differ."""
    decorrelation_draw: DecorrelationDraw = "up-to"
    """How many of them it plays: 'up-to' a random number, 'all' every one."""
    reset_mode: ResetMode = "inline"
    """What an ended environment does: 'inline' starts anew in the same step; 'hold' waits for the
    next learning and loses its steps until then; 'reserve' lets a fresh instance take its place."""
    num_reserves: int = 4
    """Fresh instances of each learner with reset_mode='reserve'."""

    def __post_init__(self) -> None:
        if self.num_envs < 1:
            raise ValueError(f"num_envs={self.num_envs} must be at least 1.")
        self._check_rollout()
        if self.decorrelation_draw not in get_args(DecorrelationDraw):
            raise ValueError(
                f"decorrelation_draw={self.decorrelation_draw!r} must be 'up-to' or 'all'."
            )
        if self.reset_mode == "reserve" and self.num_reserves < 1:
            raise ValueError(f"num_reserves={self.num_reserves} must be at least 1.")
        if self.num_groups < 1 or self.num_envs % self.num_groups:
            raise ValueError(
                f"num_envs={self.num_envs} does not divide into num_groups={self.num_groups} equal "
                f"groups; use a multiple of {max(self.num_groups, 1)}."
            )

    @property
    def needs(self) -> frozenset[str]:
        """What resets that wait for the end of a rollout need of store, pace and exchange."""
        waiting = () if self.reset_mode == "inline" else ("pauses", "late resets")
        return frozenset((*waiting, "unplayed steps") if self.reset_mode == "hold" else waiting)

    def _check_rollout(self) -> None:
        steps, samples = self.rollout_agent_steps, self.rollout_samples
        if steps < 0 or samples < 0 or (steps == 0) == (samples == 0):
            raise ValueError(
                f"rollout_agent_steps={steps} and rollout_samples={samples}: exactly one of them "
                "gives the length of a rollout; set the other one to 0."
            )
        if samples % self.num_envs:
            near = max(n for n in range(1, self.num_envs + 1) if samples % n == 0)
            raise ValueError(
                f"rollout_samples={samples} do not divide among num_envs={self.num_envs}; "
                f"use {near} environments, or another power of two."
            )

    @property
    def horizon_agent_steps(self) -> int:
        """Agent steps of every environment per rollout."""
        return self.rollout_agent_steps or self.rollout_samples // self.num_envs

    @property
    def reserves(self) -> int:
        """Instances besides those that play."""
        return self.num_reserves if self.reset_mode == "reserve" else 0

    def build(self, context: BuildContext) -> LockstepSampler:
        decorrelation = (self.decorrelation_agent_steps, self.decorrelation_draw)
        around = (context.mark, decorrelation, context.carried, context.places)
        return LockstepSampler(context.engine, context.seed, *around)


class LockstepSampler:
    """Steps every environment T times per `collect`."""

    def __init__(
        self,
        engine: Engine,
        seed: int,
        mark: Mark = lambda part: None,
        decorrelation: tuple[int, DecorrelationDraw] = (0, "up-to"),
        carried: Mapping[str, Column] = MappingProxyType({}),
        places: Places = _ON_HOST,
    ) -> None:
        """`decorrelation`: random agent steps before a run begins, and how many are played;
        `carried`: what the policy's network carries from step to step; `places`: of the slots; the
        policy is on their device."""
        self._decorrelation, self._carried = decorrelation, carried
        self._engine, self._seed, self._mark = engine, seed, mark
        self._device, self._frames_in = device, frames_in = places
        self._deferred = engine if isinstance(engine, DeferredResetEngine) else None
        settings, spaces = engine.settings, engine.spaces
        self._num_envs, size = settings.num_envs, settings.group_size
        self._groups = [slice(g * size, (g + 1) * size) for g in range(settings.num_groups)]
        self._env_ids = settings.first_env_id + np.arange(self._num_envs)
        self._draws = [
            random.EnvStream(seed, "act", self._env_ids[envs], device) for envs in self._groups
        ]
        self._episodes = Episodes(self._num_envs)
        self._env_steps = 0
        self.games_go_on = True
        """Whether the games in play are those of the state that was loaded."""
        newest = Slot.allocate(spaces, 0, self._num_envs, {}, carried, places)
        self._newest, self._newest_there = StackState.of(newest, 0), newest.frames
        self._is_up = self._has_one_side = frames_in == device
        """Whether the device has the newest frames, too."""
        self._scratch = Scratch.allocate(spaces, self._num_envs, frames_in)
        self._views: WeakKeyDictionary[Slot, RolloutViews] = WeakKeyDictionary()

    @property
    def engine(self) -> Engine:
        return self._engine

    def begin(self) -> None:
        """Starts the games of a run, as far apart as its settings want."""
        self.reset(*self._decorrelation)

    def reset(
        self,
        decorrelation_agent_steps: int = 0,
        decorrelation_draw: DecorrelationDraw = "up-to",
    ) -> None:
        """Starts all games, and plays random steps in each: so many, or a random number of them.

        Random steps are not seen by the policy: its network begins with the initial state.
        """
        side = Places(self._frames_in, self._frames_in)
        scratch = Slot.allocate(self._engine.spaces, 1, self._num_envs, {}, self._carried, side)
        arrays = [self._scratch.step_arrays(scratch, 0, envs) for envs in self._groups]
        for group, envs in enumerate(self._groups):
            self._engine.reset(group, arrays[group])
            self._scratch.keep_starts(scratch, 0, envs, arrays[group].depth)
        starts = self._starts(decorrelation_agent_steps, decorrelation_draw)
        self._decorrelate(scratch, arrays, decorrelation_agent_steps, starts)
        StackState.of(scratch, 1).copy_to(self._newest)
        self._is_up = self._has_one_side

    def abandon(self) -> None:
        """Starts new games in place of those in play, which will never end."""
        self.reset()
        self._episodes.abandon()

    def _starts(self, most_steps: int, draw: DecorrelationDraw) -> Array:
        """Step [B] at which each game begins anew; -1 where it goes on from the reset."""
        if draw == "all":
            return np.full(self._num_envs, -1)
        chance = random.uniforms(self._seed, "decorrelate", self._env_ids, 0)[:, 0]
        starts: Array = most_steps - (chance * (most_steps + 1)).astype(np.int64)
        return starts

    def _decorrelate(
        self, slot: Slot, arrays: list[StepArrays], most_steps: int, starts: Array
    ) -> None:
        """Every game begins at its own step and then plays random actions until the last."""
        num_actions = self._engine.spaces.num_actions
        before, after = StackState.of(slot, 0), StackState.of(slot, 1)
        for step in range(most_steps):
            drawn = random.uniforms(self._seed, "decorrelate", self._env_ids, step + 1)[:, 0]
            actions = (drawn * num_actions).astype(np.int64)
            for group, envs in enumerate(self._groups):
                begins = starts[envs] == step
                if begins.any():
                    self._engine.reset(group, arrays[group], begins)
                    self._scratch.keep_starts(slot, 0, envs, arrays[group].depth)
                    self._episodes.restart(np.flatnonzero(begins) + envs.start)
            after.copy_to(before)
            for group, envs in enumerate(self._groups):
                self._engine.send(group, actions[envs], arrays[group])
            for group, envs in enumerate(self._groups):
                self._engine.recv(group, arrays[group])
                self._scratch.keep_starts(slot, 0, envs, arrays[group].depth)
                ended = arrays[group].terminated | arrays[group].truncated
                self._episodes.note(envs, arrays[group].raw_reward, ended)
        if most_steps:
            self._episodes.number_anew()

    def collect(self, policy: Policy, into: Slot) -> Slot:
        """Fills the slot: T steps of every environment, and the observation after the last."""
        views = self._views_of(into)
        self._begin(into, views)
        sent: list[StepView] = []
        agent_steps = into.agent_steps
        for step in views.steps:
            for group, view in enumerate(step):
                if sent:
                    self._receive(into, sent[group])
                self._act(policy, view, agent_steps)
            sent, agent_steps = step, agent_steps + into.agent_steps_per_step
        for view in sent:
            self._receive(into, view)
        if self._deferred is not None:
            self._deferred.end_rollout()
        self._count(into, views)
        views.last.copy_to(self._newest)
        if into.staging is not None:
            into.upload_steps()
            self._keep_there(into)
        self._mark("other")
        return into

    def drain_episodes(self) -> list[EpisodeEnd]:
        """Games finished since the last call."""
        return self._episodes.drain().records()

    def _act(self, policy: Policy, view: StepView, agent_steps: int) -> None:
        observations = view.observation_view.observations()
        self._mark("acting")
        uniforms = self._draws[view.group].at(self._env_steps + view.t, policy.draws_per_step)
        if view.carried is None:
            acted = policy(observations, uniforms, agent_steps)
        else:
            acted = policy(observations, uniforms, agent_steps, view.carried)
        actions = download(acted.actions)
        self._mark("environment")
        self._engine.send(view.group, actions, view.arrays)
        # What can wait does so until the engine is at work.
        view.keep(acted, actions, policy.version)  # acting may have found newer weights

    def _receive(self, slot: Slot, view: StepView) -> None:
        truncated, envs = view.arrays.truncated, view.envs
        self._engine.recv(view.group, view.arrays)
        slot.upload_frames(view.t, envs)
        if True in truncated.tobytes():
            self._scratch.keep_finals(slot, view.t, envs, truncated)
        self._scratch.keep_starts(slot, view.t, envs, view.arrays.depth)
        if self._carried:
            self._forget(self._device.upload(slot.host.ends(view.t, envs)), view)
        if self._deferred is not None:
            slot.host.note_playing(view.t, envs, self._deferred.playing[envs])

    def _forget(self, ended: Tensor, view: StepView) -> None:
        """Where a return has ended [b], what is carried into the next step is initial."""
        for name, after in view.carried_after.items():
            after.copy_(masked(after, ended, self._carried[name].initial))

    def _count(self, slot: Slot, views: RolloutViews) -> None:
        """Counts the slot's steps, all together: between other work each would cost many times."""
        self._env_steps += slot.num_steps
        valid = None if slot.host.valid is None else to_array(slot.host.valid)
        self._episodes.note_steps(views.raw_reward, views.terminated | views.truncated, valid)

    def _begin(self, slot: Slot, views: RolloutViews) -> None:
        if self._deferred is not None:
            self._begin_held(self._deferred)
        self._newest.copy_to(views.first)
        slot.host.finals.clear()
        if slot.staging is not None and not self._has_one_side:
            self._begin_there(slot, slot.staging)

    def _begin_there(self, slot: Slot, host: Slot) -> None:
        """The newest frames begin the slot on its device; they go up only if it has them not."""
        first = slot.frames[: slot.stack]
        if self._is_up:
            first.copy_(self._newest_there)
        else:
            self._device.upload_into(first, host.frames[: slot.stack])

    def _keep_there(self, slot: Slot) -> None:
        """The newest frames stay on the device as well."""
        if not self._has_one_side:
            self._newest_there.copy_(slot.frames[slot.num_steps :])
            self._is_up = True

    def _begin_held(self, deferred: DeferredResetEngine) -> None:
        """Environments that were held begin with the first frames of their new games."""
        for env in deferred.begin_rollout():
            start = deferred.start_of(env)
            self._newest.frames[-1, env] = start.frame[0]
            self._newest.depth[env], self._scratch.lives[env] = 1, start.lives[0]
            for name, state in self._newest.carried.items():
                state[env] = self._carried[name].initial
            self._is_up = self._has_one_side
            if self._engine.spaces.num_start_frames:
                frames = torch.from_numpy(start.start_frames)
                self._newest.starts.append(0, torch.tensor([env]), frames)

    def _views_of(self, slot: Slot) -> RolloutViews:
        """The slot's views; made once for each."""
        found = self._views.get(slot)
        if found is None:
            found = self._views[slot] = RolloutViews.of(slot, self._groups, self._scratch)
        return found

    def state(self) -> State:
        """Everything that the next `collect` depends on; environments only where they can tell."""
        state: State = {
            "window": torch.from_numpy(download(torch.as_tensor(self._newest.frames)).copy()),
            "depth": torch.from_numpy(self._newest.depth.copy()),
            "starts": self._newest.starts.state(),
            "carried": {name: each.clone() for name, each in self._newest.carried.items()},
            "env_steps": self._env_steps,
            "episodes": self._episodes.state(),
            "environments": None,
        }
        if self._engine.can_snapshot:
            try:
                state["environments"] = self._engine.snapshot()
            except Exception as error:  # a lost environment must not cost the weights
                state["inexact"] = f"environments could not be saved ({error})"
        return state

    def load(self, state: State) -> None:
        """Continues exactly, or with new games where the engine has no snapshots."""
        depth, stack = to_array(state["depth"]), self._engine.spaces.stack
        if depth.min() < 1 or depth.max() > stack:
            raise ValueError(
                f"depth={depth.tolist()} is out of bounds: an observation has 1 to {stack} frames; "
                "the checkpoint was changed, so continue from another one."
            )
        self._env_steps = state["env_steps"]
        self._episodes.load(state["episodes"])
        self.games_go_on = state["environments"] is not None
        if not self.games_go_on:
            self.abandon()
            return
        self._check_starts(state["starts"], depth)
        torch.as_tensor(self._newest.frames).copy_(state["window"])
        np.copyto(self._newest.depth, depth)
        self._newest.starts.load(state["starts"])
        for name, carried in self._newest.carried.items():
            carried.copy_(state["carried"][name])
        self._is_up = self._has_one_side
        self._engine.restore(state["environments"])

    def _check_starts(self, starts: State, depth: Array) -> None:
        """Refuses frames of another shape, and young stacks that have none."""
        spaces = self._engine.spaces
        shape = (spaces.num_start_frames, *spaces.frame_shape)
        given = set(zip(starts["steps"].tolist(), starts["envs"].tolist(), strict=True))
        young = np.flatnonzero(depth <= spaces.num_start_frames).tolist()
        missing = [env for env in young if (1 - int(depth[env]), env) not in given]
        if missing or starts["frames"].shape[1:] != shape:
            raise ValueError(
                f"The frames that fill the stacks of environments {missing or young} are missing "
                f"or not of shape {shape}; the checkpoint was changed, so continue from another "
                "one."
            )
