"""Engines stepped by random actions, timed: what `bench emulation` repeats.

Takes an engine's name and a game; gives a `Stepper`, of the engine alone or of a whole vector
environment with stacks, and its raw frames per second.
Knows no learner.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from scanline import engines, games, protocols
from scanline.engines import EngineSettings, ResetKind
from scanline.envs.make import make
from scanline.records import StepArrays

FRAME_SKIP = 4
STACK = 4
"""Frames of a vector environment's observation."""
PROTOCOL = "ale-vector"


@dataclass(frozen=True)
class Stepper:
    """Steps all environments once; observations are produced."""

    step: Callable[[], object]
    close: Callable[[], object]
    bytes_per_env: int | None = None


@dataclass(frozen=True, kw_only=True)
class Stepped:
    """What is stepped: all but the engine."""

    game: str
    num_envs: int
    num_threads: int
    protocol: str = PROTOCOL
    reset: ResetKind = "ale"
    seed: int = 0


def build(name: str, asked: Stepped) -> Stepper:
    """One of our engines, reset and ready."""
    num_envs, seed = asked.num_envs, asked.seed
    settings = EngineSettings(**vars(asked) | {"protocol": protocols.get(asked.protocol)})
    engine = engines.build(name, settings)
    arrays = StepArrays.allocate(engine.spaces, num_envs)
    engine.reset(0, arrays)
    random = np.random.default_rng(seed)
    num_actions = engine.spaces.num_actions

    def step() -> None:
        engine.send(0, random.integers(0, num_actions, num_envs))
        engine.recv(0, arrays)

    return Stepper(step, engine.close, getattr(engine, "bytes_per_env", None))


def build_vector(name: str, asked: Stepped) -> Stepper:
    """A vector environment as a user steps it: ale-py's own for `ale`, else `scanline.make`."""
    num_envs, seed = asked.num_envs, asked.seed
    if name == "ale":
        peer = importlib.import_module("ale_py.vector_env").AtariVectorEnv
        game = games.find(asked.game).id
        envs = peer(game, num_envs, num_threads=asked.num_threads, stack_num=STACK)
    else:
        envs = make(engine=name, stack=STACK, **vars(asked))
    envs.reset(seed=seed)
    random = np.random.default_rng(seed)
    num_actions = int(envs.single_action_space.n)
    return Stepper(
        lambda: envs.step(random.integers(0, num_actions, num_envs)), lambda: envs.close()
    )


def raw_fps(stepper: Stepper, num_envs: int, seconds: float) -> float:
    """Raw frames per second over at least the given time."""
    begun, rounds = time.perf_counter(), 0
    while (passed := time.perf_counter() - begun) < seconds:
        stepper.step()
        rounds += 1
    return rounds * num_envs * FRAME_SKIP / passed
