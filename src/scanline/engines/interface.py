"""What an engine is: environments in groups, stepped by `send` and `recv`.

Takes actions per group; writes frames, rewards and ends into arrays that the caller owns.
Knows nothing of networks, samplers or stores. It gives the newest frame and how many frames of the
stack are valid; observations are built by whoever wants them, or, where the engine can, by the
threads that step (`StackingEngine`).

Groups are the unit of waiting. Lockstep is one group, alternating sampling two, and a dynamic
schedule many small ones with `poll`: one interface serves all three.

A new engine is one module of this package with a class that keeps `Engine`, a function
`build(settings)`, and a row in `KINDS` of `__init__.py`; `rules.py` has what all engines share, and
`tests/engines/test_interface.py` what all of them are tested for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np

from ..errors import RefusedError
from ..protocols import Protocol as AgentProtocol

if TYPE_CHECKING:  # worker processes read this module and must start without torch
    from ..devices import Device
    from ..records import Array, Spaces, StepArrays

Autoreset = Literal["same-step", "next-step", "disabled"]
ResetKind = Literal["ale", "cached"]
EnvMaker = str | Callable[[], Any]
"""A game's name, a Gymnasium id, or what makes an environment."""
Game = EnvMaker | Sequence[str]


class EngineError(RuntimeError):
    """An engine lost an environment: a worker raised or died, or did not answer in time."""


class ProtocolRefusedError(RefusedError):
    """An engine cannot honour a protocol; `nearest` is the preset that it can."""

    def __init__(self, sentence: str, nearest: str) -> None:
        super().__init__(sentence)
        self.nearest = nearest


def check_whole(name: str, given: Any, least: int) -> None:
    """Refuses what is no whole number, or is below the least one."""
    if isinstance(given, bool) or not isinstance(given, (int, np.integer)):
        raise ValueError(f"{name}={given!r} must be a whole number of at least {least}.")
    if given < least:
        raise ValueError(f"{name}={given} must be at least {least}.")


_LEAST = {
    **{"num_envs": 1, "seed": 0, "num_threads": 1, "num_workers": 0},
    **{"reset_cache_states": 1},
}
"""Whole numbers among the settings, with the least that is allowed."""


