"""Rules that all engines share: spaces, refusals, the order of calls, rewards, depth, lives.

Takes what the environments of a group just gave; fills the fields of `StepArrays` that follow from
it. Knows neither ale-py nor Gymnasium, and loops over no environment.

Without this file each engine would answer in its own way when a stack begins or a life counts as
lost, and the same protocol would mean different data.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from .. import games, random
from ..protocols import Protocol
from ..records import Array, Spaces, StepArrays
from .interface import Autoreset, EngineError, EngineSettings, ProtocolRefusedError

Supported = Mapping[str, Collection[object]]
"""Field of a protocol to the values that an engine can honour; fields not named are free."""


def check_protocol(protocol: Protocol, supported: Supported, engine: str, nearest: str) -> None:
    """Refuses options that the engine cannot honour by name, with the nearest protocol."""
    refused = [
        f"{field}={getattr(protocol, field)!r}"
        for field, values in supported.items()
        if getattr(protocol, field) not in values
    ]
    if refused:
        raise ProtocolRefusedError(
            f"Engine {engine!r} cannot honour {', '.join(refused)} of protocol {protocol.name!r}; "
            f"the nearest protocol that it can is {nearest!r}.",
            nearest,
        )


def atari_games(settings: EngineSettings, engine: str) -> list[games.Game]:
    """The Atari game of each environment."""
    if callable(settings.game):
        raise ValueError(
            f"Engine {engine!r} takes names of Atari games, not {settings.game!r}; "
            "use engine='gymnasium'."
        )
    return [games.find(str(name)) for name in settings.games]


def spaces_of(
    protocol: Protocol, frame_shape: tuple[int, ...], frame_dtype: str, num_actions: int
) -> Spaces:
    """What an agent sees and may do: the protocol's rules, and what only the engine knows."""
    return Spaces(
        frame_shape=frame_shape,
        frame_dtype=frame_dtype,
        stack=protocol.stack,
        num_actions=num_actions,
        life_loss_ends_return=protocol.life_loss_ends_return,
        stack_padding=protocol.stack_padding,
    )


def native_choice(game: games.Game, settings: EngineSettings) -> tuple[bytes, int, int, int]:
    """ROM, row of the game table, mode and difficulty, as the emulator wants them."""
    mode = -1 if settings.mode is None else settings.mode
    difficulty = -1 if settings.difficulty is None else settings.difficulty
    return games.rom_path(game).read_bytes(), game.index, mode, difficulty


def native_options(settings: EngineSettings) -> dict[str, Any]:
    """Protocol and resets, as the emulator wants them."""
    options = settings.protocol.to_dict()
    del options["name"]
    return {
        **options,
        "reset": settings.reset,
        "reset_cache_states": settings.reset_cache_states,
        "random_stream": "ale" if settings.reset == "ale" else "counter",
        "autoreset": settings.autoreset,
    }


_CLIPS: Mapping[str, Callable[..., Array]] = {
    "none": np.positive,
    "sign": np.sign,
    "clamp": functools.partial(np.clip, a_min=-1.0, a_max=1.0),
}
"""Called with raw rewards and `out`, where the clipped ones go."""


