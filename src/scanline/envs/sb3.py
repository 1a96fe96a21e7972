"""A scanline environment for Stable-Baselines3: its `VecEnv` over our vector environment.

Takes a game and the options of `scanline.make`; gives a `VecEnv` that SB3's algorithms learn from
without `make_atari_env`, `VecFrameStack` or `VecTransposeImage`: observations are stacked, channels
first. Needs Stable-Baselines3, which the core does not.

Observations are written once, by turns into two buffers, because SB3 stores an observation only
after the step that follows it. An observation is valid until the second `step` after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from stable_baselines3.common.vec_env import VecEnv

from ..records import Array
from .make import make
from .vector import StepBuffers

Indices = int | Iterable[int] | None


class Sb3VecEnv(VecEnv):
    """All environments of one `scanline.make`, reset within the step that ends an episode."""

    def __init__(self, game: Any, num_envs: int = 8, **options: Any) -> None:
        self.envs = make(game, num_envs, autoreset_mode="same-step", **options)
        self._buffers = (self.envs.buffers(), self.envs.buffers())
        self._turn = 0
        self._actions: Array = np.zeros(0)
        super().__init__(
            num_envs, self.envs.single_observation_space, self.envs.single_action_space
        )

    def reset(self) -> Array:
        observations, _ = self.envs.reset(seed=self._seeds[0])
        self._reset_seeds()
        self._reset_options()
        return observations

    def step_async(self, actions: Array) -> None:
        self._actions = actions

    def step_wait(self) -> tuple[Array, Array, Array, list[dict[str, Any]]]:
        """Observations [N, S, H, W], rewards, dones, and a dictionary per environment.

        Where an episode ended its dictionary has SB3's `terminal_observation` and
        `TimeLimit.truncated`; where a whole game ended also `episode`, its score and length.
        """
        out = self._next_buffers()
        *_, info = self.envs.step(self._actions, out)
        dones = out.terminations | out.truncations
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for env in np.flatnonzero(dones):
            infos[env] = {
                "terminal_observation": info["final_obs"][env],
                "TimeLimit.truncated": bool(out.truncations[env] and not out.terminations[env]),
            }
        if "episode" in info:
            for env in np.flatnonzero(info["_episode"]):
                infos[env]["episode"] = {k: v[env].item() for k, v in info["episode"].items()}
        return out.observations, out.rewards, dones, infos

    def close(self) -> None:
        self.envs.close()

    def get_attr(self, attr_name: str, indices: Indices = None) -> list[Any]:
        return [getattr(self.envs, attr_name, None)] * len(self._chosen(indices))

    def set_attr(self, attr_name: str, value: Any, indices: Indices = None) -> None:
        if len(self._chosen(indices)) != self.num_envs:
            raise ValueError("All environments share their attributes; set them for all.")
        setattr(self.envs, attr_name, value)

    def env_method(
        self, method_name: str, *args: Any, indices: Indices = None, **kwargs: Any
    ) -> list[Any]:
        """Calls a method of the vector environment once; its result stands for every index."""
        result = getattr(self.envs, method_name)(*args, **kwargs)
        return [result] * len(self._chosen(indices))

    def env_is_wrapped(self, wrapper_class: type, indices: Indices = None) -> list[bool]:
        """SB3 asks for its `Monitor`: scores of whole games are in `info` without one."""
        found = wrapper_class.__name__ == "Monitor"
        return [found] * len(self._chosen(indices))

    def _chosen(self, indices: Indices) -> Sequence[int]:
        return list(self._get_indices(indices))

    def _next_buffers(self) -> StepBuffers:
        self._turn ^= 1
        return self._buffers[self._turn]
