"""Stable-Baselines3 doing a recipe's work, on its own environments or on ale-py's vector.

Takes a `Work`; gives agent steps per second, timed inside `learn` after a warm-up.
Knows our recipes only as numbers to copy: network, environments, rollout, batch, optimiser.

Its own subprocess environments are what its users run. ale-py's vector environment through a small
adapter is reported as well, so that a comparison does not hide behind slow Python environments.
"""

from __future__ import annotations

import functools
import importlib
import time
from typing import Any

import gymnasium
import numpy as np
import torch
from stable_baselines3 import A2C
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_atari_env
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor, NatureCNN
from stable_baselines3.common.vec_env import SubprocVecEnv, VecEnv, VecFrameStack

from ... import games, recipes
from ...records import Array
from ..work import Figures, Work


class NipsFeatures(BaseFeaturesExtractor):
    """The A3C network as a features extractor of SB3."""

    def __init__(self, observation_space: gymnasium.spaces.Box) -> None:
        super().__init__(observation_space, features_dim=256)
        self.layers = torch.nn.Sequential(
            torch.nn.Conv2d(observation_space.shape[0], 16, 8, 4),
            torch.nn.ReLU(),
            torch.nn.Conv2d(16, 32, 4, 2),
            torch.nn.ReLU(),
            torch.nn.Flatten(),
            torch.nn.Linear(2592, 256),
            torch.nn.ReLU(),
        )

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        features: torch.Tensor = self.layers(observations)
        return features


class VectorAdapter(VecEnv):
    """ale-py's vector environment with SB3's interface."""

    def __init__(self, game: str, num_envs: int) -> None:
        from ale_py.vector_env import AtariVectorEnv

        mode = gymnasium.vector.AutoresetMode.SAME_STEP
        self._envs = AtariVectorEnv(game, num_envs=num_envs, autoreset_mode=mode)
        spaces = self._envs.single_observation_space, self._envs.single_action_space
        super().__init__(num_envs, *spaces)

    def reset(self) -> Array:
        observations: Array = self._envs.reset(seed=0)[0]
        return observations

    def step_async(self, actions: Array) -> None:
        self._envs.send(actions)

    def step_wait(self) -> tuple[Array, Array, Array, list[dict[str, Any]]]:
        observations, rewards, terminated, truncated, info = self._envs.recv()
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        done = terminated | truncated
        for env in np.flatnonzero(done):
            infos[env]["terminal_observation"] = info["final_obs"][env]
            infos[env]["TimeLimit.truncated"] = bool(truncated[env] and not terminated[env])
        return observations, rewards.astype(np.float32), done, infos

    def close(self) -> None:
        self._envs.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        return [None] * self.num_envs

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        raise AttributeError(attr_name)

    def env_method(self, method_name: str, *args: Any, **kwargs: Any) -> list[Any]:
        raise AttributeError(method_name)

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        return [False] * self.num_envs


class Stopwatch(BaseCallback):
    """Counts agent steps between the end of the warm-up and the end of the time."""

    def __init__(self, work: Work) -> None:
        super().__init__()
        self._work = work
        self._begun = time.perf_counter()
        self._from = (0.0, 0, 0)
        self.figures: Figures = {}

    def _on_step(self) -> bool:
        elapsed = time.perf_counter() - self._begun
        if elapsed < self._work.warm_up_seconds:
            self._from = (elapsed, self.num_timesteps, self._updates())
            return True
        seconds = elapsed - self._from[0]
        steps = self.num_timesteps - self._from[1]
        self.figures = {
            "agent_sps": steps / seconds,
            "raw_fps": 4 * steps / seconds,
            "ups": (self._updates() - self._from[2]) / seconds,
        }
        return seconds < self._work.seconds

    def _updates(self) -> int:
        return int(getattr(self.model, "_n_updates", 0))


def one_game(name: str, **options: Any) -> gymnasium.Env[Any, Any]:
    """One environment of SB3's, made inside a worker process: ale-py's names are known after it."""
    gymnasium.register_envs(importlib.import_module("ale_py"))
    return gymnasium.make(name, **options)


def environments(work: Work, num_envs: int) -> VecEnv:
    """SB3's own environments, or the adapter."""
    game = games.find(work.game)
    if work.peer == "sb3-vector":
        return VectorAdapter(game.id, num_envs)
    make_one = functools.partial(one_game, f"{game.title}NoFrameskip-v4")
    own = make_atari_env(make_one, n_envs=num_envs, vec_env_cls=SubprocVecEnv, seed=0)
    return VecFrameStack(own, n_stack=4)


def run(work: Work) -> Figures:
    """Trains for the given time and counts."""
    if work.torch_threads:
        torch.set_num_threads(work.torch_threads)
    recipe = recipes.find(work.recipe).replace(**work.settings)
    envs = environments(work, recipe.sampling.num_envs)
    features = NipsFeatures if recipe.network == "nips" else NatureCNN
    model = A2C(
        "CnnPolicy",
        envs,
        n_steps=recipe.sampling.horizon_agent_steps,
        learning_rate=recipe.optimiser.learning_rate,
        rms_prop_eps=recipe.optimiser.epsilon,
        max_grad_norm=recipe.optimiser.max_grad_norm,
        policy_kwargs={"features_extractor_class": features, "net_arch": []},
        device="cpu",
        seed=0,
    )
    watch = Stopwatch(work)
    model.learn(total_timesteps=10**9, callback=watch)
    envs.close()
    return watch.figures
