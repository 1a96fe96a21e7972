"""Engine `gymnasium`: worker processes with several environments each, for any Gymnasium id.

Takes a Gymnasium id, the name of an Atari game or a callable with discrete actions and image or
vector observations; writes steps into the caller's arrays as every engine does.
Knows nothing of ale-py: an Atari id is for Gymnasium to resolve.

Workers write into shared memory, one row per environment; a step moves two bytes per worker each
way and one copy of a group's rows here, without a loop over environments. Several environments per
worker even out their step times. With `num_workers=0` the same code runs in this process.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import gymnasium
import numpy as np

from ..processes import granted_cores
from ..records import Array, Spaces, StepArrays
from .gymnasium_workers import (
    RESET,
    STEP,
    EnvWorkers,
    InProcess,
    array_fields,
    can_snapshot,
    make_env,
)
from .interface import Engine, EngineError, EngineSettings, EnvMaker
from .rules import GroupCalls, StepRules, Supported, check_protocol, spaces_of
from .snapshots import FLAG, LIVES, Bound, pack, unpack

NEAREST = "as-is"
_MAGIC = b"scanline-gymnasium-1\n"
_START_SECONDS = 120.0
"""Longest wait for the workers to import and build their environments."""
_GRACE_SECONDS = 5.0
_COPIED = ("frame", "raw_reward", "terminated", "truncated", "lives")

_SUPPORTED: Supported = {
    "sticky": (0.0,),
    "pooling": ("none",),
    "colour": ("as-is",),
    "resize": ("none",),
    "crop": ("none",),
    "stack_padding": ("zeros", "repeat"),
    "full_action_space": (False,),
    "noop_max": (0,),
    "fire_reset": ("none",),
    "life_loss": ("ignore", "end-return"),
    "terminal_frame": ("real",),
}


class GymnasiumEngine:
    """Plain Gymnasium environments behind the engine's interface."""

    name = "gymnasium"

    def __init__(self, settings: EngineSettings) -> None:
        self.settings = settings
        _check(settings)
        kind = _probe(settings)
        self.spaces, self.can_snapshot = kind.spaces, kind.can_snapshot
        self._calls = GroupCalls(settings)
        self._rules = StepRules(settings.num_envs, settings.protocol, settings.autoreset)
        self._done: set[int] = set()
        self._workers = _workers(settings, kind)
        frames = (settings.num_envs, *self.spaces.frame_shape)
        self._arrays = dict(self._workers.arrays)
        for name in ("frame", "final_frame"):
            self._arrays[name] = self._arrays[name].reshape(frames)  # the same memory

    def reset(
        self, group: int, out: StepArrays, mask: Array | None = None, seed: int | None = None
    ) -> None:
        self._calls.reset(group, is_masked=mask is not None)
        rows, seeds = self.settings.rows(group), self._calls.seeds(group, seed)
        self._arrays["mask"][rows] = True if mask is None else mask
        self._arrays["seed"][rows] = -1 if seeds is None else seeds
        self._workers.order(group, RESET)
        self._wait(group)
        where = slice(None) if mask is None else mask
        out.frame[where] = self._arrays["frame"][rows][where]
        out.lives[where] = self._arrays["lives"][rows][where]
        self._rules.started(rows, out, mask)

    def send(self, group: int, actions: Array, out: StepArrays | None = None) -> None:
        rows = self.settings.rows(group)
        self._rules.refuse_ended(rows)
        self._calls.send(group)
        self._arrays["action"][rows] = actions
        self._workers.order(group, STEP)

    def recv(self, group: int, out: StepArrays) -> None:
        self._calls.receive(group)
        self._wait(group)
        rows = self.settings.rows(group)
        for name in _COPIED:
            np.copyto(getattr(out, name), self._arrays[name][rows])
        ended = out.terminated | out.truncated
        if ended.any():
            out.final_frame[ended] = self._arrays["final_frame"][rows][ended]
        self._rules.stepped(rows, out)

    def poll(self, timeout_seconds: float) -> list[int]:
        self._calls.refuse_closed()
        waiting = self._calls.in_flight()
        if waiting and not self._done:
            self._done.update(self._workers.done(timeout_seconds))
        return [group for group in waiting if group in self._done]

    def counters(self, group: int) -> Mapping[str, Array]:
        return {}

    def snapshot(self) -> list[bytes]:
        self._calls.refuse_in_flight(None, "a snapshot")
        if not self.can_snapshot:
            raise ValueError(
                f"{self.settings.game!r} has no snapshots: its innermost environment must offer "
                "snapshot() -> bytes and restore(bytes), and no wrapper may hide a state."
            )
        found = self._workers.snapshot(self.settings.wait_seconds)
        states = enumerate(self._rules.state())
        return [pack(_MAGIC, state, found[row]) for row, state in states]

    def restore(self, snapshots: Sequence[bytes]) -> None:
        self._calls.restore(snapshots)
        depth = Bound(int, 1, self.spaces.stack)
        bounds = {"depth": depth, "lives": LIVES, "ended": FLAG}
        owner = "engine 'gymnasium', version 1"
        parts = [unpack(_MAGIC, snapshot, bounds, owner) for snapshot in snapshots]
        bodies = {row: body for row, (_, body) in enumerate(parts)}
        self._workers.restore(bodies, self.settings.wait_seconds)
        self._rules.load([state for state, _ in parts])
        self._calls.restored()

    def close(self) -> None:
        # A worker that is in the middle of a step may be stuck in it.
        self._shut(0.0 if self._calls.in_flight() else _GRACE_SECONDS)

    def _shut(self, grace_seconds: float) -> None:
        if self._calls.close():
            self._workers.close(grace_seconds)
            self._arrays.clear()

    def _wait(self, group: int) -> None:
        while group not in self._done:
            finished = self._workers.done(self.settings.wait_seconds)
            if not finished:
                self._shut(0.0)
                raise EngineError(
                    f"Group {group} did not answer within wait_seconds="
                    f"{self.settings.wait_seconds:g}; an environment is stuck, or needs more."
                )
            self._done.update(finished)
        self._done.discard(group)


