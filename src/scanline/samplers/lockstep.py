"""Lockstep sampler: one or more groups of environments take turns, step by step.

Takes an engine and a policy; fills one slot [T, B] of the store per call, in place.
Knows nothing of losses, optimisers or replay.

With one group the engine waits while the policy decides. With two, the engine's threads advance one
group while the policy decides for the other, so the cheaper of the two is hidden. Two groups cannot
help where engine and network share the same cores. The data of an environment depend on its own
actions only: for a policy that treats rows alone, any number of groups gives the same slot.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor

from .. import stacks, streams
from ..engines.interface import Engine, EngineError
from ..records import Array, EpisodeEnd, Policy, Slot, State, StepArrays, to_array
from .episodes import Episodes
from .resets import ResetMode, RestingEngine

Mark = Callable[[str], None]
"""Told which part ('acting', 'environment', 'other') the time from now on belongs to."""


@dataclass(frozen=True, kw_only=True)
class SamplingSettings:
    """How experience is gathered."""

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
    reset_mode: ResetMode = "inline"
    """What an ended environment does: 'inline' starts anew in the same step; 'hold' waits for the
    next learning and loses its steps until then; 'reserve' lets a fresh instance take its place."""
    num_reserves: int = 4
    """Fresh instances of each learner with reset_mode='reserve'."""

    def __post_init__(self) -> None:
        if self.num_envs < 1:
            raise ValueError(f"num_envs={self.num_envs} must be at least 1.")
        self._check_rollout()
        if self.reset_mode == "reserve" and self.num_reserves < 1:
            raise ValueError(f"num_reserves={self.num_reserves} must be at least 1.")
        if self.num_groups < 1 or self.num_envs % self.num_groups:
            raise ValueError(
                f"num_envs={self.num_envs} does not divide into num_groups={self.num_groups} equal "
                f"groups; use a multiple of {max(self.num_groups, 1)}."
            )

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


class LockstepSampler:
    """Steps every environment T times per `collect`."""

    def __init__(self, engine: Engine, seed: int, mark: Mark = lambda part: None) -> None:
        self._engine, self._seed, self._mark = engine, seed, mark
        self._resting = engine if isinstance(engine, RestingEngine) else None
        settings, spaces = engine.settings, engine.spaces
        self._num_envs, self._size = settings.num_envs, settings.group_size
        self._groups = [
            slice(g * self._size, (g + 1) * self._size) for g in range(settings.num_groups)
        ]
        ids = settings.first_env_id + np.arange(self._num_envs)
        self._draws = [streams.EnvStream(seed, "act", ids[envs]) for envs in self._groups]
        self._episodes = Episodes(self._num_envs)
        self._env_steps = 0
        frames = (spaces.stack, self._num_envs, *spaces.frame_shape)
        self._window = torch.zeros(frames, dtype=getattr(torch, spaces.frame_dtype))
        self._depth = torch.ones(self._num_envs, dtype=torch.uint8)
        self._final = np.zeros(frames[1:], spaces.frame_dtype)
        self._lives = np.zeros(self._num_envs, np.int32)
        self._targets: WeakKeyDictionary[Slot, list[list[StepArrays]]] = WeakKeyDictionary()

    @property
    def engine(self) -> Engine:
        return self._engine

    def reset(self, decorrelation_agent_steps: int = 0) -> None:
        """Starts all games, and plays a random number of random steps in each."""
        scratch = Slot.allocate(self._engine.spaces, 1, self._num_envs, {})
        arrays = [self._step_arrays(scratch, 0, envs) for envs in self._groups]
        for group in range(len(self._groups)):
            self._engine.reset(group, arrays[group])
        self._decorrelate(scratch, arrays, decorrelation_agent_steps)
        self._keep(scratch, 1)

    def abandon(self) -> None:
        """Starts new games in place of those in play, which will never end."""
        self.reset()
        self._episodes.abandon()

    def _decorrelate(self, slot: Slot, arrays: list[StepArrays], most_steps: int) -> None:
        """Every game begins at a step of its own and then plays random actions until the last."""
        ids = np.arange(self._num_envs) + self._engine.settings.first_env_id
        chance = streams.uniforms(self._seed, "decorrelate", ids, 0)[:, 0]
        starts = most_steps - (chance * (most_steps + 1)).astype(np.int64)
        num_actions = self._engine.spaces.num_actions
        for step in range(most_steps):
            drawn = streams.uniforms(self._seed, "decorrelate", ids, step + 1)[:, 0]
            actions = (drawn * num_actions).astype(np.int64)
            for group, envs in enumerate(self._groups):
                if (starts[envs] == step).any():
                    self._engine.reset(group, arrays[group], starts[envs] == step)
                    self._episodes.restart(np.flatnonzero(starts[envs] == step) + envs.start)
                slot.frames[:-1, envs] = slot.frames[1:, envs].clone()
                self._engine.send(group, actions[envs])
            for group, envs in enumerate(self._groups):
                self._engine.recv(group, arrays[group])
                ended = arrays[group].terminated | arrays[group].truncated
                self._episodes.note(envs, arrays[group].raw_reward, ended)
        if most_steps:
            self._episodes.number_anew()

    def collect(self, policy: Policy, into: Slot) -> Slot:
        """Fills the slot: T steps of every environment, and the observation after the last."""
        self._begin(into)
        targets = self._targets_of(into)
        for t in range(into.num_steps):
            into.version[t] = policy.version
            for group in range(len(self._groups)):
                if t:
                    self._receive(into, targets, t - 1, group)
                self._act(policy, into, t, group)
        for group in range(len(self._groups)):
            self._receive(into, targets, into.num_steps - 1, group)
        if self._resting is not None:
            self._resting.rest()
        self._env_steps += into.num_steps
        self._keep(into, into.num_steps)
        self._mark("other")
        return into

    def drain_episodes(self) -> list[EpisodeEnd]:
        """Games finished since the last call."""
        return self._episodes.drain()

    def _act(self, policy: Policy, slot: Slot, t: int, group: int) -> None:
        envs = self._groups[group]
        frames = slot.frames[t : t + slot.stack, envs]
        observations = stacks.build(frames, slot.depth[t, envs], slot.padding)
        self._mark("acting")
        uniforms = self._draws[group].at(self._env_steps + t)
        agent_steps = slot.agent_steps + t * slot.agent_steps_per_step
        actions, columns = policy(observations, uniforms, agent_steps)
        slot.actions[t, envs] = actions
        for name, stored in slot.columns.items():
            stored[t, envs] = columns[name]
        self._mark("environment")
        self._engine.send(group, to_array(actions))

    def _receive(self, slot: Slot, targets: list[list[StepArrays]], t: int, group: int) -> None:
        arrays, envs = targets[t][group], self._groups[group]
        self._engine.recv(group, arrays)
        if arrays.truncated.any():
            self._keep_finals(slot, t, envs, arrays.truncated)
        playing: Array | int = 1
        if self._resting is not None:
            playing = self._resting.playing[envs]
            slot.note_playing(t, envs, playing)
        self._episodes.note(envs, arrays.raw_reward, arrays.terminated | arrays.truncated, playing)

    def _keep_finals(self, slot: Slot, t: int, envs: slice, truncated: Array) -> None:
        """Builds the true last observations of truncated episodes."""
        for row in np.flatnonzero(truncated):
            env = int(row) + envs.start
            last = torch.from_numpy(self._final[env].copy())
            older = slot.frames[t + 1 : t + slot.stack, env]
            frames = torch.cat([older, last[None]])[:, None]
            depth = (slot.depth[t, env : env + 1] + 1).clamp(max=slot.stack)
            slot.finals.append((t, env, stacks.build(frames, depth, slot.padding)[0].clone()))

    def _begin(self, slot: Slot) -> None:
        if self._resting is not None:
            self._begin_held(self._resting)
        slot.frames[: slot.stack] = self._window
        slot.depth[0] = self._depth
        slot.finals.clear()

    def _begin_held(self, resting: RestingEngine) -> None:
        """Environments that were held see the first frames of their new games."""
        for place in resting.begin():
            start = resting.start_of(place)
            self._window[-1, place] = torch.from_numpy(start.frame[0])
            self._depth[place], self._lives[place] = 1, start.lives[0]

    def _keep(self, slot: Slot, t: int) -> None:
        """Remembers the newest S frames for the next slot."""
        self._window.copy_(slot.frames[t : t + slot.stack])
        self._depth.copy_(slot.depth[t])

    def _targets_of(self, slot: Slot) -> list[list[StepArrays]]:
        """Where the engine writes step t of each group; made once per slot."""
        if slot not in self._targets:
            self._targets[slot] = [
                [self._step_arrays(slot, t, envs) for envs in self._groups]
                for t in range(slot.num_steps)
            ]
        return self._targets[slot]

    def _step_arrays(self, slot: Slot, t: int, envs: slice) -> StepArrays:
        def view(tensor: Tensor) -> Array:
            return to_array(tensor[envs])

        return StepArrays(
            frame=view(slot.frames[slot.stack + t]),
            depth=view(slot.depth[t + 1]),
            reward=view(slot.reward[t]),
            raw_reward=view(slot.raw_reward[t]),
            terminated=view(slot.terminated[t]),
            truncated=view(slot.truncated[t]),
            life_lost=view(slot.life_lost[t]),
            lives=self._lives[envs],
            final_frame=self._final[envs],
        )

    def state(self) -> State:
        """Everything that the next `collect` depends on; environments only where they can tell."""
        return {
            "window": self._window.clone(),
            "depth": self._depth.clone(),
            "env_steps": self._env_steps,
            "episodes": self._episodes.state(),
            "environments": self._snapshots(),
        }

    def _snapshots(self) -> list[bytes] | None:
        """None where the engine has none, or has lost its environments."""
        try:
            return self._engine.snapshot() if self._engine.can_snapshot else None
        except (EngineError, RuntimeError):
            return None

    def load(self, state: State) -> None:
        """Continues exactly, or with new games where the engine has no snapshots."""
        self._env_steps = state["env_steps"]
        self._episodes.load(state["episodes"])
        if state["environments"] is None:
            self.abandon()
            return
        self._window.copy_(state["window"])
        self._depth.copy_(state["depth"])
        self._engine.restore(state["environments"])
