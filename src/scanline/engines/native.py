"""Engine `native`: our own emulator, stepped by threads without Python in between.

Takes names of Atari games, one for all environments or one each; writes steps into the caller's
arrays as every engine does. Honours every protocol but `as-is`. Knows no ale-py: only ROM files.

With `reset="ale"` the random numbers are those that ale-py's vector environment draws from the same
seeds, so the two engines give the same data; with `reset="cached"` they come from counters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from .. import games, random
from .._native import Batch, StepTarget
from ..processes import granted_cores
from ..records import Array, Spaces, StepArrays
from .interface import EngineError, EngineSettings
from .rules import Turns, refuse_others, spaces_of

NEAREST = "baselines"
_START_SECONDS = 600.0
"""Longest wait for a reset: it may load a console for every environment of a large group."""


class NativeEngine:
    """A `_native.Batch` behind the engine's interface."""

    name = "native"
    can_snapshot = True

    def __init__(self, settings: EngineSettings) -> None:
        refuse_others(
            settings.protocol, {"colour": ("grey", "luma", "rgb", "ram")}, "native", NEAREST
        )
        self.settings = settings
        names = _games_of_envs(settings)
        distinct = sorted(set(names))
        self._batch = Batch(
            [_choice(name, settings) for name in distinct],
            [distinct.index(name) for name in names],
            _options(settings),
            settings.num_groups,
            min(settings.num_threads or granted_cores(), settings.num_envs),
        )
        self.spaces = self._spaces()
        self._turns = Turns(settings.num_groups, settings.group_size)
        self._seeded = [False] * settings.num_groups
        self._targets: WeakKeyDictionary[StepArrays, StepTarget] = WeakKeyDictionary()
        self._flying: dict[int, StepTarget] = {}
        """Arrays that threads write to, kept alive meanwhile."""
        self._counters = np.zeros((settings.num_groups, 2, settings.group_size), np.int32)

    @property
    def bytes_per_env(self) -> int:
        """Memory of one environment, what the games share aside."""
        return int(self._batch.bytes_per_env)

    def reset(
        self, group: int, out: StepArrays, mask: Array | None = None, seed: int | None = None
    ) -> None:
        self._turns.reset(group, partly=mask is not None)
        seeds, key = self._seeds(group, seed)
        # After a lost life, and only there, a masked reset goes on with the same game.
        resume = mask is not None and seeds is None and self.settings.autoreset == "disabled"
        try:
            self._batch.reset(group, self._target(out), mask, seeds, key, resume, _START_SECONDS)
        except TimeoutError as error:
            raise EngineError(str(error)) from error

    def send(self, group: int, actions: Array, out: StepArrays | None = None) -> None:
        self._turns.sending(group)
        target = None if out is None else self._target(out)
        try:
            self._batch.send(group, np.ascontiguousarray(actions, np.int64), target)
        except BaseException:
            self._turns.refused(group)
            raise
        if target is not None:
            self._flying[group] = target

    def recv(self, group: int, out: StepArrays) -> None:
        target = self._target(out)
        if self._flying.get(group, target) is not target:
            raise ValueError(f"Group {group} was sent with other arrays; receive it with the same.")
        self._turns.receive(group)
        try:
            self._batch.recv(group, target, self.settings.wait_seconds)
        except TimeoutError as error:
            raise EngineError(str(error)) from error
        self._flying.pop(group, None)

    def poll(self, timeout_seconds: float) -> list[int]:
        self._turns.refuse_closed()
        return list(self._batch.poll(timeout_seconds))

    def counters(self, group: int) -> Mapping[str, Array]:
        total, of_episode = self._counters[group]
        self._batch.counters(group, total, of_episode)
        return {"frame_number": total.copy(), "episode_frame_number": of_episode.copy()}

    def start_recording(self, env: int) -> None:
        """Keeps the picture of every raw frame from now on, until the game starts anew."""
        self._turns.refuse_in_flight(None, "a recording")
        self._batch.start_recording(env)

    def take_recorded(self, env: int) -> Array:
        """Pictures in colour since the last call, uint8 [frames, H, 160, 3]."""
        self._turns.refuse_in_flight(None, "a recording")
        pictures: Array = self._batch.take_recorded(env)
        return pictures

    def snapshot(self) -> list[bytes]:
        self._turns.refuse_in_flight(None, "a snapshot")
        return [self._batch.snapshot(env) for env in range(self.settings.num_envs)]

    def restore(self, snapshots: Sequence[bytes]) -> None:
        self._turns.refuse_in_flight(None, "a restore")
        if len(snapshots) != self.settings.num_envs:
            raise ValueError(
                f"{len(snapshots)} snapshots do not fit {self.settings.num_envs} environments."
            )
        for env, snapshot in enumerate(snapshots):  # all or none
            self._batch.check_snapshot(env, snapshot)
        for env, snapshot in enumerate(snapshots):
            self._batch.restore(env, snapshot)
        self._turns.restored()
        self._seeded = [True] * self.settings.num_groups

    def close(self) -> None:
        if self._turns.close():
            del self._batch

    def _target(self, out: StepArrays) -> StepTarget:
        """The arrays as threads take them; looked at once for each."""
        found = self._targets.get(out)
        if found is None:
            found = self._targets[out] = StepTarget(_columns(out))
        return found

    def _seeds(self, group: int, seed: int | None) -> tuple[Array | None, tuple[int, int, int]]:
        """Seeds of ALE's generators, if the streams start anew, and the key of our own."""
        chosen = self.settings.seed if seed is None else seed
        rows = self._turns.rows(group)
        first = self.settings.first_env_id + rows.start
        key = (*random.key_of(chosen, "environment"), first)
        if seed is None and self._seeded[group]:
            return None, key
        self._seeded[group] = True
        env_ids = first + np.arange(self.settings.group_size)
        return random.seeds(chosen, "environment", env_ids), key

    def _spaces(self) -> Spaces:
        counts = {len(self._batch.actions(env)) for env in range(self.settings.num_envs)}
        if len(counts) != 1:
            raise ValueError(
                f"These games have {min(counts)} to {max(counts)} actions; several games in one "
                "engine need the same number: use full_action_space=True."
            )
        shape = tuple(self._batch.frame_shape)
        return spaces_of(self.settings.protocol, shape, "uint8", counts.pop())


