"""The public vector environment: an engine as a Gymnasium `VectorEnv`.

Takes actions of all environments, or of whole groups by `send` and `recv`; gives stacked
observations [N, S, H, W], rewards, ends and infos in Gymnasium's form.
Knows any engine by its interface, and no sampler: training does not go through it.

With fewer environments in a batch than there are, it is asynchronous as ale-py's: `reset` gives the
first batch, and each `step` acts for the batch given last and gives the next one that is ready.

Arrays that it gives are fresh and stay valid; with `out` it writes into the caller's own.
A lost life counts as `terminated` where the protocol says that it ends the return.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np
from gymnasium.error import ClosedEnvironmentError, ResetNeeded
from gymnasium.spaces import Box, Discrete, Space
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from ..engines.interface import (
    Autoreset,
    Engine,
    EngineError,
    ScreenEngine,
    StackingEngine,
    check_whole,
)
from ..engines.snapshots import COUNT, FLAG, LIVES, SCORE, Bound, pack, unpack
from ..records import Array, Spaces, StepArrays
from .arguments import (
    Actions,
    checked_actions,
    checked_groups,
    checked_mask,
    checked_render_mode,
    polar_actions,
    polar_space,
)
from .episodes import EpisodeTotals
from .frame_stack import FrameStack
from .recorders import episode_key

MODES: Mapping[Autoreset, AutoresetMode] = {
    "next-step": AutoresetMode.NEXT_STEP,
    "same-step": AutoresetMode.SAME_STEP,
    "disabled": AutoresetMode.DISABLED,
}
FRAMES_PER_SECOND = 60
"""Of the console."""
_MAGIC = b"scanline-vector-2\n"


class StepBuffers(NamedTuple):
    """What `step` fills, for a caller who keeps the arrays."""

    observations: Array  # [N, S, ...frame]
    rewards: Array  # [N] float32
    terminations: Array  # [N] bool
    truncations: Array  # [N] bool


Results = tuple[Array, Array, Array, Array, dict[str, Any]]


class EngineVectorEnv(VectorEnv[Array, Array, Array]):
    """All environments of an engine; `scanline.make` builds it."""

    def __init__(
        self,
        engine: Engine,
        render_mode: str | None = None,
        polar_threshold: float | None = None,
    ) -> None:
        """With `polar_threshold` actions are continuous; see `arguments.polar_actions`."""
        settings, spaces = engine.settings, engine.spaces
        self.render_mode = checked_render_mode(render_mode, engine)
        self.engine, self.protocol = engine, settings.protocol
        self.num_envs, self.batch_size = settings.num_envs, settings.group_size
        self.metadata = {
            "autoreset_mode": MODES[settings.autoreset],
            "render_modes": ["rgb_array"],
            "render_fps": max(1, FRAMES_PER_SECOND // settings.protocol.frame_skip),
        }
        self.single_observation_space = _observation_space(spaces)
        self.single_action_space: Space[Any] = (
            Discrete(spaces.num_actions) if polar_threshold is None else polar_space()
        )
        self._polar_threshold = polar_threshold
        # As ale-py has it: those of a batch, which with `batch_size` is a part of the environments.
        self.observation_space = batch_space(self.single_observation_space, self.batch_size)
        self.action_space = batch_space(self.single_action_space, self.batch_size)
        self._all = slice(0, self.num_envs)
        self._steps = StepArrays.allocate(spaces, self.num_envs)
        groups = range(settings.num_groups)
        self._stacks = [FrameStack(spaces, _part(self._steps, settings.rows(g))) for g in groups]
        self._totals = EpisodeTotals(self.num_envs)
        self._everywhere = np.ones(self.num_envs, np.bool_)
        self._everywhere.setflags(write=False)  # every info shares it
        self._is_reset = False
        self._stacking = engine if isinstance(engine, StackingEngine) else None
        self._observed: dict[int, Array] = {}  # what the engine builds for groups in flight
        self._unread: list[int] = []  # groups whose start has not been given
        self._given = 0  # the group that was given last

    def buffers(self, num: int | None = None) -> StepBuffers:
        """Fresh arrays for `step(..., out=...)`; for `recv(out=...)` give `batch_size`."""
        return self._fresh(self.num_envs if num is None else num, None)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        """New episodes in all environments, or where `options["reset_mask"]` says.

        Gives all observations; without a mask those of the first batch, where a batch is a part of
        the environments: `recv` and `step` give the others.
        """
        self._refuse_closed()
        if seed is not None:
            check_whole("seed", seed, 0)
        mask = checked_mask(options or {}, self.num_envs)
        if mask is not None and not self._is_reset:
            raise ResetNeeded("Call reset() for all environments before a reset with a mask.")
        for group, stack in enumerate(self._stacks):
            own = None if mask is None else mask[self.engine.settings.rows(group)]
            if own is None or own.any():
                self.engine.reset(group, stack.arrays, own, seed)
                stack.pad()
        self._totals.restart(self._all, mask)
        self._is_reset = True
        rows = self._all
        if mask is None:
            self._given, self._unread = 0, list(range(1, len(self._stacks)))
            rows = self.engine.settings.rows(0)
        return self._observations(rows), self._dense_info(rows)

    def step(self, actions: Array, out: StepBuffers | None = None) -> Results:
        """One agent step of every environment, or, given a batch's actions where a batch is a part
        of them, of the batch that was given last; fills `out` if given."""
        if self.batch_size < self.num_envs and len(actions) == self.batch_size:
            rows = self.engine.settings.rows(self._given)
            self.send(actions, np.arange(rows.start, rows.stop))
            return self.recv(out)
        filled = self.buffers() if out is None else out
        size = self.batch_size
        parts = [filled.observations[n : n + size] for n in range(0, self.num_envs, size)]
        self._send(actions, None, parts)
        for group, part in enumerate(parts):
            self._receive(group, part)
        return self._results(self._all, filled)

    def send(self, actions: Array, env_ids: Array | None = None) -> None:
        """Sends actions to whole groups of `batch_size` environments; returns at once."""
        self._send(actions, env_ids, None)

    def recv(self, out: StepBuffers | None = None) -> Results:
        """The results of the first group that is ready, whose numbers are `info["env_id"]`."""
        self._refuse_closed()
        is_start = bool(self._unread)
        group = self._unread.pop(0) if is_start else self._ready_group()
        rows = self.engine.settings.rows(group)
        filled = self._fresh(self.batch_size, self._observed.get(group)) if out is None else out
        self._given = group
        if is_start:
            self._stacks[group].write(filled.observations)
            for column in filled[1:]:
                column[...] = 0
            return (*filled, self._dense_info(rows))
        self._receive(group, filled.observations)
        return self._results(rows, filled)

    def render(self) -> tuple[Array, ...]:
        """A picture in colour of every environment, uint8 [H, W, 3]: of a console its screen,
        [210, 160, 3] for most. Engines without screens give the newest frames of observations."""
        self._refuse_closed()
        if self.render_mode is None:
            raise ValueError("Nothing is rendered; make it with render_mode='rgb_array'.")
        if isinstance(self.engine, ScreenEngine):
            return tuple(self.engine.screens())
        frames = np.concatenate([stack.arrays.frame for stack in self._stacks])
        return tuple(coloured(frame) for frame in frames)

    def snapshot(self) -> list[bytes]:
        """The whole state of every environment, its frames and totals included."""
        self._refuse_closed()
        return [self._packed(env, inner) for env, inner in enumerate(self.engine.snapshot())]

    def restore(self, snapshots: Sequence[bytes]) -> Array:
        """Continues every environment from its snapshot; gives the observations there.

        If one is refused, by ValueError, all environments stay as they are.
        """
        self._refuse_closed()
        parts = [_unpacked(snapshot, self.engine.spaces) for snapshot in snapshots]
        self.engine.restore([inner for _, _, inner in parts])
        for env, (header, window, _) in enumerate(parts):
            group, row = divmod(env, self.batch_size)
            self._stacks[group].load_window(row, header["depth"], window)
            self._totals.score[env] = header["score"]
            self._totals.length[env] = header["length"]
            self._totals.waits[env] = header["waits"]
            self._steps.lives[env] = header["lives"]
        self._is_reset, self._given, self._unread = True, 0, []
        return self._observations(self._all)

    def close_extras(self, **kwargs: Any) -> None:
        self.engine.close()

    def _fresh(self, num: int, observations: Array | None) -> StepBuffers:
        """Arrays of their own, but for observations that there are already."""
        shape, dtype = self.engine.spaces.observation_shape, self.engine.spaces.frame_dtype
        found = np.empty((num, *shape), dtype) if observations is None else observations
        flags = np.empty(num, np.bool_), np.empty(num, np.bool_)
        return StepBuffers(found, np.empty(num, np.float32), *flags)

    def _send(self, actions: Any, env_ids: Any, into: Sequence[Array] | None) -> None:
        """`into`: for each group, where its observations go, if that is known by now."""
        self._refuse_closed()
        if not self._is_reset:
            raise ResetNeeded("Call reset() before the first step.")
        chosen, groups = checked_groups(env_ids, self.num_envs, self.batch_size)
        checked = self._checked(actions, len(chosen))
        places = np.argsort(chosen).reshape(len(groups), self.batch_size)
        for group, own in zip(groups, places, strict=True):
            self._send_group(group, checked.part(own), None if into is None else into[group])
        self._unread = [group for group in self._unread if group not in groups]

    def _checked(self, actions: Any, num: int) -> Actions:
        if self._polar_threshold is None:
            return checked_actions(actions, num, self.engine.spaces.num_actions)
        return polar_actions(actions, num, self._polar_threshold)

    def _send_group(self, group: int, actions: Actions, into: Array | None) -> None:
        stack, spaces = self._stacks[group], self.engine.spaces
        if self._stacking is None:
            self.engine.send(group, actions.indices, stack.next_arrays)
        else:
            if into is None or not into.flags.c_contiguous or into.dtype != spaces.frame_dtype:
                into = self._fresh(self.batch_size, None).observations
            stacks = stack.next_stack(into, with_finals=self._keeps_finals)
            self._stacking.send_stacked(group, *actions, stack.next_arrays, stacks)
            self._observed[group] = into
        stack.advance()

    def _ready_group(self) -> int:
        if len(self._stacks) == 1:
            return 0
        ready = self.engine.poll(self.engine.settings.wait_seconds)
        if not ready:
            raise EngineError("No group has results; send actions before recv.")
        return ready[0]

    def _receive(self, group: int, into: Array) -> None:
        """Waits for a group; its observations are then in the caller's array."""
        stack = self._stacks[group]
        self.engine.recv(group, stack.arrays)
        built = self._observed.pop(group, None)
        if built is None:
            if self._keeps_finals:
                stack.keep_finals()
            stack.pad()
            stack.write(into)
        elif built is not into:
            np.copyto(into, built)

    @property
    def _keeps_finals(self) -> bool:
        return self.engine.settings.autoreset == "same-step"

    def _results(self, rows: slice, filled: StepBuffers) -> Results:
        steps = self._steps
        np.copyto(filled.rewards, steps.reward[rows])
        np.copyto(filled.terminations, steps.terminated[rows])
        if self.engine.spaces.life_loss_ends_return:
            np.logical_or(filled.terminations, steps.life_lost[rows], out=filled.terminations)
        np.copyto(filled.truncations, steps.truncated[rows])
        info = self._dense_info(rows)
        self._add_ends(info, rows, filled)
        return (*filled, info)

    def _observations(self, rows: slice) -> Array:
        observations = self.buffers(rows.stop - rows.start).observations
        for stack, own in self._stacks_of(rows):
            stack.write(observations[own])
        return observations

    def _stacks_of(self, rows: slice) -> list[tuple[FrameStack, slice]]:
        """The stacks of these rows, each with its part of an array that holds them."""
        size = self.batch_size
        stacks = self._stacks[rows.start // size : rows.stop // size]
        return [(stack, slice(n * size, (n + 1) * size)) for n, stack in enumerate(stacks)]

    def _dense_info(self, rows: slice) -> dict[str, Any]:
        """What every environment reports at every step, each key with its mask."""
        steps = self._steps
        groups = range(rows.start // self.batch_size, rows.stop // self.batch_size)
        counters = [self.engine.counters(group) for group in groups]
        info: dict[str, Any] = {
            "env_id": np.arange(rows.start, rows.stop),
            "lives": steps.lives[rows].copy(),
            "life_lost": steps.life_lost[rows].copy(),
            "raw_reward": steps.raw_reward[rows].copy(),
            **{name: np.concatenate([c[name] for c in counters]) for name in counters[0]},
        }
        info.update({f"_{name}": self._everywhere[rows] for name in list(info)})
        return info

    def _add_ends(self, info: dict[str, Any], rows: slice, filled: StepBuffers) -> None:
        steps = self._steps
        ended = steps.terminated[rows] | steps.truncated[rows]
        waits = self.engine.settings.autoreset == "next-step"
        episode = self._totals.add_step(rows, steps.raw_reward[rows], ended, waits)
        key = "episode" if episode is None else episode_key(self)
        ends = {} if episode is None else {key: episode, f"_{key}": ended}
        info.update(ends)
        over = filled.terminations | filled.truncations
        if self._keeps_finals and over.any():
            info["final_obs"], info["_final_obs"] = self._final(rows, filled, over), over
            info["final_info"], info["_final_info"] = ends, over

    def _final(self, rows: slice, filled: StepBuffers, over: Array) -> Array:
        """True last observations where an episode or a life ended, elsewhere the current ones."""
        final = filled.observations.copy()
        for stack, own in self._stacks_of(rows):
            final[own][over[own]] = stack.finals[over[own]]
        return final

    def _packed(self, env: int, inner: bytes) -> bytes:
        group, row = divmod(env, self.batch_size)
        window = self._stacks[group].window_of(row)
        header = {
            "depth": int(self._steps.depth[env]),
            "score": float(self._totals.score[env]),
            "length": int(self._totals.length[env]),
            "waits": bool(self._totals.waits[env]),
            "lives": int(self._steps.lives[env]),
            "window_bytes": len(window),
        }
        return pack(_MAGIC, header, window + inner)

    def _refuse_closed(self) -> None:
        if self.closed:
            raise ClosedEnvironmentError("The environment is closed; make a new one.")


def _observation_space(spaces: Spaces) -> Box:
    if spaces.frame_dtype == "uint8":
        return Box(0, 255, spaces.observation_shape, np.uint8)
    return Box(-np.inf, np.inf, spaces.observation_shape, np.float32)


def _part(steps: StepArrays, rows: slice) -> StepArrays:
    """Views of some environments' rows."""
    return StepArrays(**{field.name: getattr(steps, field.name)[rows] for field in fields(steps)})


def _unpacked(snapshot: bytes, spaces: Spaces) -> tuple[dict[str, Any], bytes, bytes]:
    """Header, frames of the window, and the engine's own snapshot."""
    size = int(np.prod(spaces.observation_shape)) * np.dtype(spaces.frame_dtype).itemsize
    bounds = {
        "depth": Bound(int, 1, spaces.stack),
        "score": SCORE,
        "length": COUNT,
        "waits": FLAG,
        "lives": LIVES,
        "window_bytes": Bound(int, size, size),
    }
    owner = "a scanline vector environment, version 2"
    header, body = unpack(_MAGIC, snapshot, bounds, owner)
    if len(body) < size:
        raise ValueError("This snapshot cannot be restored because its window_bytes are cut off.")
    return header, body[:size], body[size:]


def coloured(frame: Array) -> Array:
    """A grey frame [H, W] or one in colour as [H, W, 3]."""
    return frame if frame.ndim == 3 else np.repeat(frame[:, :, None], 3, axis=2)