@dataclass(frozen=True, kw_only=True)
class EngineSettings:
    """Everything an engine is built from."""

    game: Game
    """A game's name, a Gymnasium id, a callable, or a list of names: environment i plays entry i,
    and the list begins anew where it ends."""
    num_envs: int
    num_groups: int = 1
    """Equal, contiguous groups of environments that are sent and received together."""
    protocol: AgentProtocol
    seed: int = 0
    first_env_id: int = 0
    """Global number of the first environment: random streams are keyed by it."""
    num_threads: int | None = None
    """Engine threads; all cores that the system grants when not given."""
    num_workers: int | None = None
    """Worker processes of the `gymnasium` engine; as many as cores when not given."""
    autoreset: Autoreset = "same-step"
    """When an ended environment starts anew: in the same step, in the next, or by `reset` only."""
    reset: ResetKind = "cached"
    """`ale`: exact and history-dependent; `cached`: a start state from a cache (native only)."""
    reset_cache_states: int = 30
    """Start states in the cache of `cached` resets."""
    mode: int | None = None
    """Game mode; the game's default when not given."""
    difficulty: int | None = None
    """Difficulty switches; the game's default when not given."""
    device: str = "cpu"
    """The learner's device; an engine on a device of that kind keeps its memory there."""
    wait_seconds: float = 60.0
    """Longest wait for one step of a group before the engine is declared stuck."""
    renders: bool = False
    """Whether screens will be asked for; Gymnasium's environments are then made with rgb_array."""
    uneven_seconds: float = 0.0
    """Simulated: every step of an environment takes so many seconds at least, and up to ten times
    as many; 0 for no delay."""
    is_paused: Callable[[], bool] | None = None
    """Measurements: while it gives True, steps are finished at once and nothing is stepped."""

    def __post_init__(self) -> None:
        for field, least in _LEAST.items():
            if (given := getattr(self, field)) is not None:
                check_whole(field, given, least)
        if not self.wait_seconds > 0:
            raise ValueError(f"wait_seconds={self.wait_seconds} must be above 0.")
        if self.uneven_seconds < 0:
            raise ValueError(f"uneven_seconds={self.uneven_seconds} must not be negative.")
        if self.num_groups < 1 or self.num_envs % self.num_groups:
            fitting = -(-self.num_envs // max(self.num_groups, 1)) * max(self.num_groups, 1)
            raise ValueError(
                f"num_envs={self.num_envs} does not divide into {self.num_groups} equal groups; "
                f"use {fitting} environments."
            )

    @property
    def group_size(self) -> int:
        return self.num_envs // self.num_groups

    @property
    def games(self) -> list[EnvMaker]:
        """What each environment plays: the list of games, repeated as often as it fits."""
        named: list[EnvMaker] = (
            [self.game] if isinstance(self.game, str) or callable(self.game) else list(self.game)
        )
        if not named or self.num_envs % len(named):
            raise ValueError(
                f"The list names {len(named)} games for num_envs={self.num_envs}; "
                "give one for all environments, one for each, or a number that divides them."
            )
        return named * (self.num_envs // len(named))

    def rows(self, group: int) -> slice:
        """A group's environments among all of the engine."""
        return slice(group * self.group_size, (group + 1) * self.group_size)

    def env_ids(self, group: int) -> Array:
        """Global numbers of a group's environments, [b]."""
        rows = self.rows(group)
        return self.first_env_id + np.arange(rows.start, rows.stop)


@runtime_checkable
class Engine(Protocol):
    """Environments behind one interface; `same-step` autoreset is what samplers use.

    With `same-step`, `frame` after an end is the first of the next episode and `final_frame` the
    last of the old one. With `next-step`, `frame` is the last of the old episode, and the following
    step ignores its action, gives reward 0 and the first frame of the next episode.
    """

    name: str
    settings: EngineSettings
    spaces: Spaces
    can_snapshot: bool
    memory: Device
    """Where frames are written: `frame` and `final_frame` of `StepArrays` are arrays of the host,
    or tensors of this device. Other arrays are always the host's."""

    def reset(
        self, group: int, out: StepArrays, mask: Array | None = None, seed: int | None = None
    ) -> None:
        """Starts new episodes in the group and writes their start.

        With a mask [b], only there, and other rows of `out` stay as they are. The first reset
        draws from `settings.seed`; a seed starts the random streams anew.
        """

    def send(self, group: int, actions: Array, out: StepArrays | None = None) -> None:
        """Hands one action per environment of the group, int64 [b]; returns at once.

        `out`, where the caller knows it by now, is what `recv` will be given: an engine may fill it
        meanwhile, and then copies nothing. On a device, frames are written after all that was
        issued there before this call, and may be read by what is issued after `recv`.
        """

    def recv(self, group: int, out: StepArrays) -> None:
        """Waits for what was sent to the group and writes its results."""

    def poll(self, timeout_seconds: float) -> list[int]:
        """Groups whose results are ready; waits up to the timeout for the first."""

    def counters(self, group: int) -> Mapping[str, Array]:
        """Further numbers of the last step, [b] each, such as frame counters; may be empty."""

    def snapshot(self) -> list[bytes]:
        """One complete, versioned state per environment, taken with nothing in flight."""

    def restore(self, snapshots: Sequence[bytes]) -> None:
        """Continues every environment from its snapshot."""

    def close(self) -> None:
        """Frees threads, processes and shared memory; may be called twice."""


class StackArrays(NamedTuple):
    """Where an engine writes observations [b, S, ...] of a step, and the frames they are made of.
    All are uint8 and C-contiguous."""

    ring: Array  # [S, b, ...frame] the group's newest frames
    newest: int  # the ring's entry that is the step's `StepArrays.frame`
    finals: Array | None  # [b, S, ...frame] last observations where an episode or a life ended
    observations: Array  # [b, S, ...frame]


@runtime_checkable
class StackingEngine(Engine, Protocol):
    """An engine that also builds observations, in the threads that step."""

    def send_stacked(
        self,
        group: int,
        actions: Array,
        strengths: Array | None,
        out: StepArrays,
        stacks: StackArrays,
    ) -> None:
        """As `send`; what `stacks` names is written when `recv` returns.

        Strengths, float32 [b] of 0 to 1, say how far actions turn a paddle; None for all the way.
        """


@runtime_checkable
class ScreenEngine(Engine, Protocol):
    """An engine that can show what its environments show a player."""

    def screens(self) -> list[Array]:
        """A picture in colour of every environment, uint8 [H, W, 3]; nothing is in flight."""
