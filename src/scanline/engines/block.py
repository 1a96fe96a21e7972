"""A block of plain Gymnasium environments in one process, stepped one after the other.

Takes actions from arrays and writes frames, rewards and ends into arrays, each environment into
its own row; the arrays may be shared with another process. Gives and takes snapshots.
Knows no group, stack or reward clip, and imports no torch: a worker process must start quickly.

It wraps `gymnasium.Env`, not a vector environment, so that the true last frame, the three reset
modes and the frame limit are in one place and the same with any number of processes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import gymnasium
import numpy.typing as npt
from gymnasium import wrappers

from .. import games
from ..processes import Fields
from . import heads

Env = gymnasium.Env[Any, Any]
Arrays = Mapping[str, npt.NDArray[Any]]
_STATELESS_WRAPPERS = (wrappers.OrderEnforcing, wrappers.PassiveEnvChecker)


@runtime_checkable
class Snapshots(Protocol):
    """What `env.unwrapped` may offer: its whole state as bytes, random generator included."""

    def snapshot(self) -> bytes: ...

    def restore(self, snapshot: bytes) -> None: ...


@dataclass(frozen=True, kw_only=True)
class BlockSettings:
    """Which environments a block holds, and its part of the protocol."""

    games: Sequence[str | Callable[[], Any]]
    """What makes each environment."""
    rows: Sequence[int]
    """Row of each environment in the arrays."""
    first_env_id: int
    """Global number of row 0, for messages."""
    first_action: int
    """What action 0 is called in the environment's own space."""
    frame_skip: int
    """How often an action is repeated."""
    episode_limit_frames: int
    """Calls of `env.step` after which an episode is truncated; 0 for never."""
    autoreset: str


def fields(num_envs: int, frame_shape: tuple[int, ...], frame_dtype: str) -> Fields:
    """The arrays of a block, for all environments of an engine; frames in their own shape."""
    frames = ((num_envs, *frame_shape), frame_dtype)
    column = (num_envs,)
    return {
        "action": (column, "int64"),
        "seed": (column, "int64"),  # -1 where the random stream goes on
        "mask": (column, "bool"),  # where a reset is wanted
        "frame": frames,
        "final_frame": frames,
        "raw_reward": (column, "float32"),
        "terminated": (column, "bool"),
        "truncated": (column, "bool"),
        "lives": (column, "int32"),
    }


def make_env(game: str | Callable[[], Any]) -> Env:
    """One environment from a Gymnasium id, the name of an Atari game, or a callable."""
    if not isinstance(game, str):
        env: Env = game()
        return env
    try:
        return gymnasium.make(_gymnasium_id(game), disable_env_checker=True)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"{game!r} needs a package that is missing ({error.name}); Atari games come with "
            "pip install 'scanline[atari]'."
        ) from error
    except gymnasium.error.UnregisteredEnv as error:
        raise ValueError(f"There is no environment {game!r}. {error}") from error


def _gymnasium_id(game: str) -> str:
    if game in gymnasium.registry or ":" in game:
        return game
    try:
        found = games.find(game)
    except ValueError:
        return game
    # "module:id" lets Gymnasium import the package that registers the id.
    is_legacy = re.search(r"-v[04]$", game) is not None
    return f"ale_py:{game if is_legacy else found.gymnasium_id}"


def can_snapshot(env: Env) -> bool:
    """Whether a snapshot of the innermost environment is a snapshot of the whole."""
    layer = env
    while isinstance(layer, gymnasium.Wrapper):
        if not isinstance(layer, (*_STATELESS_WRAPPERS, wrappers.TimeLimit)):
            return False
        layer = layer.env
    return isinstance(layer, Snapshots)