class StepRules:
    """Fills reward, depth and life_lost; remembers what the next step needs for that."""

    def __init__(self, num_envs: int, protocol: Protocol, autoreset: Autoreset) -> None:
        self._stack = protocol.stack
        self._clip = _CLIPS[protocol.reward_clip]
        self._autoreset = autoreset
        self._depth = np.ones(num_envs, np.uint8)
        self._lives = np.zeros(num_envs, np.int32)
        self._ended = np.zeros(num_envs, np.bool_)

    def started(self, rows: slice, out: StepArrays, mask: Array | None) -> None:
        """After a reset that wrote `frame` and `lives`, where the mask says."""
        where = slice(None) if mask is None else mask
        out.depth[where] = 1
        for field in (out.reward, out.raw_reward, out.terminated, out.truncated, out.life_lost):
            field[where] = 0
        self._depth[rows][where] = 1
        self._lives[rows][where] = out.lives[where]
        self._ended[rows][where] = False

    def stepped(self, rows: slice, out: StepArrays) -> None:
        """After a step that wrote `raw_reward`, `terminated`, `truncated` and `lives`."""
        depth, lives = self._depth[rows], self._lives[rows]
        ended = out.terminated | out.truncated
        # The frame just written is the first of an episode: at once, or one step after the end.
        fresh = ended if self._autoreset == "same-step" else self._ended[rows]
        self._clip(out.raw_reward, out=out.reward)
        np.minimum(depth + np.uint8(1), self._stack, out=depth, casting="unsafe")
        depth[fresh] = 1
        np.copyto(out.depth, depth)
        np.logical_and(out.lives < lives, ~(ended | fresh), out=out.life_lost)
        np.copyto(lives, out.lives)
        self._ended[rows] = ended

    def refuse_ended(self, rows: slice) -> None:
        """With autoreset disabled, an ended environment waits for a reset, not for an action."""
        if self._autoreset == "disabled" and self._ended[rows].any():
            waiting = (np.flatnonzero(self._ended[rows]) + rows.start).tolist()
            raise RuntimeError(
                f"Environments {waiting} have ended and autoreset is disabled; reset them first "
                "with a mask."
            )

    def state(self) -> list[dict[str, Any]]:
        """What is remembered of each environment: depth, lives, ended."""
        columns = (self._depth.tolist(), self._lives.tolist(), self._ended.tolist())
        names = ("depth", "lives", "ended")
        return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]

    def load(self, states: Sequence[Mapping[str, Any]]) -> None:
        self._depth[:] = [state["depth"] for state in states]
        self._lives[:] = [state["lives"] for state in states]
        self._ended[:] = [state["ended"] for state in states]


class GroupCalls:
    """Order of an engine's calls: a group is reset, then sent and received in turn.

    One thread may send a group while another receives it.
    """

    def __init__(self, settings: EngineSettings) -> None:
        self._settings = settings
        self._is_reset = [False] * settings.num_groups
        self._is_sent = [False] * settings.num_groups
        self._is_closed = False

    def reset(self, group: int, mask: Array | None, seed: int | None) -> Array | None:
        """Seeds [b] where the random streams start anew: at a group's first reset, and at any with
        a seed. None where they go on."""
        self.refuse_in_flight(group, "a reset")
        is_first = not self._is_reset[group]
        if is_first and mask is not None:
            raise RuntimeError(f"Group {group} needs a whole reset before one with a mask.")
        self._is_reset[group] = True
        if seed is None and not is_first:
            return None
        chosen = self._settings.seed if seed is None else seed
        return random.seeds(chosen, "environment", self._settings.env_ids(group))

    def send(self, group: int) -> None:
        """Before the actions are passed on: another thread may receive the group meanwhile."""
        self.refuse_in_flight(group, "new actions")
        if not self._is_reset[group]:
            raise RuntimeError(f"Group {group} was never reset; reset it before sending actions.")
        self._is_sent[group] = True

    def send_failed(self, group: int) -> None:
        """Takes `send` back."""
        self._is_sent[group] = False

    def receive(self, group: int) -> None:
        self.refuse_closed()
        if not self._is_sent[group]:
            raise RuntimeError(f"Nothing was sent to group {group}; send actions before recv.")
        self._is_sent[group] = False

    def restore(self, snapshots: Sequence[bytes]) -> None:
        """Refuses what cannot be restored now, before anything is changed."""
        self.refuse_in_flight(None, "a restore")
        if len(snapshots) != self._settings.num_envs:
            raise ValueError(
                f"There are {len(snapshots)} snapshots for {self._settings.num_envs} environments."
            )

    def restored(self) -> None:
        self._is_reset = [True] * self._settings.num_groups

    def refuse_in_flight(self, group: int | None, what: str) -> None:
        """Refuses while the group, or any group for None, has results to fetch."""
        self.refuse_closed()
        if any(self._is_sent) if group is None else self._is_sent[group]:
            name = "A group" if group is None else f"Group {group}"
            raise RuntimeError(f"{name} has results in flight; recv them before {what}.")

    def refuse_closed(self) -> None:
        if self._is_closed:
            raise EngineError("The engine is closed; build a new one.")

    def in_flight(self) -> list[int]:
        return [group for group, is_sent in enumerate(self._is_sent) if is_sent]

    def close(self) -> bool:
        """True the first time."""
        was_closed, self._is_closed = self._is_closed, True
        return not was_closed
