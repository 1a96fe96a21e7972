"""Engine `ale`: ale-py's own vector environment, the reference for the field.

Takes the name of one Atari game; writes steps into the caller's arrays as every engine does.
Is the only module that imports ale-py (GPL-2), and only when an engine is built.

One `AtariVectorEnv` per group steps its environments in C++ threads. It is asked for single frames
and raw rewards: stacks and clipping are ours, as the protocol says. Its quirks stay: the frame in
which a game ends is never drawn, so the last frame is the one before (`terminal_frame="stale"`).
A step happens inside this process, so there is no worker to lose and `wait_seconds` has no use.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any

import numpy as np

from ..devices import HOST
from ..processes import granted_cores
from ..records import Array, StepArrays
from .interface import Engine, EngineSettings
from .rules import GroupCalls, StepRules, Supported, atari_games, check_protocol, spaces_of

NEAREST = "ale-vector"
_NEVER_FRAMES = 2**31 - 1
_COUNTERS = ("frame_number", "episode_frame_number")

_SUPPORTED: Supported = {
    "colour": ("grey", "rgb"),
    "resize": ("area",),
    "crop": ("none",),
    "stack_padding": ("zeros", "repeat"),
    "noop_min": (0,),
    "noop_unit": ("frames",),
    "fire_reset": ("none", "before-noops"),
    "life_loss": ("ignore", "end-return", "full-reset"),
    "terminal_frame": ("stale",),
}

Results = tuple[Array, Array, Array, Array, dict[str, Array]]


class AleEngine:
    """`AtariVectorEnv` behind the engine's interface."""

    name = "ale"
    can_snapshot = False
    memory = HOST

    def __init__(self, settings: EngineSettings) -> None:
        self.settings = settings
        _check(settings)
        make_pool, options = _vector_class(), _options(settings)
        self._pools = [make_pool(**options) for _ in range(settings.num_groups)]
        protocol, num_actions = settings.protocol, int(self._pools[0].single_action_space.n)
        colours = () if protocol.colour == "grey" else (3,)
        shape = (protocol.height, protocol.width, *colours)
        self.spaces = spaces_of(protocol, shape, "uint8", num_actions)
        self._calls = GroupCalls(settings)
        self._rules = StepRules(settings.num_envs, protocol, settings.autoreset)
        self._counters: list[Mapping[str, Array]] = [{}] * settings.num_groups
        self._futures: dict[int, Future[Results]] = {}
        self._receivers: ThreadPoolExecutor | None = None

    def reset(
        self, group: int, out: StepArrays, mask: Array | None = None, seed: int | None = None
    ) -> None:
        seeds = self._calls.reset(group, mask, seed)
        where = np.ones(self.settings.group_size, np.bool_) if mask is None else mask
        frames, info = self._pools[group].reset(
            seed=None if seeds is None else seeds[where], options={"reset_mask": where}
        )
        out.frame[where] = frames[where, 0]
        out.lives[where] = info["lives"][where]
        self._counters[group] = {name: info[name] for name in _COUNTERS}
        self._rules.started(self.settings.rows(group), out, mask)

    def send(self, group: int, actions: Array, out: StepArrays | None = None) -> None:
        self._rules.refuse_ended(self.settings.rows(group))
        self._calls.send(group)
        self._pools[group].send(actions)

    def recv(self, group: int, out: StepArrays) -> None:
        self._calls.receive(group)
        future = self._futures.pop(group, None)
        results: Results = self._pools[group].recv() if future is None else future.result()
        frames, rewards, terminated, truncated, info = results
        np.copyto(out.frame, frames[:, 0])
        np.copyto(out.raw_reward, rewards, casting="unsafe")  # int32, exact below 2^24
        np.copyto(out.terminated, terminated)
        np.copyto(out.truncated, truncated)
        np.copyto(out.lives, info["lives"])
        ended = terminated | truncated
        if ended.any():
            final = info.get("final_obs", frames)  # only with same-step do the two differ
            out.final_frame[ended] = final[ended, 0]
        self._counters[group] = {name: info[name] for name in _COUNTERS}
        self._rules.stepped(self.settings.rows(group), out)

    def poll(self, timeout_seconds: float) -> list[int]:
        """ale-py can only wait, so each group that is polled gets a thread that waits for it."""
        self._calls.refuse_closed()
        waiting = self._calls.in_flight()
        if self._receivers is None:
            self._receivers = ThreadPoolExecutor(self.settings.num_groups, "scanline-ale")
        for group in waiting:
            if group not in self._futures:
                self._futures[group] = self._receivers.submit(self._pools[group].recv)
        wait(self._futures.values(), timeout_seconds, FIRST_COMPLETED)
        return [group for group in waiting if self._futures[group].done()]

    def counters(self, group: int) -> Mapping[str, Array]:
        return self._counters[group]

    def snapshot(self) -> list[bytes]:
        raise ValueError("Engine 'ale' has no snapshots: ale-py's vector environment offers none.")

    def restore(self, snapshots: Sequence[bytes]) -> None:
        raise ValueError("Engine 'ale' has no snapshots: ale-py's vector environment offers none.")

    def close(self) -> None:
        if self._calls.close():
            if self._receivers is not None:
                self._receivers.shutdown()
            for group in self._calls.in_flight():
                if group not in self._futures:
                    self._pools[group].recv()
            self._pools.clear()


