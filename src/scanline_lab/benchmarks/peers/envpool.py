"""EnvPool stepping Atari games, for `bench emulation`.

Takes a game, a number of environments and of threads; gives a function that steps all of them with
random actions. Imports EnvPool (extra `lab`) only when it is driven.

It is asked for the work of protocol `ale-vector`: skip 4, grey maximum of two frames, area 84x84.
Where our engines give single frames, it is asked for no stacks either: it spares it copies.
"""

from __future__ import annotations

import importlib

import numpy as np

from scanline import games

from ..stepping import Stepper


def build(game: str, num_envs: int, num_threads: int, seed: int, stack: int = 1) -> Stepper:
    """All environments in lockstep."""
    envs = importlib.import_module("envpool").make_gymnasium(
        f"{games.find(game).title}-v5",
        num_envs=num_envs,
        num_threads=num_threads,
        seed=seed,
        stack_num=stack,
        frame_skip=4,
        noop_max=30,
        use_fire_reset=True,
        repeat_action_probability=0.0,
    )
    envs.reset()
    num_actions = int(envs.action_space.n)
    random = np.random.default_rng(seed)

    def step() -> None:
        envs.step(random.integers(0, num_actions, num_envs, dtype=np.int32))

    return Stepper(step, envs.close)