def _games_of_envs(settings: EngineSettings) -> list[str]:
    game = settings.game
    if callable(game):
        raise ValueError(
            f"Engine 'native' takes names of Atari games, not {game!r}; use engine='gymnasium'."
        )
    names = [game] * settings.num_envs if isinstance(game, str) else list(game)
    if len(names) == 1:
        names *= settings.num_envs
    if len(names) != settings.num_envs:
        raise ValueError(
            f"{len(names)} games for {settings.num_envs} environments; name one, or one each."
        )
    return [games.find(name).id for name in names]


def _choice(name: str, settings: EngineSettings) -> tuple[bytes, int, int, int]:
    """ROM, row of the game table, mode and difficulty, as the batch wants them."""
    game = games.find(name)
    mode = -1 if settings.mode is None else settings.mode
    difficulty = -1 if settings.difficulty is None else settings.difficulty
    return games.rom_path(game).read_bytes(), game.index, mode, difficulty


def _options(settings: EngineSettings) -> dict[str, Any]:
    options = settings.protocol.to_dict()
    del options["name"]
    return {
        **options,
        "reset": settings.reset,
        "reset_cache_states": settings.reset_cache_states,
        "random_stream": "ale" if settings.reset == "ale" else "counter",
        "autoreset": settings.autoreset,
    }


def _columns(out: StepArrays) -> tuple[Array, ...]:
    return (
        out.frame,
        out.depth,
        out.reward,
        out.raw_reward,
        out.terminated,
        out.truncated,
        out.life_lost,
        out.lives,
        out.final_frame,
        out.start_frames,
    )


build: Callable[[EngineSettings], NativeEngine] = NativeEngine