class Place:
    """One environment and the row that it writes."""

    def __init__(self, game: str | Callable[[], Any], row: int, settings: BlockSettings) -> None:
        self.row, self._settings = row, settings
        self._env = make_env(game)
        self._limit = _time_limit(self._env)
        self._frames = 0
        self._waits_for_reset = False

    def reset(self, arrays: Arrays, seed: int | None) -> None:
        frame, info = self._env.reset(seed=seed)
        self._frames, self._waits_for_reset = 0, False
        arrays["frame"][self.row] = frame
        arrays["lives"][self.row] = info.get("lives", 0)

    def step(self, arrays: Arrays) -> None:
        row = self.row
        if self._waits_for_reset:
            arrays["raw_reward"][row] = 0.0
            arrays["terminated"][row] = arrays["truncated"][row] = False
            return self.reset(arrays, None)
        action = arrays["action"].item(row) + self._settings.first_action
        frame, reward, terminated, truncated, lives = self._repeat(action)
        arrays["frame"][row] = frame
        arrays["raw_reward"][row] = reward
        arrays["terminated"][row] = terminated
        arrays["truncated"][row] = truncated
        arrays["lives"][row] = lives
        if terminated or truncated:
            arrays["final_frame"][row] = frame
            if self._settings.autoreset == "same-step":
                self.reset(arrays, None)
            else:
                self._waits_for_reset = True
        return None

    def _repeat(self, action: int) -> tuple[Any, float, bool, bool, int]:
        total, limit = 0.0, self._settings.episode_limit_frames
        for _ in range(self._settings.frame_skip):
            frame, reward, terminated, truncated, info = self._env.step(action)
            total += float(reward)
            self._frames += 1
            truncated = truncated or (self._frames == limit and not terminated)
            if terminated or truncated:
                break
        return frame, total, terminated, truncated, info.get("lives", 0)

    def snapshot(self) -> bytes:
        elapsed = self._limit._elapsed_steps if self._limit else None
        head = {"frames": self._frames, "waits": self._waits_for_reset, "elapsed": elapsed}
        inner = self._env.unwrapped
        assert isinstance(inner, Snapshots)
        return json.dumps(head).encode() + b"\n" + inner.snapshot()

    def restore(self, snapshot: bytes) -> None:
        head, _, body = snapshot.partition(b"\n")
        elapsed = heads.COUNT if self._limit else heads.NOTHING
        bounds = {"frames": heads.COUNT, "waits": heads.FLAG, "elapsed": elapsed}
        state = heads.read(head, bounds)
        self._env.reset()  # wrappers refuse to step before they saw one
        inner = self._env.unwrapped
        assert isinstance(inner, Snapshots)
        inner.restore(body)
        self._frames, self._waits_for_reset = state["frames"], state["waits"]
        if self._limit:
            self._limit._elapsed_steps = state["elapsed"]

    def close(self) -> None:
        self._env.close()


def _time_limit(env: Env) -> wrappers.TimeLimit[Any, Any] | None:
    layer = env
    while isinstance(layer, gymnasium.Wrapper):
        if isinstance(layer, wrappers.TimeLimit):
            return layer
        layer = layer.env
    return None


class Block:
    """The environments of one process, addressed by the rows that a slice covers."""

    def __init__(self, settings: BlockSettings, arrays: Arrays) -> None:
        self._settings, self._arrays = settings, arrays
        self._places = {
            row: Place(game, row, settings)
            for row, game in zip(settings.rows, settings.games, strict=True)
        }

    def reset(self, rows: Sequence[int]) -> None:
        for row in rows:
            if self._arrays["mask"][row]:
                seed = self._arrays["seed"].item(row)
                self._named(row, self._places[row].reset, self._arrays, None if seed < 0 else seed)

    def step(self, rows: Sequence[int]) -> None:
        for row in rows:
            self._named(row, self._places[row].step, self._arrays)

    def snapshot(self) -> dict[int, bytes]:
        return {row: place.snapshot() for row, place in self._places.items()}

    def restore(self, snapshots: Mapping[int, bytes]) -> None:
        for row, place in self._places.items():
            place.restore(snapshots[row])

    def close(self) -> None:
        for place in self._places.values():
            place.close()

    def _named(self, row: int, function: Callable[..., None], *args: Any) -> None:
        """Calls; an exception leaves with the environment's number on it."""
        try:
            function(*args)
        except Exception as error:
            error.add_note(f"This was environment {self._settings.first_env_id + row}.")
            raise