def _check(settings: EngineSettings) -> None:
    protocol = settings.protocol
    dependent: Supported = {
        "frame_skip_min": (protocol.frame_skip,),
        "pooling": ("none", "grey" if protocol.colour == "grey" else "rgb"),
    }
    check_protocol(protocol, {**_SUPPORTED, **dependent}, "ale", NEAREST)
    if settings.mode is not None or settings.difficulty is not None:
        raise ValueError(
            f"Engine 'ale' plays every game in its default mode and difficulty, not "
            f"mode={settings.mode} and difficulty={settings.difficulty}: ale-py's vector "
            "environment has no such option."
        )


def _game_id(settings: EngineSettings) -> str:
    ids = {game.id for game in atari_games(settings, "ale")}
    if len(ids) != 1:
        raise ValueError(
            f"Engine 'ale' plays one game in all environments, not {', '.join(sorted(ids))}; "
            "use an engine for each."
        )
    return ids.pop()


def _vector_class() -> Callable[..., Any]:
    try:
        found: Callable[..., Any] = importlib.import_module("ale_py.vector_env").AtariVectorEnv
    except ImportError as error:
        raise ImportError(
            "Engine 'ale' needs ale-py 0.12 or newer; get it with: pip install 'scanline[atari]'"
        ) from error
    return found


def _options(settings: EngineSettings) -> dict[str, Any]:
    protocol = settings.protocol
    num_threads = settings.num_threads or granted_cores()
    return {
        "game": _game_id(settings),
        "num_envs": settings.group_size,
        "num_threads": min(num_threads, settings.group_size),
        "max_num_frames_per_episode": protocol.episode_limit_frames or _NEVER_FRAMES,
        "repeat_action_probability": protocol.sticky,
        "full_action_space": protocol.full_action_space,
        "autoreset_mode": "SameStep" if settings.autoreset == "same-step" else "NextStep",
        "img_height": protocol.height,
        "img_width": protocol.width,
        "grayscale": protocol.colour == "grey",
        "stack_num": 1,
        "frameskip": protocol.frame_skip,
        "maxpool": protocol.pooling != "none",
        "noop_max": protocol.noop_max + 1,  # theirs is the first number that is not drawn
        "episodic_life": protocol.life_loss == "full-reset",
        "reward_clipping": False,
        "use_fire_reset": protocol.fire_reset == "before-noops",
    }


build: Callable[[EngineSettings], Engine] = AleEngine
