"""Rules that every engine keeps in the same way: spaces, refusals, turns, rewards, depth, lives.

Takes what the environments of a group just gave; fills the fields of `StepArrays` that follow from
it. Knows neither ale-py nor Gymnasium, and loops over no environment.

Without this file each engine would answer in its own way when a stack begins or a life counts as
lost, and the same protocol would mean different data.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import numpy as np

from ..protocols import Protocol
from ..records import Array, Spaces, StepArrays
from .interface import Autoreset, EngineError, ProtocolRefusedError

Honoured = Mapping[str, Collection[object]]
"""Field of a protocol to the values that an engine can honour; fields not named are free."""


def refuse_others(protocol: Protocol, honoured: Honoured, engine: str, nearest: str) -> None:
    """Names every option that the engine cannot honour, and the nearest protocol."""
    refused = [
        f"{field}={getattr(protocol, field)!r}"
        for field, values in honoured.items()
        if getattr(protocol, field) not in values
    ]
    if refused:
        raise ProtocolRefusedError(
            f"Engine {engine!r} cannot honour {', '.join(refused)} of protocol {protocol.name!r}; "
            f"the nearest protocol that it can is {nearest!r}.",
            nearest,
        )


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


def _as_it_is(raw: Array, out: Array) -> None:
    np.copyto(out, raw)


def _sign(raw: Array, out: Array) -> None:
    np.sign(raw, out=out)


def _clamp(raw: Array, out: Array) -> None:
    np.clip(raw, -1.0, 1.0, out=out)


_CLIPS: Mapping[str, Callable[[Array, Array], None]] = {
    "none": _as_it_is,
    "sign": _sign,
    "clamp": _clamp,
}


@dataclass(frozen=True)
class EnvState:
    """What the rules remember of one environment."""

    depth: int
    lives: int
    ended: bool


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
        self._clip(out.raw_reward, out.reward)
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

    def state(self) -> list[EnvState]:
        columns = (self._depth.tolist(), self._lives.tolist(), self._ended.tolist())
        return [EnvState(*row) for row in zip(*columns, strict=True)]

    def load(self, states: list[EnvState]) -> None:
        self._depth[:] = [state.depth for state in states]
        self._lives[:] = [state.lives for state in states]
        self._ended[:] = [state.ended for state in states]


class Turns:
    """Which groups wait for what: a group is reset, then sent and received in turn."""

    def __init__(self, num_groups: int, group_size: int) -> None:
        self._group_size = group_size
        self._started = [False] * num_groups
        self._sent = [False] * num_groups
        self._closed = False

    def rows(self, group: int) -> slice:
        return slice(group * self._group_size, (group + 1) * self._group_size)

    def reset(self, group: int, *, partly: bool) -> None:
        self.refuse_in_flight(group, "a reset")
        if partly and not self._started[group]:
            raise RuntimeError(f"Group {group} needs a whole reset before one with a mask.")
        self._started[group] = True

    def send(self, group: int) -> None:
        self.refuse_in_flight(group, "new actions")
        if not self._started[group]:
            raise RuntimeError(f"Group {group} was never reset; reset it before sending actions.")
        self._sent[group] = True

    def sending(self, group: int) -> None:
        """The group counts as sent before the call that sends it is over, because another thread
        may receive it meanwhile; `refused` takes that back."""
        self.refuse_in_flight(group, "new actions")
        self._sent[group] = True

    def refused(self, group: int) -> None:
        self._sent[group] = False

    def receive(self, group: int) -> None:
        self.refuse_closed()
        if not self._sent[group]:
            raise RuntimeError(f"Nothing was sent to group {group}; send actions before recv.")
        self._sent[group] = False

    def refuse_in_flight(self, group: int | None, what: str) -> None:
        """Refuses while the group, or any group for None, has results to fetch."""
        self.refuse_closed()
        if any(self._sent) if group is None else self._sent[group]:
            who = "A group" if group is None else f"Group {group}"
            raise RuntimeError(f"{who} has results in flight; recv them before {what}.")

    def refuse_closed(self) -> None:
        if self._closed:
            raise EngineError("The engine is closed; build a new one.")

    def in_flight(self) -> list[int]:
        return [group for group, sent in enumerate(self._sent) if sent]

    def restored(self) -> None:
        self._started = [True] * len(self._started)

    def close(self) -> bool:
        """True the first time."""
        was_closed, self._closed = self._closed, True
        return not was_closed