def _check(settings: EngineSettings) -> None:
    check_protocol(settings.protocol, _SUPPORTED, "gymnasium", NEAREST)
    if settings.protocol.frame_skip_min != settings.protocol.frame_skip:
        raise ValueError(
            "Engine 'gymnasium' repeats an action a fixed number of times; set both "
            "frame_skip and frame_skip_min."
        )
    if settings.mode is not None or settings.difficulty is not None:
        raise ValueError(
            "Engine 'gymnasium' sets no mode and no difficulty; give a callable that "
            "makes the environment with them."
        )
    if settings.num_workers is not None and settings.num_workers < 0:
        raise ValueError(f"num_workers={settings.num_workers} must be 0 (in this process) or more.")


@dataclass(frozen=True)
class _Kind:
    """What one environment tells about all of its kind."""

    spaces: Spaces
    own_frame_shape: tuple[int, ...]
    first_action: int
    can_snapshot: bool


def _probe(settings: EngineSettings) -> _Kind:
    found = [_kind(maker, settings) for maker in dict.fromkeys(settings.games)]
    if any(other.spaces != found[0].spaces for other in found):
        raise ValueError(f"The games {settings.game!r} differ in their frames or actions.")
    return replace(found[0], can_snapshot=all(kind.can_snapshot for kind in found))


def _kind(maker: EnvMaker, settings: EngineSettings) -> _Kind:
    env = make_env(maker)
    try:
        actions, frames = _checked_spaces(env, maker)
        snapshots = can_snapshot(env)
    finally:
        env.close()
    shape = frames.shape
    spaces = spaces_of(
        settings.protocol,
        frame_shape=shape[:-1] if len(shape) == 3 and shape[-1] == 1 else shape,
        frame_dtype="uint8" if frames.dtype == np.uint8 else "float32",
        num_actions=int(actions.n),
    )
    return _Kind(spaces, shape, int(actions.start), snapshots)


def _checked_spaces(
    env: gymnasium.Env[Any, Any], maker: Any
) -> tuple[gymnasium.spaces.Discrete, gymnasium.spaces.Box]:
    actions, frames = env.action_space, env.observation_space
    if not isinstance(actions, gymnasium.spaces.Discrete):
        raise ValueError(
            f"{maker!r} has the action space {actions}; scanline takes Discrete actions only, so "
            "wrap the environment in one that maps a number to an action."
        )
    if not isinstance(frames, gymnasium.spaces.Box) or not _is_image_or_vector(frames):
        raise ValueError(
            f"{maker!r} has the observation space {frames}; scanline takes a uint8 image or a "
            "vector (Box), so wrap the environment, for example in FlattenObservation."
        )
    return actions, frames


def _is_image_or_vector(space: gymnasium.spaces.Box) -> bool:
    return len(space.shape) == 1 or (len(space.shape) in (2, 3) and space.dtype == np.uint8)


def _workers(settings: EngineSettings, kind: _Kind) -> InProcess | EnvWorkers:
    layout = array_fields(settings.num_envs, kind.own_frame_shape, kind.spaces.frame_dtype)
    wanted = granted_cores() if settings.num_workers is None else settings.num_workers
    if wanted == 0:
        return InProcess(settings, kind.first_action, layout)
    workers = EnvWorkers(settings, kind.first_action, layout, min(wanted, settings.num_envs))
    try:
        workers.ready(max(_START_SECONDS, settings.wait_seconds))
    except BaseException:
        workers.close(0.0)
        raise
    return workers


build: Callable[[EngineSettings], Engine] = GymnasiumEngine
