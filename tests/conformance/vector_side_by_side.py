"""A peer's vector environment and `scanline.make` next to each other, compared after every step.

Takes a `VectorCase`; gives an `Outcome` that names the first difference, if any. Compared:
observations, rewards, both kinds of end, lives; with ale-py also both frame counters and the last
observations of episodes. Goes through the public interface alone, stacks included. Both sides get
the same seed for each environment, from which each draws no-ops and sticky actions by itself.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from side_by_side import Outcome

import scanline
from scanline import games, random

Array = npt.NDArray[Any]
Named = dict[str, Array]
FRAME_SKIP = 4


@dataclass(frozen=True, kw_only=True)
class VectorCase:
    """What is played, in which of the peers."""

    game: str
    """Id of the game."""
    peer: str = "ale-vector"
    """`ale-vector` or `envpool`; also the protocol."""
    steps: int = 300
    """Of each environment."""
    num_envs: int = 8
    seed: int = 0
    """Of the environments and the actions."""
    autoreset: str = "next-step"
    """Or `same-step`, which only ale-py has too."""
    reset_after_steps: int = 0
    """Resets all environments once, after that many steps; 0: never."""
    theirs: Mapping[str, Any] = field(default_factory=dict)
    """Options as the peer spells them."""
    ours: Mapping[str, Any] = field(default_factory=dict)
    """The same in our spelling."""

    @property
    def frames(self) -> int:
        """Of all environments together, without those that resets emulate."""
        return self.steps * self.frames_per_step

    @property
    def frames_per_step(self) -> int:
        skip: int = self.ours.get("frame_skip", FRAME_SKIP)
        return self.num_envs * skip

    def with_frames(self, frames: int) -> VectorCase:
        return dataclasses.replace(self, steps=max(1, frames // self.frames_per_step))


class Ours:
    def __init__(self, case: VectorCase):
        self._envs = scanline.make(
            case.game,
            case.num_envs,
            engine="native",
            protocol=case.peer,
            seed=case.seed,
            reset="ale",
            autoreset_mode=case.autoreset,
            **case.ours,
        )
        self._case = case
        self.num_actions = int(self._envs.single_action_space.n)  # type: ignore[attr-defined]

    def reset(self) -> Named:
        observations, info = self._envs.reset()
        return self._named(observations, info)

    def step(self, actions: Array) -> Named:
        observations, rewards, terminated, truncated, info = self._envs.step(actions)
        if self._case.peer == "envpool":
            rewards = info["raw_reward"]
        named = {"reward": rewards, "terminated": terminated, "truncated": truncated}
        return self._named(observations, info) | named | final_observations(info)

    def _named(self, observations: Array, info: dict[str, Any]) -> Named:
        keys = ["lives"]
        if self._case.peer == "ale-vector":
            keys += ["frame_number", "episode_frame_number"]
        return {"observations": observations, **{key: info[key] for key in keys}}


def final_observations(info: dict[str, Any]) -> Named:
    """The last observations where an episode ended; ale-py gives something for the others too."""
    if "final_obs" not in info:
        return {}
    ended = np.flatnonzero(info["_final_obs"])
    return {"final_envs": ended, "final_observations": info["final_obs"][ended]}


class AleVector:
    def __init__(self, case: VectorCase):
        from ale_py.vector_env import AtariVectorEnv

        mode = {"next-step": "NextStep", "same-step": "SameStep"}[case.autoreset]
        self._envs = AtariVectorEnv(case.game, case.num_envs, autoreset_mode=mode, **case.theirs)
        self._seeds: Array | None = seeds(case)

    def reset(self) -> Named:
        observations, info = self._envs.reset(seed=self._seeds)
        self._seeds = None  # the streams of random numbers go on
        return self._named(observations, info)

    def step(self, actions: Array) -> Named:
        observations, rewards, terminated, truncated, info = self._envs.step(actions)
        named = {"reward": rewards, "terminated": terminated, "truncated": truncated}
        return self._named(observations, info) | named | self._final(info, terminated | truncated)

    def _named(self, observations: Array, info: dict[str, Any]) -> Named:
        keys = ("lives", "frame_number", "episode_frame_number")
        return {"observations": observations, **{key: info[key] for key in keys}}

    def _final(self, info: dict[str, Any], ended: Array) -> Named:
        return final_observations({**info, "_final_obs": ended}) if ended.any() else {}


class EnvPool:
    def __init__(self, case: VectorCase):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import envpool

            self._envs = envpool.make(
                f"{games.find(case.game).title}-v5",
                env_type="gymnasium",
                num_envs=case.num_envs,
                seed=seeds(case).tolist(),
                **case.theirs,
            )

    def reset(self) -> Named:
        observations, info = self._envs.reset()
        return {"observations": observations, "lives": info["lives"]}

    def step(self, actions: Array) -> Named:
        observations, _, terminated, truncated, info = self._envs.step(actions)
        return {
            "observations": observations,
            "lives": info["lives"],
            "reward": info["reward"],
            "terminated": terminated,
            "truncated": truncated,
        }


PEERS = {"ale-vector": AleVector, "envpool": EnvPool}


def seeds(case: VectorCase) -> Array:
    """The seed of each environment, as the native engine derives it from one."""
    return random.seeds(case.seed, "environment", np.arange(case.num_envs))


def run(case: VectorCase) -> Outcome:
    """Plays the case in both; never raises for a difference."""
    ours, theirs = Ours(case), PEERS[case.peer](case)
    rng = np.random.default_rng(case.seed)
    difference = first_difference(ours.reset(), theirs.reset())
    resets, ends, rewards, steps = 1, 0, 0, 0
    while steps < case.steps and not difference:
        actions = rng.integers(0, ours.num_actions, case.num_envs)
        results = theirs.step(actions)
        difference = first_difference(ours.step(actions), results)
        steps += 1
        ends += int((results["terminated"] | results["truncated"]).sum())
        rewards += int((results["reward"] != 0).sum())
        if steps == case.reset_after_steps and not difference:
            resets += 1
            difference = first_difference(ours.reset(), theirs.reset())
    return Outcome(
        case=case,
        frames=steps * case.frames_per_step,
        resets=resets * case.num_envs + ends,
        ends=ends,
        rewards=rewards,
        difference=f"step {steps}: {difference}" if difference else "",
    )


def first_difference(ours: Named, theirs: Named) -> str:
    """Names the first array that differs, and where; empty if none does."""
    if ours.keys() != theirs.keys():
        return f"ours gives {sorted(ours)}, the peer {sorted(theirs)}"
    for name, mine in ours.items():
        expected = np.asarray(theirs[name])
        if mine.shape != expected.shape:
            return f"{name} has shape {mine.shape}, the peer's {expected.shape}"
        if not np.array_equal(mine, expected):
            where = np.argwhere(mine != expected)[0]
            place = tuple(int(i) for i in where)
            return f"{name} at {place}: {mine[place]}, the peer {expected[place]}"
    return ""
