"""Engine `gymnasium`: worker processes with several environments each, for any Gymnasium id.

Takes a Gymnasium id, the name of an Atari game or a callable with discrete actions and image or
vector observations; writes steps into the caller's arrays as every engine does.
Knows nothing of ale-py: an Atari id is for Gymnasium to resolve.

Workers write into shared memory, one row per environment; a step moves a few bytes per worker each
direction and copies a group's rows here, without a loop over environments. Several environments per
worker even out their step times. With `num_workers=0` the same code runs in this process.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from gymnasium.spaces import Box, Discrete

from ..devices import HOST
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
    memory = HOST

    def __init__(self, settings: EngineSettings) -> None:
        self.settings = settings
        _check(settings)
        self.spaces, self.can_snapshot = _probe(settings)
        self._calls = GroupCalls(settings)
        self._rules = StepRules(settings.num_envs, settings.protocol, settings.autoreset)
        self._done: set[int] = set()
        self._workers = _workers(settings, self.spaces)
        self._arrays = dict(self._workers.arrays)

    def reset(
        self, group: int, out: StepArrays, mask: Array | None = None, seed: int | None = None
    ) -> None:
        rows, seeds = self.settings.rows(group), self._calls.reset(group, mask, seed)
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

    def screens(self) -> list[Array]:
        """What the environments' own `render` gives."""
        self._calls.refuse_in_flight(None, "the screens")
        found = self._workers.render()
        return [found[row] for row in range(self.settings.num_envs)]

    def snapshot(self) -> list[bytes]:
        self._calls.refuse_in_flight(None, "a snapshot")
        if not self.can_snapshot:
            raise ValueError(
                f"{self.settings.game!r} has no snapshots: its innermost environment must offer "
                "snapshot() -> bytes and restore(bytes), and no wrapper may hide a state."
            )
        found = self._workers.snapshot()
        states = enumerate(self._rules.state())
        return [pack(_MAGIC, state, found[row]) for row, state in states]

    def restore(self, snapshots: Sequence[bytes]) -> None:
        self._calls.restore(snapshots)
        depth = Bound(int, 1, self.spaces.stack)
        bounds = {"depth": depth, "lives": LIVES, "ended": FLAG}
        owner = "engine 'gymnasium', version 1"
        parts = [unpack(_MAGIC, snapshot, bounds, owner) for snapshot in snapshots]
        self._workers.restore({row: body for row, (_, body) in enumerate(parts)})
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


def _probe(settings: EngineSettings) -> tuple[Spaces, bool]:
    """Spaces of the environments, which must agree, and whether all of them have snapshots."""
    found = [_probe_one(maker, settings) for maker in dict.fromkeys(settings.games)]
    spaces = found[0][0]
    if any(other != spaces for other, _ in found):
        raise ValueError(f"The games {settings.game!r} differ in their frames or actions.")
    return spaces, all(has_snapshots for _, has_snapshots in found)


def _probe_one(maker: EnvMaker, settings: EngineSettings) -> tuple[Spaces, bool]:
    env = make_env(maker, settings.renders)
    if settings.renders and env.render_mode != "rgb_array":
        raise ValueError(
            f"{maker!r} has render_mode={env.render_mode!r}; to be rendered it must be made with "
            "'rgb_array'."
        )
    actions, frames, has_snapshots = env.action_space, env.observation_space, can_snapshot(env)
    env.close()
    if not isinstance(actions, Discrete):
        raise ValueError(
            f"{maker!r} has the action space {actions}; scanline takes Discrete actions only, so "
            "wrap the environment in one that maps a number to an action."
        )
    is_bytes, shape = frames.dtype == np.uint8, frames.shape or ()
    is_image = len(shape) in (2, 3) and is_bytes
    if not isinstance(frames, Box) or not (len(shape) == 1 or is_image):
        raise ValueError(
            f"{maker!r} has the observation space {frames}; scanline takes a uint8 image or a "
            "vector (Box), so wrap the environment, for example in FlattenObservation."
        )
    shape = shape[:-1] if len(shape) == 3 and shape[-1] == 1 else shape
    dtype = "uint8" if is_bytes else "float32"
    return spaces_of(settings.protocol, shape, dtype, int(actions.n)), has_snapshots


def _workers(settings: EngineSettings, spaces: Spaces) -> InProcess | EnvWorkers:
    layout = array_fields(settings.num_envs, spaces.frame_shape, spaces.frame_dtype)
    wanted = granted_cores() if settings.num_workers is None else settings.num_workers
    if wanted == 0:
        return InProcess(settings, layout)
    return EnvWorkers(settings, layout, min(wanted, settings.num_envs))


build: Callable[[EngineSettings], Engine] = GymnasiumEngine
