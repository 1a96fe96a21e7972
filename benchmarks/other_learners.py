"""Other libraries' learners on scanline's environments, beside their own and EnvPool's.

Takes games and repeats; prints agent steps per second and writes them as JSON. Each learner does
the same work on every kind of environment: SB3's PPO, and the one-file PPO of examples/, with
their usual sizes (8 environments, rollouts of 128 steps). Kinds are timed in turn, again and again,
in one process, and the median counts.

    python benchmarks/other_learners.py --out benchmarks/results/other-learners.json
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import io
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import envpool
import numpy as np
import tyro
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_atari_env
from stable_baselines3.common.vec_env import SubprocVecEnv, VecEnv, VecFrameStack

import scanline
from scanline import games
from scanline.envs.sb3 import Sb3VecEnv
from scanline_lab.benchmarks.rows import write_json

NUM_ENVS, NUM_STEPS = 8, 128
SCRIPT = Path(__file__).parents[1] / "examples" / "ppo_single_file.py"


class EnvPoolVecEnv(VecEnv):
    """EnvPool's environments as SB3 wants them; they begin anew in the step after an end."""

    def __init__(self, game: str) -> None:
        self.envs = pool(game)
        super().__init__(NUM_ENVS, self.envs.observation_space, self.envs.action_space)

    def reset(self) -> Any:
        return self.envs.reset()[0]

    def step_async(self, actions: Any) -> None:
        self._actions = actions.astype(np.int32)

    def step_wait(self) -> Any:
        observations, rewards, terminated, truncated, _ = self.envs.step(self._actions)
        dones = terminated | truncated
        infos: list[dict[str, Any]] = [{} for _ in range(NUM_ENVS)]
        for env in np.flatnonzero(dones):
            infos[env] = {"terminal_observation": observations[env]}
        return observations, rewards, dones, infos

    def close(self) -> None:
        self.envs.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        return [getattr(self.envs, attr_name, None)] * NUM_ENVS

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        raise NotImplementedError

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> Any:
        raise NotImplementedError

    def env_is_wrapped(self, wrapper_class: type, indices: Any = None) -> list[bool]:
        return [True] * NUM_ENVS


def pool(game: str) -> Any:
    title = games.find(game).title
    return envpool.make(
        f"{title}-v5", env_type="gymnasium", num_envs=NUM_ENVS, seed=1, reward_clip=True,
        episodic_life=True,
    )  # fmt: skip


def sb3_own(game: str) -> VecEnv:
    name = f"ale_py:{games.find(game).title}NoFrameskip-v4"  # which its workers import
    return VecFrameStack(make_atari_env(name, NUM_ENVS, vec_env_cls=SubprocVecEnv), n_stack=4)


def sb3_rate(make: Callable[[str], VecEnv], game: str, num_rollouts: int) -> float:
    """Agent steps per second after one rollout and update."""
    envs = make(game)
    model = PPO("CnnPolicy", envs, n_steps=NUM_STEPS, batch_size=256, n_epochs=4, device="cpu")
    per_rollout = NUM_ENVS * NUM_STEPS
    model.learn(per_rollout)
    begun = time.perf_counter()
    model.learn(num_rollouts * per_rollout, reset_num_timesteps=False)
    seconds = time.perf_counter() - begun
    envs.close()
    return num_rollouts * per_rollout / seconds


def script_rate(make: Callable[[str], Any], game: str, num_rollouts: int) -> float:
    """Agent steps per second of the script's own loop, its first update included."""
    script = load_script()
    script.make_envs = lambda args: make(game)  # type: ignore[attr-defined]
    steps = num_rollouts * NUM_ENVS * NUM_STEPS
    begun = time.perf_counter()
    with contextlib.redirect_stdout(io.StringIO()):
        script.main(
            script.Args(game=game, total_steps=steps, num_envs=NUM_ENVS, num_steps=NUM_STEPS)
        )
    return steps / (time.perf_counter() - begun)


@functools.cache
def load_script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("ppo_single_file", SCRIPT)
    assert spec is not None and spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = script  # where its dataclass looks for its types
    spec.loader.exec_module(script)
    return script


class IntActions:
    """EnvPool takes int32 only; the script gives int64. Its space lacks a name of Gymnasium's."""

    def __init__(self, envs: Any) -> None:
        self.envs = envs
        self.single_action_space = envs.action_space
        self.single_observation_space = envs.observation_space

    def reset(self, seed: int) -> Any:
        return self.envs.reset()

    def step(self, actions: Any) -> Any:
        return self.envs.step(actions.astype(np.int32))

    def close(self) -> None:
        self.envs.close()


KINDS: dict[tuple[str, str], Callable[[str, int], float]] = {
    ("SB3's PPO", "scanline"): functools.partial(
        sb3_rate, lambda game: Sb3VecEnv(game, NUM_ENVS, seed=1)
    ),
    ("SB3's PPO", "SB3's own"): functools.partial(sb3_rate, sb3_own),
    ("SB3's PPO", "EnvPool"): functools.partial(sb3_rate, EnvPoolVecEnv),
    ("one-file PPO", "scanline"): functools.partial(
        script_rate, lambda game: scanline.make(game, NUM_ENVS, seed=1)
    ),
    ("one-file PPO", "EnvPool"): functools.partial(
        script_rate, lambda game: IntActions(pool(game))
    ),
}


@dataclass
class Args:
    games: tuple[str, ...] = ("pong", "riverraid")
    repeats: int = 2
    rollouts: int = 4
    """Timed rollouts of 1,024 steps, each with its updates."""
    out: Path | None = None


def main(args: Args) -> None:
    rows = []
    for game in args.games:
        rates: dict[tuple[str, str], list[float]] = {kind: [] for kind in KINDS}
        for _ in range(args.repeats):
            for kind, rate in KINDS.items():
                rates[kind].append(rate(game=game, num_rollouts=args.rollouts))
                print(game, *kind, f"{rates[kind][-1]:,.0f} steps/s", sep="  ", flush=True)
        for (learner, environments), found in rates.items():
            row = {"game": game, "learner": learner, "environments": environments}
            row |= {"agent_sps": round(statistics.median(found), 1), "repeats": found}
            rows.append(row)
        if args.out is not None:
            write_json(args.out, rows)


if __name__ == "__main__":
    main(tyro.cli(Args))
