"""Engine `gymnasium`: worker processes with several environments each, for any Gymnasium id.

Takes a Gymnasium id, the name of an Atari game or a callable with discrete actions and image or
vector observations; writes steps into the caller's arrays as every engine does.
Knows nothing of ale-py: an Atari id is for Gymnasium to resolve.

Workers write into shared memory, one row per environment; a step moves two bytes per worker each
way and one copy of a group's rows here, without a loop over environments. Several environments per
worker even out their step times. With `num_workers=0` the same code runs in this process.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import gymnasium
import numpy as np

from .. import random
from ..processes import granted_cores
from ..records import Array, Spaces, StepArrays
from . import heads
from .block import BlockSettings, can_snapshot, fields, make_env
from .interface import EngineError, EngineSettings
from .rules import EnvState, Honoured, StepRules, Turns, refuse_others, spaces_of
from .workforce import RESET, STEP, InProcess, Workers, Workforce, parts

NEAREST = "as-is"
_MAGIC = b"scanline-gymnasium-1\n"
_START_SECONDS = 120.0
"""Longest wait for the workers to import and build their environments."""
_GRACE_SECONDS = 5.0
_COPIED = ("frame", "raw_reward", "terminated", "truncated", "lives")

_HONOURED: Honoured = {
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
        makers = _makers(settings)
        kind = _probe(makers, settings)
        self.spaces, self.can_snapshot = kind.spaces, kind.can_snapshot
        self._turns = Turns(settings.num_groups, settings.group_size)
        self._rules = StepRules(settings.num_envs, settings.protocol, settings.autoreset)
        self._seeded = [False] * settings.num_groups
        self._done: set[int] = set()
        self._force = _workforce(settings, makers, kind)
        frames = (settings.num_envs, *self.spaces.frame_shape)
        self._arrays = dict(self._force.arrays)
        for name in ("frame", "final_frame"):
            self._arrays[name] = self._arrays[name].reshape(frames)  # the same memory

    def reset(
        self, group: int, out: StepArrays, mask: Array | None = None, seed: int | None = None
    ) -> None:
        self._turns.reset(group, partly=mask is not None)
        rows = self._turns.rows(group)
        self._arrays["mask"][rows] = True if mask is None else mask
        self._arrays["seed"][rows] = self._seeds(group, seed)
        self._force.order(group, RESET)
        self._wait(group)
        where = slice(None) if mask is None else mask
        out.frame[where] = self._arrays["frame"][rows][where]
        out.lives[where] = self._arrays["lives"][rows][where]
        self._rules.started(rows, out, mask)

    def send(self, group: int, actions: Array, out: StepArrays | None = None) -> None:
        rows = self._turns.rows(group)
        self._rules.refuse_ended(rows)
        self._turns.send(group)
        self._arrays["action"][rows] = actions
        self._force.order(group, STEP)

    def recv(self, group: int, out: StepArrays) -> None:
        self._turns.receive(group)
        self._wait(group)
        rows = self._turns.rows(group)
        for name in _COPIED:
            np.copyto(getattr(out, name), self._arrays[name][rows])
        ended = out.terminated | out.truncated
        if ended.any():
            out.final_frame[ended] = self._arrays["final_frame"][rows][ended]
        self._rules.stepped(rows, out)

    def poll(self, timeout_seconds: float) -> list[int]:
        self._turns.refuse_closed()
        waiting = self._turns.in_flight()
        if waiting and not self._done:
            self._done.update(self._force.done(timeout_seconds))
        return [group for group in waiting if group in self._done]

    def counters(self, group: int) -> Mapping[str, Array]:
        return {}

    def snapshot(self) -> list[bytes]:
        self._turns.refuse_in_flight(None, "a snapshot")
        if not self.can_snapshot:
            raise ValueError(
                f"{self.settings.game!r} has no snapshots: its innermost environment must offer "
                "snapshot() -> bytes and restore(bytes), and no wrapper may hide a state."
            )
        found = self._force.snapshot(self.settings.wait_seconds)
        return [
            _MAGIC + json.dumps(asdict(state)).encode() + b"\n" + found[row]
            for row, state in enumerate(self._rules.state())
        ]

    def restore(self, snapshots: Sequence[bytes]) -> None:
        self._turns.refuse_in_flight(None, "a restore")
        if len(snapshots) != self.settings.num_envs:
            raise ValueError(
                f"There are {len(snapshots)} snapshots for {self.settings.num_envs} environments."
            )
        split = [_split(snapshot, self.spaces.stack) for snapshot in snapshots]
        bodies = {row: body for row, (_, body) in enumerate(split)}
        self._force.restore(bodies, self.settings.wait_seconds)
        self._rules.load([state for state, _ in split])
        self._turns.restored()
        self._seeded = [True] * self.settings.num_groups

    def close(self) -> None:
        # A worker that is in the middle of a step may be stuck in it.
        self._shut(0.0 if self._turns.in_flight() else _GRACE_SECONDS)

    def _shut(self, grace_seconds: float) -> None:
        if self._turns.close():
            self._force.close(grace_seconds)
            self._arrays.clear()

    def _wait(self, group: int) -> None:
        while group not in self._done:
            finished = self._force.done(self.settings.wait_seconds)
            if not finished:
                self._shut(0.0)
                raise EngineError(
                    f"Group {group} did not answer within wait_seconds="
                    f"{self.settings.wait_seconds:g}; an environment is stuck, or needs more."
                )
            self._done.update(finished)
        self._done.discard(group)

    def _seeds(self, group: int, seed: int | None) -> Array | int:
        if seed is None and self._seeded[group]:
            return -1
        self._seeded[group] = True
        rows = self._turns.rows(group)
        env_ids = self.settings.first_env_id + np.arange(rows.start, rows.stop)
        chosen = self.settings.seed if seed is None else seed
        return random.seeds(chosen, "environment", env_ids)


def _check(settings: EngineSettings) -> None:
    refuse_others(settings.protocol, _HONOURED, "gymnasium", NEAREST)
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


def _makers(settings: EngineSettings) -> list[Any]:
    if isinstance(settings.game, str) or callable(settings.game):
        return [settings.game] * settings.num_envs
    if len(settings.game) != settings.num_envs:
        raise ValueError(
            f"The list names {len(settings.game)} games for num_envs={settings.num_envs}; "
            "it needs one for each environment."
        )
    return list(settings.game)


@dataclass(frozen=True)
class _Kind:
    """What one environment tells about all of its kind."""

    spaces: Spaces
    own_frame_shape: tuple[int, ...]
    first_action: int
    can_snapshot: bool


def _probe(makers: Sequence[Any], settings: EngineSettings) -> _Kind:
    found = [_kind(maker, settings) for maker in dict.fromkeys(makers)]
    if any(other.spaces != found[0].spaces for other in found):
        raise ValueError(f"The games {settings.game!r} differ in their frames or actions.")
    return replace(found[0], can_snapshot=all(kind.can_snapshot for kind in found))


def _kind(maker: Any, settings: EngineSettings) -> _Kind:
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


def _workforce(settings: EngineSettings, makers: Sequence[Any], kind: _Kind) -> Workforce:
    block = BlockSettings(
        games=makers,
        rows=range(settings.num_envs),
        first_env_id=settings.first_env_id,
        first_action=kind.first_action,
        frame_skip=settings.protocol.frame_skip,
        episode_limit_frames=settings.protocol.episode_limit_frames,
        autoreset=settings.autoreset,
    )
    layout = fields(settings.num_envs, kind.own_frame_shape, kind.spaces.frame_dtype)
    wanted = granted_cores() if settings.num_workers is None else settings.num_workers
    if wanted == 0:
        return InProcess(block, layout, settings.group_size)
    num_workers = min(wanted, settings.num_envs)
    workers = Workers(block, layout, parts(settings.num_groups, settings.group_size, num_workers))
    try:
        workers.ready(max(_START_SECONDS, settings.wait_seconds))
    except BaseException:
        workers.close(0.0)
        raise
    return workers


def _split(snapshot: bytes, stack: int) -> tuple[EnvState, bytes]:
    if not snapshot.startswith(_MAGIC):
        raise ValueError("This is no snapshot of engine 'gymnasium', version 1.")
    head, _, body = snapshot[len(_MAGIC) :].partition(b"\n")
    depth = heads.Bound(int, 1, stack)
    bounds = {"depth": depth, "lives": heads.LIVES, "ended": heads.FLAG}
    return EnvState(**heads.read(head, bounds)), body


build: Callable[[EngineSettings], GymnasiumEngine] = GymnasiumEngine
