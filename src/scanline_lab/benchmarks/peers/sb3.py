"""Stable-Baselines3 doing a recipe's work, on its own environments or on ale-py's vector.

Takes a `Work`; gives agent steps per second of A2C, PPO or DQN, timed inside `learn` after a
warm-up and after the first update.
Knows our recipes only as numbers to copy: network, environments, rollout, batch, optimiser.

Its own subprocess environments are what its users run. ale-py's vector environment through a small
adapter is reported as well, so that a comparison does not hide behind slow Python environments.
"""

from __future__ import annotations

import functools
import importlib
import time
from fractions import Fraction
from typing import Any, cast

import gymnasium
import numpy as np
import torch
from stable_baselines3 import A2C, DQN, PPO
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_atari_env
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor, NatureCNN
from stable_baselines3.common.vec_env import SubprocVecEnv, VecEnv, VecFrameStack

from scanline import games, recipes
from scanline.algorithms import ActorCritic, Dqn, Ppo
from scanline.parameters import OptimiserSettings
from scanline.recipes import Recipe
from scanline.records import Array
from scanline.stores import ReplaySettings, RolloutSettings

from ..work import Figures, Work

TOTAL_AGENT_STEPS = 10**9
"""Of a run that its stopwatch ends."""
_NO_CLIP = 1e9


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

    def __init__(self, work: Work, first_agent_steps: int, updates_per_count: int) -> None:
        super().__init__()
        self._work, self._first_agent_steps = work, first_agent_steps
        self._updates_per_count = updates_per_count
        self._begun = time.perf_counter()
        self._from = (0.0, 0, 0)
        self.figures: Figures = {}

    def _on_step(self) -> bool:
        elapsed = time.perf_counter() - self._begun
        is_warm = self.num_timesteps > self._first_agent_steps
        if elapsed < self._work.warm_up_seconds or not is_warm or not self._updates():
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
        return self._updates_per_count * int(getattr(self.model, "_n_updates", 0))


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
    model, first_agent_steps, updates_per_count = matched(recipe, envs)
    watch = Stopwatch(work, first_agent_steps, updates_per_count)
    model.learn(total_timesteps=TOTAL_AGENT_STEPS, callback=watch)
    envs.close()
    return watch.figures


def matched(recipe: Recipe, envs: VecEnv) -> tuple[BaseAlgorithm, int, int]:
    """SB3's algorithm with the recipe's work: the model, agent steps before its first update, and
    updates per count of its own."""
    algorithm, store = recipe.algorithm, recipe.store
    if isinstance(algorithm, Dqn) and isinstance(store, ReplaySettings):
        return dqn(recipe, algorithm, store, envs), store.learning_starts_agent_steps, 1
    if isinstance(algorithm, Ppo) and isinstance(store, RolloutSettings):
        return ppo(recipe, algorithm, store, envs), 0, store.num_minibatches
    if isinstance(algorithm, ActorCritic):
        return a2c(recipe, algorithm, envs), 0, 1
    raise ValueError(
        f"sb3 has no {type(algorithm).__name__}; compare a recipe with actor_critic, ppo or dqn."
    )


def a2c(recipe: Recipe, algorithm: ActorCritic, envs: VecEnv) -> BaseAlgorithm:
    return A2C(
        "CnnPolicy",
        envs,
        n_steps=recipe.sampling.horizon_agent_steps,
        rms_prop_eps=cast(OptimiserSettings, recipe.optimiser).epsilon,
        ent_coef=algorithm.entropy_coef,
        **_shared(recipe),
    )


def ppo(recipe: Recipe, algorithm: Ppo, store: RolloutSettings, envs: VecEnv) -> BaseAlgorithm:
    sampling = recipe.sampling
    return PPO(
        "CnnPolicy",
        envs,
        n_steps=sampling.horizon_agent_steps,
        batch_size=store.updates(sampling.num_envs, sampling.horizon_agent_steps)[1],
        n_epochs=store.epochs,
        gae_lambda=algorithm.gae_lambda,
        clip_range=algorithm.clip_coef,
        ent_coef=algorithm.entropy_coef,
        **_shared(recipe),
    )


def dqn(recipe: Recipe, algorithm: Dqn, store: ReplaySettings, envs: VecEnv) -> BaseAlgorithm:
    """Its epsilon is constant in a benchmark: SB3 asks no network for a random action."""
    owed = Fraction(store.training_intensity).limit_denominator(1000)
    owed *= Fraction(recipe.sampling.num_envs, store.batch_size)  # updates per step of all
    optimiser, shared = cast(OptimiserSettings, recipe.optimiser), _shared(recipe)
    if optimiser.kind == "rmsprop":
        shared["policy_kwargs"] |= {
            "optimizer_class": torch.optim.RMSprop,
            "optimizer_kwargs": {
                "alpha": optimiser.decay,
                "eps": optimiser.epsilon,
                "centered": optimiser.centred,
            },
        }
    return DQN(
        "CnnPolicy",
        envs,
        buffer_size=store.capacity_agent_steps,
        learning_starts=store.learning_starts_agent_steps,
        batch_size=store.batch_size,
        train_freq=(owed.denominator, "step"),
        gradient_steps=owed.numerator,
        n_steps=store.accumulator.n_step,
        target_update_interval=recipe.pace.target_agent_steps,
        exploration_initial_eps=algorithm.exploration.epsilon_start,
        exploration_final_eps=algorithm.exploration.epsilon_end,
        exploration_fraction=algorithm.exploration.epsilon_agent_steps / TOTAL_AGENT_STEPS,
        **shared,
    )


def _shared(recipe: Recipe) -> dict[str, Any]:
    """What all of its algorithms take alike."""
    features = NipsFeatures if recipe.network == "nips" else NatureCNN
    return {
        "learning_rate": recipe.optimiser.learning_rate,
        "max_grad_norm": recipe.optimiser.max_grad_norm or _NO_CLIP,
        "policy_kwargs": {"features_extractor_class": features, "net_arch": []},
        "device": "cpu",
        "seed": 0,
    }
